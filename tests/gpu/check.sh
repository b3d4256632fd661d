#!/bin/sh
# The CUDA target on real hardware: operators and models right, budgets bitwise equal, memory by cuMemGetInfo, step time of
# GPT-2 beside PyTorch. In two parts, so that the machine with the GPU needs neither compiler nor toolkit:
#
#     check.sh prepare BUILD FOLDER [small]   here: compiles programs, tests and reference results into FOLDER
#     check.sh run FOLDER [REPORT.json]       there, or here: at most 8 minutes; the report is FOLDER/report.json
#
# The report is written anew after each check, so that a run which is stopped leaves what it found, with "complete": false.
# Each step has a time limit of its own, and all together CHECK_SECONDS (default 450); what no time is left for is not checked
# and does not pass. Preparing takes some minutes, the folder some 45 MiB.
#
# BUILD is a build tree with all targets. `small` makes models of a few thousand weights: for the emulated device, which
# REPRISE_CUDA_PATH names in both parts, as the tests of this script do. ARCH is the GPU's (sm_90), default sm_90; the code
# for it runs on later ones too, as PTX. The exit code is 0 when every check passed.
set -eu

fail() {
  echo "check.sh: $*" >&2
  exit 2
}

# ---- both parts: models, as NAME, FILE, DEFINITIONS, DATA ----

models() {
  cat <<'END'
trace|trace.rp||
digits|digits/digits.rp|-D B=8|
mnist|mnist.rp|-D B=4 -D TRAIN=40 -D END=48|--data image=images.idx --data label=labels.idx --test image=images.idx --test label=labels.idx
batch_norm|batch_norm.rp|-D B=8|
adapter|adapter.rp|-D B=8 -D HIDDEN=64|
char_rnn|char_rnn.rp|-D B=2 -D T=4 -D D=32 -D TRAIN=3000 -D END=3010|--data text.txt --test text.txt
char_transformer|char_transformer.rp|-D B=2 -D T=8 -D C=32 -D L=1 -D P=0.1 -D TRAIN=3000 -D END=3020|--data text.txt --test text.txt
gpt2|gpt2.rp|-D B=1 -D T=8 -D V=96 -D C=32 -D H=2 -D L=2|--data train_small.bin
END
}
# Budgets of two GPT-2s, in percent of the way from the smallest that fits to keeping everything: bitwise, and timed.
bitwise_percents="60 20"
timed_percents="60 35 10"

# ---- part one ----

prepare() {
  build=$(cd "$1" && pwd) size=${3:-full}
  source=$(cd "$(dirname "$0")/../.." && pwd)
  rm -rf "$2"
  mkdir -p "$2/lib" "$2/programs" "$2/tests"
  folder=$(cd "$2" && pwd)
  reprise=$build/bin/reprise tool=$build/bin/gpu_check_tool
  cd "$folder"
  cp "$source/tests/gpu/check.sh" "$source/tests/gpu/gpt2_torch.py" "$source/tests/reference/operators.json" .
  cp "$tool" check_tool
  mkdir -p examples/digits
  cp "$source"/examples/digits/*.gz examples/digits
  if [ "$size" = small ]; then
    gpt2="-D B=2 -D T=16 -D V=96 -D C=32 -D H=2 -D L=2" bitwise="-D B=2 -D T=24 -D V=96 -D C=32 -D H=2 -D L=2"
    echo "2 16 2 2 32 96 3" >timed
  else
    gpt2="-D B=8 -D T=1024" bitwise="-D B=2 -D T=256 -D V=2000 -D L=4"
    echo "8 1024 12 12 768 50257 6" >timed
  fi
  "$tool" tokens train_small.bin 40000 96
  "$tool" tokens train_large.bin 1000000 "$(cut -d' ' -f6 timed)"
  "$tool" idx images.idx 48 28 28 256
  "$tool" idx labels.idx 48 0 0 10
  seq 1 3000 | tr '\n' ' ' >text.txt
  models | while IFS='|' read -r name file definitions data; do
    compile "$name" "$file" "$definitions"
    # the reference: the host's program, here
    # shellcheck disable=SC2086
    "$reprise" compile "$source/examples/$file" $definitions --strategy=none -q -o host_program
    # shellcheck disable=SC2086
    ./host_program $data --steps 3 --dump-grads "programs/$name.tensors" --log "programs/$name.log" >output 2>&1 ||
      fail "$name: $(cat output)"
    rm host_program
  done
  compile_budgets bitwise "$bitwise" "$bitwise_percents"
  compile_budgets timed "$gpt2" "$timed_percents"
  keep_tests
  carry_libraries
  echo "prepared $folder: $(du -sm . | cut -f1) MiB"
}

# compile PROGRAM FILE DEFINITIONS [BUDGET]; the host's part may run on another processor
compile() {
  budget=${4:+--memory-budget=$4}
  # shellcheck disable=SC2086
  "$reprise" compile "$source/examples/$2" $3 --target=cuda --arch="${ARCH:-sm_90}" ${budget:---strategy=none} \
    --cflags='-O1 -s' -q -o "programs/$1" 2>output || fail "$1: $(cat output)"
}

# plan DEFINITIONS OPTION...: what the planner says of GPT-2
plan() {
  definitions=$1
  shift
  # shellcheck disable=SC2086
  "$reprise" plan "$source/examples/gpt2.rp" $definitions --target=cuda --arch="${ARCH:-sm_90}" "$@" 2>&1 || true
}

# Programs KIND_keep_all and KIND_PERCENT.
compile_budgets() {
  compile "$1_keep_all" gpt2.rp "$2"
  most=$(plan "$2" --strategy=none --json | sed -n 's/^ *"peak": *\([0-9]*\).*/\1/p' | head -n 1)
  least=$(plan "$2" --memory-budget=1KiB | sed -n 's/.*smallest budget with a plan: *\([0-9,]*\) B.*/\1/p' | tr -d ,)
  for percent in $3; do
    compile "$1_$percent" gpt2.rp "$2" $((least + (most - least) * percent / 100))
  done
}

