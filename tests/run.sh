#!/bin/sh
# Builds the project and runs all tests that must hold on every commit: first as released with gcc, then, with clang under
# AddressSanitizer and UndefinedBehaviorSanitizer, those that run in one process and the commands that compile no program, then
# unit tests of the release build under valgrind.
# Installs missing Debian packages first.
#   sh tests/run.sh            all three
#   sh tests/run.sh release    only the first;  sanitize, valgrind: only that one (valgrind needs the release build)
set -eu
cd "$(dirname "$0")/.."
sh .ci/install
jobs=$(nproc)

run_suite() { # folder, pattern of the tests, cmake options...
  folder=$1 tests=$2; shift 2
  cmake -S . -B "$folder" -G Ninja "$@" >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
  cmake --build "$folder" -j "$jobs" >"$folder.log" 2>&1 || { tail -n 60 "$folder.log"; exit 1; }
  ctest --test-dir "$folder" -j "$jobs" --output-on-failure -LE 'slow|bench|browser' --timeout 900 -R "$tests"
}

mode=${1:-all}
if [ "$mode" = all ] || [ "$mode" = release ]; then
  run_suite build . -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=RelWithDebInfo
fi
if [ "$mode" = all ] || [ "$mode" = sanitize ]; then
  in_process='^(ir_|frontend|passes_[^d]|packing_|runtime_|operators.vectors|operators.optimizers|planner_files|planner_strategies|driver_help|driver_check|driver_budgets|driver_plan)'
  run_suite build-sanitize "$in_process" -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo -DREPRISE_SANITIZE=ON
fi
if [ "$mode" = all ] || [ "$mode" = valgrind ]; then
  for test in test_ir_eval_structure test_ir_eval_kernels test_ir_eval_state test_ir_verify test_passes_simplify test_passes_fuse \
    test_passes_kernels test_passes_storage test_passes_schedule frontend_parser_test frontend_elaborate_errors_test runtime_readers \
    runtime_safetensors; do
    [ -x "build/bin/$test" ] || { echo "valgrind: there is no build/bin/$test" >&2; exit 1; }
    OMP_NUM_THREADS=1 valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite "build/bin/$test" >build.log 2>&1 || {
      tail -n 60 build.log
      echo "valgrind: $test failed" >&2
      exit 1
    }
    echo "valgrind: $test passed"
  done
fi
