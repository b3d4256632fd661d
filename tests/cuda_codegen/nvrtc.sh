#!/bin/sh
# The kernels of examples through the NVRTC of a toolkit: they compile for every architecture, none spills, and the
# program's text with its cubins is the same from run to run. Without a toolkit the test is skipped (exit code 77).
#
#     nvrtc.sh REPRISE EXAMPLES ARCHITECTURES MODEL...        MODEL: file and definitions in one word
set -eu
reprise=$1 examples=$2 architectures=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset REPRISE_CUDA_PATH

for model; do
  for run in first second; do
    code=0
    # shellcheck disable=SC2086
    (cd "$examples" && "$reprise" compile $model --target=cuda --arch="$architectures" --emit=c,ptx --strategy=none \
      -o "$folder/$run") 2>"$folder/errors" || code=$?
    if [ $code = 7 ]; then
      cat "$folder/errors"
      exit 77
    fi
    if [ $code != 0 ] || grep -q 'spills\|error' "$folder/errors"; then
      echo "FAILED: $model for $architectures" >&2
      cat "$folder/errors" >&2
      exit 1
    fi
  done
  cmp "$folder/first.c" "$folder/second.c"
  cmp "$folder/first.ptx" "$folder/second.ptx"
  echo "$model: $(grep -c '^.visible .entry' "$folder/first.ptx") kernels for $architectures"
done
