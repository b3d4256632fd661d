#!/bin/sh
# What --tf32 does: gradients differ from those without it by the rounding of operands to 10 bits of mantissa, and not more;
# the emitted program says so; kernels are the same.
#
#     tf32.sh REPRISE TOOL EXAMPLES
#
# REPRISE_CUDA_PATH names the emulated device, TOOL is gpu_check_tool.
set -eu
reprise=$1 tool=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$3" "$folder/examples"
cd "$folder"

fail() {
  echo "FAILED: $*" >&2
  exit 1
}
for option in "" --tf32; do
  name=full$option
  # shellcheck disable=SC2086
  "$reprise" compile examples/digits/digits.rp -D B=8 --target=cuda --arch=sm_90 --emit=exe,c,cu --cflags=-O0 -q $option -o "$name"
  "./$name" --steps 2 --dump-grads "$name.grads" >output 2>&1 || fail "$(cat output)"
done
cmp full.cu full--tf32.cu || fail "other kernels with --tf32"
grep -q '.tf32 = false,' full.c && grep -q '.tf32 = true,' full--tf32.c || fail "the programs do not say whether they take TF32"
difference=$("$tool" tensors full.grads full--tf32.grads 1e-2 2>output) || fail "gradients differ too much: $(cat output)"
! "$tool" tensors full.grads full--tf32.grads 1e-5 >/dev/null 2>&1 || fail "gradients are the same: $difference"
echo "largest difference $difference"
