#!/bin/sh
# usage: commands.sh GROUP REPRISE SOURCE_FOLDER BUILD_FOLDER SHARED_DATA
# Each check says what it expected; the script goes on after a failure and exits with 1 at the end.
set -u
group=$1 reprise=$2 source=$3 build=$4 shared=$5
. "$(dirname "$0")/../checks.sh"

cat >trace.rp <<'MODEL'
model Trace(x: []) {
  param a: [] = constant(3)
  param b: [] = constant(4)
  recompute { u = a*x; y = b*u }
  output y
  grad x, u
  loss y^2/2
}
train Trace { data x = constant(2); optimizer sgd(lr=0.001) }
MODEL

# a deep chain of layers: something to recompute
cat >deep.rp <<'MODEL'
dim B = 256, L = 16
module Layer(x: [_, I]) {
  param weight: [I, I] = kaiming_normal
  param bias: [I] = zeros
  return dropout(tanh(x @ weight + bias), 0.1)
}
model Deep(x: [B, 32], y: [B, 32]) {
  for i in 0..L { x = layer.{i}:Layer(x) }
  loss mse(x, y)
}
train Deep {
  data x, y = csv("data.csv")
  optimizer adam(lr=1e-3); seed 7
}
MODEL

case $group in
help)
  run 2 "$reprise"; complains usage
  run 0 "$reprise" --help; says "reprise compile"
  run 0 "$reprise" --version; says "^reprise [0-9]"
  for command in check fmt compile plan sweep verify device; do run 0 "$reprise" "$command" --help; says "usage: reprise $command"; done
  run 2 "$reprise" complie; complains "did you mean 'compile'"
  run 2 "$reprise" check; complains "expected MODEL.rp, found 0 files"
  run 2 "$reprise" check --jsno trace.rp; complains "did you mean '--json'"
  run 2 "$reprise" check a.rp b.rp; complains "found 2 files"
  ;;
check)
  run 0 "$reprise" check trace.rp; says "parameters  2 in 2 tensors"
  run 0 "$reprise" check -q trace.rp; silent
  [ ! -c /dev/zero ] || { run 4 "$reprise" check /dev/zero; complains "goes on beyond 256 MiB"; }
  run 0 "$reprise" check --json trace.rp; python3 -m json.tool out >/dev/null || fail "check --json is not JSON"
  run 4 "$reprise" check none.rp; complains "none.rp"
  run 0 "$reprise" check deep.rp -D L=3; says "3,168"
  run 1 "$reprise" check deep.rp -D L=x
  run 2 "$reprise" check deep.rp -D L; complains "expected NAME=VALUE"
  run 1 "$reprise" check deep.rp -D NOPE=3; complains NOPE
  printf 'model M(x: [65536, 65536]) {\n  loss mean(x)\n}\n' >large.rp
  run 0 "$reprise" check large.rp --json; says '65536, 65536'
  printf 'model M(x: [4294967296, 4294967296]) {\n  loss mean(x)\n}\n' >overflow.rp
  run 1 "$reprise" check overflow.rp; complains "overflow.rp:1:"
  for dim in 0 -3; do
    printf 'model M(x: [%s]) {\n  loss mean(x)\n}\n' "$dim" >dim.rp
    run 1 "$reprise" check dim.rp; complains "dim.rp:1:"
  done
  printf 'model M(x: [8, 4], y: [8, 5]) {\n  loss mean(x + y)\n}\n' >shape.rp
  run 1 "$reprise" check shape.rp; complains "shape.rp:2:"; complains '\^'
  printf 'model   M( x:[4] ){\n# note\nloss mean( x )\n}\n' >ugly.rp
  run 1 "$reprise" fmt --check ugly.rp
  run 0 "$reprise" fmt ugly.rp; grep -q "# note" ugly.rp || fail "fmt lost a comment"
  run 0 "$reprise" fmt --check ugly.rp
  "$reprise" fmt - <ugly.rp >again.rp; cmp -s ugly.rp again.rp || fail "fmt is not idempotent"
  ;;
