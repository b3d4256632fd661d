#!/bin/sh
# What --tf32 does: gradients differ from those without it by the rounding of operands to 10 bits of mantissa, and not more;
# the emitted program says so; kernels are the same. And what a program says when cuBLAS is missing, broken or has no memory.
#
#     cublas.sh REPRISE TOOL EXAMPLES
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

# expect NAME TEXT FOLDER [MEMORY]: the program ends with exit code 7, says so, and writes nothing
expect() {
  code=0
  REPRISE_CUDA_PATH=$3 REPRISE_EMULATOR_MEMORY=${4:-} ./full --steps 1 --save weights --dump-grads grads >output 2>&1 || code=$?
  [ $code = 7 ] || fail "$1: exit code $code: $(cat output)"
  grep -q "$2" output || fail "$1: expected '$2': $(cat output)"
  [ ! -e weights ] && [ ! -e grads ] || fail "$1: files are left"
}
emulated=$REPRISE_CUDA_PATH
mkdir broken other
cp -L "$emulated/libcuda.so.1" broken
cp -L "$emulated/libcuda.so.1" other
echo text >broken/libcublas.so.13
cp -L "$emulated/libnvrtc.so.13" other/libcublas.so.13
expect 'broken cuBLAS' 'error: matrix products need cuBLAS 13: cannot load libcublas.so.13: .*install it' "$folder/broken"
expect 'another library' 'libcublas.so.13 has no cublasCreate_v2: install cuBLAS' "$folder/other"
expect 'memory for cuBLAS' 'cuBLAS cannot start: the resource allocation failed' "$emulated" 104857600
