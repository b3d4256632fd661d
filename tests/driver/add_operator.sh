#!/bin/sh
# Adding a pointwise operator touches ir/ops.def alone: a copy of the source gets one more row, and what is built of it checks,
# differentiates, compiles and verifies a model that calls the new operator.
# usage: add_operator.sh SOURCE_FOLDER C_COMPILER
set -eu
source=$1 compiler=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/source"
for entry in CMakeLists.txt frontend ir passes codegen runtime; do cp -r "$source/$entry" "$work/source/"; done

row='POINTWISE(softsign, "x, slope:float=1", REALS_TO_SAME, 0, x0 / (REAL(1) + REAL(A0) * ABS(x0)), D(0, E(divide, G, E(square, E(add, C(1), E(multiply, C(A(0)), E(abs, X(0))))))))'
awk -v row="$row" '{ print } /^POINTWISE\(square,/ { print row }' "$source/ir/ops.def" >"$work/source/ir/ops.def"
[ "$(diff "$source/ir/ops.def" "$work/source/ir/ops.def" | grep -c '^>')" = 1 ] || { echo "the row was not added"; exit 1; }

cat >"$work/model.rp" <<'MODEL'
model Soft(x: [4, 3], y: [4, 3]) {
  param w: [3, 3] = normal(1.0)
  loss mse(softsign(x @ w, 0.5) + softsign(w[0]), y)
}
train Soft { data x = npy("x.npy"); data y = npy("y.npy"); optimizer sgd(lr=0.1) }
MODEL

cmake -S "$work/source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O0 -DCMAKE_C_COMPILER="$compiler" >"$work/log" 2>&1 ||
  { cat "$work/log"; exit 1; }
cmake --build "$work/build" --target reprise reprise-planner >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
"$work/build/bin/reprise" check "$work/model.rp"
"$work/build/bin/reprise" verify "$work/model.rp" --cflags=-O1
"$work/build/bin/reprise" compile "$work/model.rp" --emit=c -o - | grep -q "0.5f \*" || { echo "the emitted C lacks the expression"; exit 1; }