budgets)
  for budget in -1 nan inf 0 "" 10XB 18446744073709551616 1e3 " 5MiB" 5MiBB .5MiB 99999999TiB; do
    run 2 "$reprise" compile trace.rp -o prog "--memory-budget=$budget"; complains "memory-budget"
    [ ! -e prog ] || fail "a program was written for budget '$budget'"
  done
  run 0 "$reprise" compile trace.rp -o prog --memory-budget=64MiB
  run 0 ./prog --plan; cp out plan64
  run 0 "$reprise" compile trace.rp -o prog --memory-budget=67108864; ./prog --plan >plan
  cmp -s plan plan64 || fail "64MiB is not 67,108,864"
  run 3 "$reprise" compile trace.rp -o small --memory-budget=128; complains "does not fit 128 B"; complains "smallest budget with a plan"
  [ ! -e small ] || fail "a program was written although nothing fits"
  ls small* 2>/dev/null | grep -q . && fail "something half-written was left"
  run 3 "$reprise" compile deep.rp -o small --strategy=none --memory-budget=900KiB; complains "none"
  [ ! -e small ] || fail "--strategy=none became another strategy"
  for command in plan compile; do
    run 5 "$reprise" $command trace.rp --memory-budget=128 "--planner=echo '{\"event\": \"end\", \"reason\": \"work limit\"}'; exit 5; :"
    complains "no plan of Trace within 128 B was found"; complains "smallest budget with a plan: [0-9,]* B"; complains "note: work limit"
  done
  ;;
plan)
  [ -f "$shared/graphs/chain8.json" ] || { echo "no public graphs at $shared: skipped"; exit 77; }
  # budget in bytes, extra executions (planner.md, section 3: exhaustive search)
  for pair in 3145728:28 4194304:9 5242880:5 6291456:4 7340032:3 8388608:2 9437184:1 10485759:1 10485760:0; do
    run 0 "$reprise" plan "$shared/graphs/chain8.json" --memory-budget="${pair%:*}" -q --plan-out=plan.json --json
    python3 -c "import json; p = json.load(open('plan.json')); assert p['cost'] - p['base_cost'] == ${pair#*:}, p['cost']" ||
      fail "chain8 at ${pair%:*}: expected ${pair#*:} more executions"
    if [ -f "$shared/../tools/check_plan.py" ]; then run 0 python3 "$shared/../tools/check_plan.py" "$shared/graphs/chain8.json" plan.json; fi
  done
  for pair in 3145728:10 4194304:5 5242880:4 6291456:3 7340032:2 8388608:1 9437184:0; do
    run 0 "$reprise" plan "$shared/graphs/chain8-inplace.json" --memory-budget="${pair%:*}" -q --plan-out=plan.json --json
    python3 -c "import json; p = json.load(open('plan.json')); assert p['cost'] - p['base_cost'] == ${pair#*:}, p['cost']" ||
      fail "chain8-inplace at ${pair%:*}: expected ${pair#*:} more executions"
  done
  run 3 "$reprise" plan "$shared/graphs/chain8.json" --memory-budget=3145727; complains "3,145,728"
  run 3 "$reprise" plan "$shared/graphs/chain8.json" --memory-budget=2MiB; complains "3,145,728"
  run 0 "$reprise" plan "$shared/graphs/chain8.json"; says "everything is kept"
  run 2 "$reprise" plan "$shared/graphs/chain8.json" -D B=3; complains "graph file"
  run 0 "$reprise" sweep "$shared/graphs/chain8.json" --csv=curve.csv --points=6 -q; [ "$(wc -l <curve.csv)" = 37 ] || fail "6 strategies, 6 budgets"
  python3 - <<'CHECK' || fail "a sweep's curve rises with more memory"
import csv
best = {}
for row in csv.DictReader(open("curve.csv")):
    if not row["cost"]: continue
    cost = float(row["cost"])
    assert cost <= best.get(row["strategy"], cost), row
    assert int(row["peak"]) <= int(row["budget"]), row
    best[row["strategy"]] = cost
CHECK
  ;;
