#!/bin/sh
# One model on the emulated device at several memory budgets: losses, gradients and weights have the same bits, no plan
# takes more than its budget, and the planned arena is what the device gave out and what was touched of it.
#
#     budgets.sh REPRISE EXAMPLES
#
# REPRISE_CUDA_PATH names the emulated device.
set -eu
reprise=$1 examples=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
# field NAME FILE: a number of a JSON object
field() { sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p" "$2" | head -n 1; }

seq 1 3000 | tr '\n' ' ' >text.txt
sizes="-D B=4 -D T=16 -D C=32 -D L=2 -D H=2 -D V=64 -D P=0.1 -D TRAIN=3000 -D END=3100"
keep_all=
for budget in 8GiB 650KiB 550KiB; do
  # shellcheck disable=SC2086
  "$reprise" compile "$examples/char_transformer.rp" $sizes --target=cuda --arch=sm_90 --memory-budget=$budget --cflags=-O0 \
    -q -o program
  REPRISE_EMULATOR_REPORT=report.json ./program --data text.txt --test text.txt --steps 3 --save weights --dump-grads \
    gradients --log log >output 2>&1 || fail "$budget: $(cat output)"
  arena=$(sed -n 's/.*"arena":\([0-9]*\).*/\1/p' log | head -n 1)
  losses=$(sed -n 's/.*"event":"\(step\|test\)".*"loss":\([^,}]*\).*/\2/p' log)
  [ "$(field fault report.json)" = 0 ] || fail "$budget: the device found a fault"
  [ "$(field allocated_peak report.json)" = "$arena" ] || fail "$budget: arena $arena, device: $(cat report.json)"
  # storages are rounded up to 256 bytes
  [ $((($(field touched_end report.json) + 255) / 256 * 256)) = "$arena" ] ||
    fail "$budget: arena $arena, touched: $(cat report.json)"
  [ "$(field left_allocated report.json)" = 0 ] || fail "$budget: memory is left allocated"
  [ "$(field graph_launches report.json)" -gt 0 ] || fail "$budget: no step was replayed as a graph"
  echo "$budget: arena $arena bytes"
  if [ -z "$keep_all" ]; then
    keep_all=$arena first_losses=$losses
    mv weights first_weights
    mv gradients first_gradients
    continue
  fi
  [ "$arena" -lt "$keep_all" ] || fail "$budget: the arena is no smaller than without a budget"
  [ "$losses" = "$first_losses" ] || fail "$budget: other losses: $losses; $first_losses"
  cmp weights first_weights || fail "$budget: other weights"
  cmp gradients first_gradients || fail "$budget: other gradients"
done

# what is free: 512 MiB less the emulated context, cuBLAS, and what is left over
# shellcheck disable=SC2086
REPRISE_EMULATOR_MEMORY=536870912 "$reprise" plan "$examples/char_transformer.rp" $sizes --target=cuda \
  --memory-budget=auto >output 2>&1 || fail "auto: $(cat output)"
grep -q 'the budget is 343,932,928 B' output || fail "auto: $(cat output)"
