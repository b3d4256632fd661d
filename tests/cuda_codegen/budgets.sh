#!/bin/sh
# A model on the emulated device at three memory budgets: keeping everything, the smallest that has a plan, and the one in
# the middle. Losses, outputs, gradients and weights have the same bits, no plan takes more than its budget, and the planned
# arena is what the device gave out, what was written of it, and, with what context and cuBLAS took, what cuMemGetInfo misses.
#
#     budgets.sh REPRISE TOOL EXAMPLES DATA MODEL [OPTION]...       DATA: options of the program that read small files
#
# REPRISE_CUDA_PATH names the emulated device, TOOL is gpu_check_tool.
set -eu
reprise=$1 tool=$2 examples=$3 data=$4 model=$3/$5
shift 5
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# field NAME: a number of the device's report
field() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" report.json | head -n 1; }
# same NAME FOUND: a number is the arena
same() { [ "$2" = "$arena" ] || fail "$budget: the arena is $arena bytes, $1 $2: $(cat report.json)"; }
plan() { "$reprise" plan "$model" "$@" --target=cuda --arch=sm_90 2>&1 || true; }

cp -r "$examples" examples
seq 1 3000 | tr '\n' ' ' >text.txt
"$tool" tokens tokens.bin 20000 96
"$tool" idx images.idx 48 28 28 256
"$tool" idx labels.idx 48 0 0 10
most=$(plan "$@" --strategy=none --json | sed -n 's/^ *"peak": *\([0-9]*\).*/\1/p' | head -n 1)
least=$(plan "$@" --memory-budget=1KiB | sed -n 's/.*smallest budget with a plan: *\([0-9,]*\) B.*/\1/p' | tr -d ,)
[ -n "$most" ] && [ -n "$least" ] || fail "no budgets: $(plan "$@" --memory-budget=1KiB)"

keep_all=
for budget in $((2 * most)) $(((most + least) / 2)) "$least"; do
  "$reprise" compile "$model" "$@" --target=cuda --arch=sm_90 --memory-budget="$budget" --cflags=-O0 -q -o program
  # shellcheck disable=SC2086
  REPRISE_EMULATOR_REPORT=report.json ./program $data --steps 3 --save weights --log log >output 2>&1 ||
    fail "$budget: $(cat output)"
  arena=$(sed -n 's/.*"event":"start".*"arena":\([0-9]*\).*/\1/p' log)
  losses=$(sed -n 's/.*"event":"\(step\|test\)".*"loss":\([^,}]*\).*/\2/p' log)
  [ "$(field fault)" = 0 ] || fail "$budget: the device found a fault"
  [ "$arena" -le "$budget" ] || fail "$budget: the arena is $arena bytes"
  same "the device gave out" "$(field allocated_peak)"
  same "the device's high-water mark is" "$(field high_water)"
  [ "$(field allocations)" = 1 ] || fail "$budget: more than one allocation"
  [ "$(field left_allocated)" = 0 ] || fail "$budget: memory is left allocated"
  [ "$(field graph_launches)" -gt 0 ] || fail "$budget: no step was replayed as a graph"
  in_use=$(field in_use_peak)
  # a device with just this memory is enough, one with a byte less is not
  # shellcheck disable=SC2086
  REPRISE_EMULATOR_MEMORY=$in_use ./program $data --steps 1 --memory --dump-grads gradients --log log >output 2>&1 ||
    fail "$budget: $(cat output)"
  others=$(($("$tool" field log memory device.context) + $("$tool" field log memory device.libraries)))
  same "cuMemGetInfo misses beside context and cuBLAS" $((in_use - others))
  same "--memory tells a high-water mark of" "$("$tool" field log memory high_water)"
  code=0
  # shellcheck disable=SC2086
  REPRISE_EMULATOR_MEMORY=$((in_use - 1)) ./program $data --steps 1 --save too_large --dump-grads too_large \
    >output 2>&1 || code=$?
  [ $code = 7 ] && grep -q "out of device memory: the arena takes $arena bytes" output ||
    fail "$budget: with a byte too few: exit code $code, $(cat output)"
  [ ! -e too_large ] || fail "$budget: a file is left by a program without memory"
  echo "budget $budget: arena $arena bytes, in use $in_use"
  if [ -z "$keep_all" ]; then
    keep_all=$arena first_losses=$losses
    mv weights first_weights
    mv gradients first_gradients
    continue
  fi
  [ "$losses" = "$first_losses" ] || fail "$budget: other losses: $losses; $first_losses"
  cmp weights first_weights || fail "$budget: other weights"
  cmp gradients first_gradients || fail "$budget: other gradients"
done
[ "$least" = "$most" ] || [ "$arena" -lt "$keep_all" ] || fail "the smallest arena is no smaller than with everything kept"