options)
  run 2 "$reprise" compile trace.rp --emit=java; complains "exe, c, "
  run 2 "$reprise" compile trace.rp --strategy=best; complains "ilp, none"
  run 1 "$reprise" compile trace.rp --device=abacus -o prog; complains "rtx4090"
  run 2 "$reprise" compile trace.rp -o; complains "lacks its value"
  run 2 "$reprise" compile trace.rp --quiet=3; complains "takes no value"
  run 2 "$reprise" compile trace.rp -o -; complains "one text"
  run 0 "$reprise" device; says h200
  run 0 "$reprise" device h100; says "memory"
  run 0 "$reprise" device h100 -o h100.device; run 0 "$reprise" plan deep.rp --device=./h100.device
  cp out by_file; run 0 "$reprise" plan deep.rp --device=h100; cmp -s out by_file || fail "a description by file is not the one by name"
  run 0 "$reprise" plan deep.rp --device=cpu; cmp -s out by_file && fail "--device changes nothing"
  printf 'name = x\nflops = nan\n' >bad.device
  run 1 "$reprise" plan deep.rp --device=./bad.device; complains "bad.device:2:"
  run 0 "$reprise" plan deep.rp --memory-budget=900KiB --solver-nodes=10 -q --plan-out=a.json; run 0 "$reprise" plan deep.rp --memory-budget=900KiB --solver-nodes=10 -q --plan-out=b.json
  cmp -s a.json b.json || fail "the same question got two plans"
  run 0 "$reprise" plan deep.rp --memory-budget=900KiB --solver-nodes=10 --plan-in=a.json -q
  run 1 "$reprise" plan trace.rp --plan-in=a.json; complains "a.json"
  run 2 "$reprise" plan deep.rp --plan-in=a.json --strategy=greedy; complains "plan-in is where --strategy=ilp starts from"
  run 0 "$reprise" plan deep.rp --memory-budget=900KiB --solver-nodes=10 --planner=/nonexistent/planner; says "note"
  for dump in frontend simplify grad fuse kernels checkpoint; do run 0 "$reprise" compile trace.rp --dump=$dump; says Trace; done
  ;;
compile)
  run 0 "$reprise" compile trace.rp -o trace; says "arena"
  run 0 ./trace --print
  for line in "loss = 288" "y = 24" "u = 6" "grad.a = 192" "grad.b = 144" "grad.x = 288" "grad.u = 96"; do says "^$line\$"; done
  run 0 "$reprise" compile trace.rp --emit=c -o -; says "int main"; cp out one.c
  run 0 "$reprise" compile trace.rp --emit=c -o -; cmp -s out one.c || fail "emitted C differs from run to run"
  grep -qF "$source" one.c && fail "emitted C names a folder of this machine"
  run 0 "$reprise" compile trace.rp --emit=c,ir,graph -o all; for file in all.c all.ir all.graph.json; do [ -s $file ] || fail "$file was not written"; done
  run 0 "$reprise" plan all.graph.json
  run 0 "$reprise" verify trace.rp; says "finite differences.*ok"; says "program against interpreter.*ok"
  says "at 576 B .*bitwise equal  ok"
  run 0 "$reprise" verify deep.rp -D L=2 -D B=4; says "program against interpreter.*ok"
  run 0 "$reprise" verify trace.rp --points=1; grep -q "^at " out && fail "--points=1 compares nothing else"
  run 0 "$reprise" verify trace.rp --memory-budget=650 --json; says '"budget": 650'
  run 3 "$reprise" verify trace.rp --memory-budget=100; complains "does not fit 100 B"
  # a compiler that makes another program of everything but the first
  cat >fickle <<'END'
#!/bin/sh
for word; do case $word in *.c) source=$word ;; esac; done
if [ -e compiled ]; then sed -i 's/0\.5f \* t1/0.75f * t1/' "$source"; fi
touch compiled
exec "${REAL_CC:-cc}" "$@"
END
  chmod +x fickle
  run 6 "$reprise" verify trace.rp --cc=./fickle; says "losses, gradients, weights DIFFER"; complains "the losses at a budget of 576 B differ"
  sed '/^train/d' trace.rp >untrained.rp
  run 0 "$reprise" compile untrained.rp -o untrained; complains "warning: no train block for 'Trace'"
  run 1 ./untrained --steps 1; complains "add a 'data' item"
  sed 's/; optimizer.*/ }/' trace.rp >idle.rp
  run 0 "$reprise" check idle.rp; complains "idle.rp:9:7: warning: the train block has no 'optimizer'"
  run 0 "$reprise" verify idle.rp; [ "$(grep -c "warning: the train block" err)" = 1 ] || fail "a warning is said once"
  run 4 "$reprise" compile trace.rp -o /nonexistent/prog; complains "nonexistent"
  run 0 "$reprise" compile trace.rp --emit=graph -o trace.json
  for command in plan sweep; do
    run 4 "$reprise" $command none.json; complains "cannot open 'none.json'"
    run 4 "$reprise" $command "$work"; complains "cannot read '$work'"
  done
  run 4 "$reprise" plan trace.json --plan-in=none.json; complains "cannot open 'none.json'"
  run 4 "$reprise" compile trace.rp -o prog --plan-in="$work"; complains "cannot read '$work'"; [ ! -e prog ] || fail "a program without its plan"
  for option in -DB=1 --device=none --profile=none --target=cuda; do
    run 2 "$reprise" plan trace.json $option; complains "goes with model files; 'trace.json' is a graph file"
  done
  run 4 "$reprise" compile trace.rp -o prog --cc=/nonexistent/cc; [ ! -e prog ] || fail "half-written program"
  ;;
