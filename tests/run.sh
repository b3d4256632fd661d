#!/bin/sh
# Builds the project and runs all tests that must hold on every commit: first as released with gcc, then with clang under
# AddressSanitizer and UndefinedBehaviorSanitizer. Installs missing Debian packages first.
#   sh tests/run.sh            both
#   sh tests/run.sh release    only the first;  sh tests/run.sh sanitize    only the second
set -eu
cd "$(dirname "$0")/.."
sh .ci/install
jobs=$(nproc)

run_suite() { # folder, cmake options...
  folder=$1; shift
  cmake -S . -B "$folder" -G Ninja "$@" >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
  cmake --build "$folder" -j "$jobs" >"$folder.log" 2>&1 || { tail -n 60 "$folder.log"; exit 1; }
  ctest --test-dir "$folder" -j "$jobs" --output-on-failure -LE 'slow|bench'
}

mode=${1:-all}
if [ "$mode" = all ] || [ "$mode" = release ]; then
  run_suite build -DCMAKE_C_COMPILER=gcc -DCMAKE_BUILD_TYPE=RelWithDebInfo
fi
if [ "$mode" = all ] || [ "$mode" = sanitize ]; then
  run_suite build-sanitize -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo -DREPRISE_SANITIZE=ON
fi