# The tests run once, here or not: what they compile stays in tests/.
keep_tests() {
  for test in operators forms training random_graphs; do
    cp "$build/bin/cuda_codegen_$test" "tests/$test"
    REPRISE_TEST_PROGRAMS=$folder/tests REPRISE_TEST_COMPILE=1 REPRISE_TEST_ARCH=${ARCH:-sm_90} "tests/$test" operators.json \
      >output 2>&1 || fail "tests/$test: $(cat output)"
  done
}

# Shared libraries of programs, tests and tool but those of the system and of BLAS.
carry_libraries() {
  cc -shared -fPIC -O1 -o lib/libopenblas.so.0 "$source/tests/gpu/no_blas.c"
  ldd check_tool programs/trace tests/operators | awk '/=> \//{print $3}' | sort -u |
    grep -v '/libc\.so\|/libm\.so\|/libdl\.so\|/libpthread\.so\|ld-linux\|blas\|gfortran\|quadmath\|libgcc' |
    while read -r library; do cp -L "$library" lib; done
}

# ---- part two ----

# write_report COMPLETE
write_report() {
  passed=true
  [ ! -e failed ] || passed=false
  printf '{"passed": %s, "complete": %s, "seconds": %d, "checks": [%s\n]}\n' $passed "$1" $(($(date +%s) - start)) \
    "$(cat checks)" >report.part
  mv report.part report.json
  [ -z "$report" ] || cp report.json "$report"
}