signals) # the planner and files for it end with the compiler, and so does the folder of a trial
  mkdir temporary
  printf '#!/bin/sh\necho $$ >started\nexec sleep 60\n' >slow.sh
  printf '#!/bin/sh\necho $$ >started\nexec sleep 2\n' >slow_cc.sh
  chmod +x slow.sh slow_cc.sh
  # stopped SIGNAL EXPECTED_EXIT_CODE COMMAND...: the signal comes when a script has started
  stopped() {
    with=$1 expected=$2; shift 2
    rm -f started
    TMPDIR=$work/temporary env --default-signal=INT "$reprise" "$@" >out 2>err </dev/null &
    until [ -s started ] || ! kill -0 $!; do sleep 0.1; done
    kill -s "$with" $!
    wait $!
    code=$?
    [ "$code" = "$expected" ] || fail "expected exit code $expected after SIG$with, found $code: $*"
    [ -z "$(ls temporary)" ] || { fail "left after SIG$with: $(ls temporary)"; rm -rf temporary/*; }
  }
  for signal in INT:130 TERM:143 HUP:129; do
    for command in "plan deep.rp --memory-budget=900KiB" "compile deep.rp --memory-budget=900KiB -o prog" "sweep deep.rp"; do
      stopped ${signal%:*} ${signal#*:} $command --planner="$work/slow.sh"
      kill -0 "$(cat started)" 2>/dev/null && fail "the planner of '$command' goes on after SIG${signal%:*}"
    done
    stopped ${signal%:*} ${signal#*:} verify trace.rp --cc="$work/slow_cc.sh"
  done
  [ ! -e prog ] || fail "a program was written"
  ;;
bitwise)
  python3 - <<'DATA'
import random
random.seed(3)
with open("data.csv", "w") as f:
    for _ in range(512): f.write(",".join("%.4f" % random.uniform(-1, 1) for _ in range(64)) + "\n")
DATA
  run 0 "$reprise" compile deep.rp -o keep_all; run 0 ./keep_all --threads 2 --steps 10 --save all.st --dump-grads all.grads
  for budget in 1200KiB 900KiB 620KiB; do
    run 0 "$reprise" compile deep.rp -o prog --memory-budget=$budget --solver-nodes=10
    run 0 ./prog --threads 2 --steps 10 --poison --save prog.st --dump-grads prog.grads
    cmp -s all.grads prog.grads || fail "gradients at $budget differ from keep-all's"
    cmp -s all.st prog.st || fail "weights at $budget differ from keep-all's"
    run 0 ./prog --memory
    python3 - "$budget" <<'CHECK' || fail "planned and measured memory at $budget"
import json, sys
budget = int(sys.argv[1][:-3]) * 1024
event = [json.loads(line) for line in open("out") if '"memory"' in line][0]
assert event["live_peak"] <= event["arena"] == event["high_water"] <= budget, event
CHECK
  done
  ;;
start)
  mkdir bin && ln -s "$reprise" bin/reprise # what it writes goes beside
  run 0 sh "$source/examples/start.sh" "$work"; says "trained weights are in"
  [ -s digits.safetensors ] || fail "no weights were written"
  for page in README.md docs examples; do
    grep -rhoE --include='*.md' '\]\([^)# ]+' "$source/$page" | sed 's/^](//' | grep -v : | while read -r link; do
      [ -e "$source/$link" ] || [ -e "$source/docs/$link" ] || [ -e "$source/examples/$link" ] || echo "$page: $link"
    done
  done >missing
  [ ! -s missing ] || { fail "links to files that are not there"; cat missing; }
  ;;
install)
  cmake --install "$build" --prefix "$work/prefix" >install.log 2>&1 || { cat install.log; exit 1; }
  mv prefix elsewhere # found from where it runs, not from where it was installed
  run 0 env -i PATH=/usr/bin:/bin "$work/elsewhere/bin/reprise" compile trace.rp -o trace
  run 0 ./trace --print; says "grad.a = 192"
  run 0 env -i PATH=/usr/bin:/bin "$work/elsewhere/bin/reprise" plan deep.rp --memory-budget=900KiB --solver-nodes=10
  grep -q "note" out && { fail "the installed planner was not found"; grep note out; }
  ;;
*) echo "unknown group $group"; exit 1 ;;
esac
finish_checks
