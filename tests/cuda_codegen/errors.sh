#!/bin/sh
# What the CUDA target says when something is missing or wrong, and that it then writes nothing.
#
#     errors.sh REPRISE EXAMPLES FOLDER       FOLDER has a libnvrtc.so.13 that fails as FAKE_NVRTC says
set -eu
reprise=$1 examples=$2 fake=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir broken
echo text >broken/libnvrtc.so.13

# expect NAME EXIT-CODE TEXT OPTION...: compiling trace.rp ends so, says so, and leaves no program
expect() {
  name=$1 wanted=$2 text=$3 code=0
  shift 3
  "$reprise" compile "$examples/trace.rp" "$@" -o program >output 2>&1 || code=$?
  [ -n "$text" ] || echo >>output
  if [ $code != "$wanted" ] || ! grep -q -e "$text" output; then
    echo "FAILED: $name: exit code $code, expected $wanted and '$text':" >&2
    cat output >&2
    exit 1
  fi
  if [ $code != 0 ] && [ -e program ]; then
    echo "FAILED: $name left a program" >&2
    exit 1
  fi
  rm -f program
}

expect 'target' 2 'expected cpu or cuda' --target=tpu
expect 'architecture' 2 'expected architectures such as' --target=cuda --arch=hopper
expect 'no architecture' 2 'expected architectures such as' --target=cuda --arch=
expect 'architecture of the host' 2 'goes with --target=cuda' --arch=sm_90
expect 'tf32 on the host' 2 'goes with --target=cuda' --tf32
expect 'kernels of the host' 2 'goes with --target=cuda' --emit=cu

export REPRISE_CUDA_PATH=/dev/null
expect 'no folder' 7 "is to name a folder with CUDA libraries; '/dev/null' is none" --target=cuda
export REPRISE_CUDA_PATH="$folder/none"
expect 'folder that is not there' 7 "folder with CUDA libraries; '.*/none' is none" --target=cuda
mkdir other
cp "$(ldd "$reprise" | awk '/libjansson/{print $3}')" other/libnvrtc.so.13
export REPRISE_CUDA_PATH="$folder/other"
expect 'another library' 7 'libnvrtc.so.13 lacks nvrtcVersion' --target=cuda
export REPRISE_CUDA_PATH="$folder/broken"
expect 'broken NVRTC' 7 'cannot load NVRTC: .*broken/libnvrtc.so.13' --target=cuda
expect 'source without NVRTC' 0 '' --target=cuda --emit=cu

export REPRISE_CUDA_PATH="$fake"
FAKE_NVRTC=spill expect 'spill' 0 "trace.rp:[0-9]*:[0-9]*: warning: kernel '.*spills 64 bytes of registers on sm_90" --target=cuda \
  --arch=sm_90 --emit=ptx
FAKE_NVRTC=error expect 'refused source' 70 "trace.rp:[0-9]*:[0-9]*: error: NVRTC refuses kernel" --target=cuda
FAKE_NVRTC=option expect 'unknown architecture' 7 'does not compile for sm_999' --target=cuda --arch=sm_999
FAKE_NVRTC=empty expect 'no code' 70 'NVRTC gives no code for sm_90' --target=cuda --arch=sm_90

# what the assembler says of kernels
FAKE_NVRTC=spill "$reprise" compile "$examples/trace.rp" --target=cuda --arch=sm_90 --emit=kernels -o kernels 2>output
tr -d ' \n' <kernels | grep -q '"sm_90":{"registers":255,"shared_bytes":0,"stack_bytes":64,"spill_bytes":64}' || {
  echo "FAILED: kernels:" >&2
  cat kernels output >&2
  exit 1
}

# more rows than a grid has blocks
printf 'dim N = 3000000000\nmodel Rows(x: f32[N, 2]) {\n  output y = softmax(x)\n}\n' >rows.rp
code=0
"$reprise" compile rows.rp --target=cuda --emit=cu -o rows.cu 2>output || code=$?
if [ $code != 1 ] || ! grep -q 'rows.rp:3:14: error: .* at most 2147483647 rows .* found 3000000000' output || [ -e rows.cu ]; then
  echo "FAILED: too many rows: $code" >&2
  cat output >&2
  exit 1
fi

# the report: a row for each kernel, with its node and line; what spills is marked
FAKE_NVRTC=spill "$reprise" compile "$examples/trace.rp" --target=cuda --arch=sm_90,sm_120 --emit=report -o page.html 2>output
for expected in '<th colspan="3" scope="colgroup">sm_90</th><th colspan="3" scope="colgroup">sm_120</th>' \
  '<tr><td>multiply_1</td><td>multiply</td><td>trace.rp:[0-9]*:[0-9]*</td><td class="num">255</td><td class="num">0</td><td class="num recomputed"><span class="mark">64</span></td><td class="num">255</td>' \
  '<td class="num">?</td>'; do
  grep -q "$expected" page.html || {
    echo "FAILED: the report lacks $expected:" >&2
    grep -A9 kernel-table page.html >&2
    exit 1
  }
done
# nothing is written, the report neither, when a kernel does not compile
rm -f page.html
FAKE_NVRTC=error "$reprise" compile "$examples/trace.rp" --target=cuda --report=page.html --plan-out=plan.json -o program \
  >output 2>&1 || true
if [ -e page.html ] || [ -e plan.json ] || [ -e program ]; then
  echo "FAILED: files are left after NVRTC refused a kernel" >&2
  exit 1
fi
# two results on standard output
code=0
"$reprise" compile "$examples/trace.rp" --target=cuda --emit=cu -o - --report=- >output 2>&1 || code=$?
if [ $code != 2 ] || ! grep -q 'only one result can go to standard output' output; then
  echo "FAILED: two results on standard output: $code" >&2
  exit 1
fi
# the plan alone, and a program for the host, have no kernels
"$reprise" compile "$examples/trace.rp" --emit=report -o page.html
if grep -q kernel-table page.html; then
  echo "FAILED: the host's report has kernels" >&2
  exit 1
fi