# record NAME PASSED DETAIL: PASSED is true, false or null (not checked); DETAIL is JSON
record() {
  [ ! -s checks ] || printf ',' >>checks
  printf '\n  {"check": "%s", "passed": %s, "at_second": %d, "detail": %s}' "$1" "$2" $(($(date +%s) - start)) "$3" >>checks
  echo "$1: $2 $3"
  [ "$2" != false ] || touch failed
  write_report false
}
text() { printf '"%s"' "$(tr -d '\000-\037\\"' <"$1" | tail -c 400)"; }

# limited SECONDS COMMAND...: exit code 124 when the time, its own or that of all, is over; output in the file output
limited() {
  seconds=$1 left=$((deadline - $(date +%s)))
  shift
  : >output
  [ "$seconds" -lt $left ] || seconds=$left
  code=124
  if [ "$seconds" -gt 0 ]; then
    code=0
    timeout -k 5 "$seconds" "$@" >output 2>&1 || code=$?
  fi
  [ $code -lt 124 ] || echo " stopped: no time left after $seconds seconds (exit code $code)" >>output
  return $code
}

# cuBLAS 13 from a toolkit or from Python packages, the driver where it is not in the system's folders.
find_libraries() {
  for place in /usr/local/cuda/lib64 $(python3 -c 'import sys; print(*sys.path)' 2>/dev/null); do
    for path in "$place" "$place/nvidia/cu13/lib" "$place/nvidia/cublas/lib"; do
      [ ! -e "$path/libcublas.so.13" ] || libraries=$libraries:$path
    done
  done
  [ ! -e /usr/local/nvidia/lib64/libcuda.so.1 ] || libraries=$libraries:/usr/local/nvidia/lib64
  LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
}

check_tests() {
  for test in operators forms training random_graphs; do
    if REPRISE_TEST_PROGRAMS=$PWD/tests REPRISE_TEST_ARCH=$arch limited 100 "tests/$test" operators.json; then
      record "tests.$test" true "\"$(grep -c ' OK ' output) tests\""
    else
      record "tests.$test" false "$(text output)"
    fi
  done
}

check_models() {
  models | while IFS='|' read -r name file definitions data; do
    result=true
    # shellcheck disable=SC2086
    limited 60 "programs/$name" $data --steps 3 --dump-grads tensors --log log </dev/null || result=false
    if [ $result = false ]; then
      record "model.$name" false "$(text output)"
      continue
    fi
    losses=$(./check_tool losses "programs/$name.log" log 1e-3) || result=false
    tensors=$(./check_tool tensors "programs/$name.tensors" tensors 2e-3 2>output) || result=false
    record "model.$name" $result "{\"losses\": \"$losses\", \"tensors\": \"$tensors\"}"
    rm -f tensors log
  done
}

losses_of() { grep '"event":"step"' "$1" | sed 's/,"tokens.*//'; }

check_budgets() {
  limited 60 programs/bitwise_keep_all --data "$1" --steps 3 --dump-grads first --save first_weights --log log || {
    record budgets false "$(text output)"
    return
  }
  losses_of log >first_losses
  for percent in $bitwise_percents; do
    program=programs/bitwise_$percent
    [ -e "$program" ] || continue
    result=true
    limited 60 "$program" --data "$1" --steps 3 --dump-grads tensors --save weights --log log || result=false
    losses_of log | cmp -s - first_losses || result=false
    cmp -s tensors first && cmp -s weights first_weights || result=false
    if [ $result = true ]; then
      record "budgets.$percent" true "{\"arena\": $(./check_tool field log start arena || echo 0)}"
    else
      record "budgets.$percent" false "$(text output)"
    fi
    rm -f tensors weights log
  done
  rm -f first first_weights
}

# in_use_during PROGRAM DATA: what the GPU has in use while the program trains, as another process sees it
in_use_during() {
  timeout -k 5 60 "$1" --data "$2" --steps 1000 --log log >/dev/null 2>&1 &
  process=$! in_use=0
  for _ in $(seq 150); do
    sleep 0.3
    kill -0 $process 2>/dev/null || break
    grep -q '"event":"step"' log 2>/dev/null && in_use=$(./check_tool memory) && break
  done
  kill $process 2>/dev/null || true
  wait $process 2>/dev/null || true
  rm -f log
}

# check_memory PROGRAM DATA. cuBLAS need not use all of its workspace, so on a real device the high-water mark may lie below
# the arena; on the emulated one it is equal. An emulated device is a process's own.
check_memory() {
  before=$(./check_tool memory 2>output) || {
    record memory false "$(text output)"
    return
  }
  in_use_during "$@"
  limited 100 "$1" --data "$2" --memory --log log || {
    record memory false "$(text output)"
    return
  }
  arena=$(./check_tool field log memory arena) high_water=$(./check_tool field log memory high_water)
  context=$(./check_tool field log memory device.context) blas=$(./check_tool field log memory device.libraries)
  emulated=$(./check_tool field log memory device.emulated)
  used=$((in_use - before)) slack=$((64 << 20))
  result=true
  if [ "$emulated" = true ]; then
    [ "$arena" = "$high_water" ] || result=false
  else
    [ "$high_water" -le "$arena" ] && [ $used -ge "$arena" ] && [ $used -le $((arena + context + blas + slack)) ] || result=false
  fi
  record memory $result "{\"arena\": $arena, \"high_water\": $high_water, \"context\": $context, \"cublas\": $blas, \
\"in_use_by_cuMemGetInfo\": $used, \"emulated\": $emulated}"
  rm -f log
}

check_times() {
  read -r b t _ _ _ _ updates <timed
  for program in keep_all $timed_percents; do
    [ -e "programs/timed_$program" ] || continue
    if limited 100 "programs/timed_$program" --data "$1" --steps "$updates" --log log; then
      losses_of log >losses
      [ "$program" != keep_all ] || cp losses first_losses
      result=true
      cmp -s losses first_losses || result=false
      record "step_time.$program" $result "{\"milliseconds\": $(./check_tool step-time log $((b * t)) || echo null), \
\"arena\": $(./check_tool field log start arena), \"device\": \"$(./check_tool field log start device)\"}"
    else
      record "step_time.$program" false "$(text output)"
    fi
    rm -f log
  done
}

# One JSON object a line: eager, then with torch.compile; the last line that is there counts.
check_torch() {
  if [ -n "${REPRISE_CUDA_PATH:-}" ] || ! limited 60 python3 -c 'import torch; assert torch.cuda.is_available()'; then
    record step_time.torch null '"PyTorch with a GPU is not there"'
    return
  fi
  # shellcheck disable=SC2046
  limited 200 python3 gpt2_torch.py $(cat timed) || true
  result=$(grep '^{.*}$' output | tail -n 1) || true
  record step_time.torch null "${result:-$(text output)}"
}

run() {
  report=${2:+$(cd "$(dirname "$2")" && pwd)/$(basename "$2")}
  cd "$1"
  [ -e timed ] || fail "$1 is not prepared"
  start=$(date +%s)
  libraries=$PWD/lib arch=${ARCH:-sm_90} deadline=$((start + ${CHECK_SECONDS:-450}))
  rm -f checks failed report.json
  : >checks
  write_report false
  find_libraries
  check_tests
  check_models
  check_budgets train_small.bin
  check_memory programs/timed_keep_all train_large.bin
  check_times train_large.bin
  check_torch
  write_report true
  [ $passed = true ]
}

verb=${1:-}
case $verb-$# in
prepare-3 | prepare-4) shift && prepare "$@" ;;
run-2 | run-3) shift && run "$@" ;;
*) fail "usage: check.sh prepare BUILD FOLDER [small] | check.sh run FOLDER [REPORT.json]" ;;
esac
