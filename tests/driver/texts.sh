#!/bin/sh
# usage: texts.sh REPRISE SOURCE_FOLDER
# What people read: no line wider than a page, no blanks at line ends, advice that fits the model, answers that say what to do.
set -u
reprise=$1 source=$2
. "$(dirname "$0")/../checks.sh"
never_says() { grep -e "$1" out err && fail "did not expect '$1'"; }
tidy() {
  awk 'length($0) > 100 { print FILENAME ": " $0; bad = 1 } END { exit bad }' out err || fail "wider than 100 columns: $*"
  grep -n ' $' out err && fail "blanks at the end of a line: $*"
}

for command in check fmt compile plan sweep explain verify device pack; do
  run 0 "$reprise" $command --help; tidy "$command --help"
done
run 2 "$reprise" plan model.rp --budget=3; complains "did you mean '--memory-budget'"
run 2 "$reprise" plan model.rp -o x; complains "unknown option '-o'$"

# a path that is longer than its column; a name given outside of the module that makes it
mkdir -p a_folder_with_a_name
cat >a_folder_with_a_name/model.rp <<'MODEL'
module Norm(x: [B, E]) {
  param weight: [E] = ones
  return rms_norm(x, weight)
}
module Block(x: [B, E]) {
  param weight: [E, E] = normal(0.1)
  n = ln:Norm(x)
  keep m = tanh(n @ weight)
  return x + m
}
model Deep(x: [256, 32], y: [256, 32]) {
  for i in 0..3 { x = block.{i}:Block(x) }
  loss mse(x, y)
}
train Deep { data x, y = csv("absent.csv"); optimizer sgd(lr=0.1) }
MODEL
model=a_folder_with_a_name/model.rp
run 0 "$reprise" plan $model; tidy plan
says "^  peak phase   [a-z]*, a_folder.*/model.rp:[0-9:]*; all kept: "
says "block.\*.n .* x3 "
run 3 "$reprise" plan $model --memory-budget=1KiB; tidy "plan that does not fit"
complains "'keep' holds 64.0 KiB of 2 tensors, made at $model:"
complains "without it a smaller budget may be enough"; complains "advice: make the batch"; never_says "note: infeasible"
run 3 "$reprise" plan $model --memory-budget=1KiB --json
python3 - <<'CHECK' || fail "the answer as JSON is not the one in words"
import json, re
answer, words = json.load(open("out")), open("err").read().replace(",", "")
assert answer["status"] == "infeasible" and answer["budget"] == 1024, answer
assert answer["smallest_budget"] == int(re.search(r"smallest budget with a plan: (\d+)", words)[1]), answer
assert answer["largest_impossible"] == int(re.search(r"impossible up to: +(\d+)", words)[1]), answer
assert answer["largest_impossible"] < answer["smallest_budget"], answer
assert answer["peak_at"]["phase"] in words, answer
for role, size in answer["anatomy"].items():
    assert size == 0 or re.search(rf"{role} +{size} B", words), (role, size)
CHECK

# a graph file: no weights to freeze, no optimizer to change; costs without a unit
cat >graph.json <<'GRAPH'
{"format": "reprise-graph", "version": 1, "name": "Pair", "nodes": [
  {"id": "f", "cost": 435217123, "phase": "forward", "inputs": [], "outputs": [{"id": "h", "bytes": 64}]},
  {"id": "b", "cost": 1, "phase": "backward", "inputs": ["h"], "outputs": [{"id": "g", "bytes": 4096}]}],
  "results": ["g"]}
GRAPH
run 0 "$reprise" plan graph.json; says "time  *435217124 "
run 3 "$reprise" plan graph.json --memory-budget=128; tidy "graph that does not fit"
never_says "optimizer"; never_says "freeze"

# data that the model file names but that is not there
run 0 "$reprise" compile $model -o deep
run 4 ./deep --steps 1; complains "cannot open 'absent.csv'"; complains "data x=FILE"
run 4 ./deep --data other.csv --steps 1; complains "cannot open 'other.csv'"; never_says "data x=FILE"

# C compiled by hand as docs/program.md says has the flags that its own comment asks for
run 0 "$reprise" compile $model --emit=c -o deep.c
for flag in $(sed -n '1s/.*Compile with \(.*\)\./\1/p' deep.c); do
  grep -A3 '^    cc -O3' "$source/docs/program.md" | grep -q -e "$flag" || fail "docs/program.md compiles without $flag"
done
finish_checks
