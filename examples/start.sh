#!/bin/sh
# From a fresh Debian machine to a trained model: installs what is missing, builds the compiler, compiles examples/digits and
# trains it. With the name of a folder that has been built already it only compiles and trains.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build}
if [ $# = 0 ]; then
  sh .ci/install --build
  cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo >build.log 2>&1 || { cat build.log; exit 1; }
  cmake --build build -j "$(nproc)" --target reprise reprise-planner reprise_runtime >build.log 2>&1 || { tail -n 60 build.log; exit 1; }
  rm -f build.log
fi
echo "compiling examples/digits/digits.rp"
"$build/bin/reprise" compile examples/digits/digits.rp -o "$build/digits"
echo "training $build/digits (1,797 handwritten digits of 8 x 8 pixels)"
"$build/digits" --save "$build/digits.safetensors"
echo "The trained weights are in $build/digits.safetensors."
