#!/bin/sh
# --memory-budget=auto on the emulated device: what is free beside context and cuBLAS, at several sizes of the device.
#
#     free_memory.sh REPRISE EXAMPLES
set -eu
reprise=$1 examples=$2
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# expect BYTES EXIT-CODE TEXT: on a device of so many bytes
expect() {
  code=0
  REPRISE_EMULATOR_MEMORY=$1 "$reprise" plan "$examples/char_transformer.rp" -D B=4 -D T=16 -D C=32 -D L=2 -D H=2 -D V=64 \
    --target=cuda --memory-budget=auto >"$output" 2>&1 || code=$?
  if [ $code != "$2" ] || ! grep -q -e "$3" "$output"; then
    echo "FAILED: $1 bytes: exit code $code, expected $2 and '$3':" >&2
    cat "$output" >&2
    exit 1
  fi
}

MiB=1048576
# the plan holds the number, so that a program is the same wherever it is linked
REPRISE_EMULATOR_MEMORY=$((512 * MiB)) "$reprise" compile "$examples/digits/digits.rp" --target=cuda --memory-budget=auto \
  --emit=graph -o /dev/null --plan-out=- -q 2>/dev/null | tr -d ' \n' >"$output"
grep -q '"budget":343932928' "$output" || {
  echo "FAILED: the plan does not hold the budget: $(head -c 300 "$output")" >&2
  exit 1
}
# 96 MiB are the emulated context's, 24 cuBLAS's, 64 are left over
expect $((512 * MiB)) 0 'the budget is 343,932,928 B'
expect $((186 * MiB)) 0 'the budget is 2,097,152 B'
expect $((185 * MiB)) 7 'auto: hardly any memory is free'
expect $((100 * MiB)) 7 'auto: hardly any memory is free'
expect $((50 * MiB)) 7 'auto: the GPU has no memory left'
export REPRISE_EMULATOR_DEVICES=0
expect $((512 * MiB)) 7 'auto: no NVIDIA GPU answers'
