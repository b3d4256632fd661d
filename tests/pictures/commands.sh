#!/bin/sh
# usage: commands.sh GROUP REPRISE SOURCE_FOLDER SHARED_DATA
# Pictures as a user asks for them. Groups: files, report, explain, layouts (slow), browser (needs chromium).
set -u
group=$1 reprise=$2 source=$3 shared=$4
. "$(dirname "$0")/../checks.sh"
graphs=$source/tests/pictures/graphs
well_formed() { python3 -c "import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])" "$1" || fail "$1 is not well-formed XML"; }
planned() { "$reprise" plan "$graphs/digits.json" --memory-budget=170KiB --strategy=greedy "$@"; }
# A layout gets five seconds of processor time.
lays_out() { (ulimit -t 5; dot -Tsvg "$1" -o laid_out.svg 2>/dev/null) || fail "dot does not lay out $2 in 5 s"; }

case $group in
files)
  run 0 planned --dot=a.dot --svg=a.svg -q; silent
  run 0 planned --dot=b.dot --svg=b.svg -q
  cmp -s a.dot b.dot || fail "DOT differs from run to run"
  cmp -s a.svg b.svg || fail "SVG differs from run to run"
  well_formed a.svg
  run 0 planned --json; cp out plan.json
  python3 - <<'CHECK' || fail "numbers of the pictures are not those of the plan"
import json, re
plan, dot, svg = json.load(open("plan.json")), open("a.dot").read(), open("a.svg").read()
runs = [step for step in plan["schedule"] if step[0] == "run"]
for key in "peak", "cost", "base_cost", "lower_bound", "budget":
    assert abs(float(re.search(r"\b%s=\"?([^,\"\n]+)" % key, dot).group(1)) - plan[key]) <= 1e-14 * plan[key], key
costs = [float(c) for c in re.findall(r"^\t*cost=\"?([0-9.e+-]+)", dot, re.M)]
assert abs(sum(costs) - plan["cost"] - plan["cost"]) < 1e-6 * plan["cost"]  # the title's and the boxes'
assert sum(int(r) for r in re.findall(r"runs=(\d+)", dot)) == len(runs)
assert dot.count("class=clone") == sum(1 for i, r in enumerate(runs) if r[1] in [q[1] for q in runs[:i]])
assert max(int(b) for b in re.findall(r'data-live="(\d+)"', svg)) == plan["peak"]
assert int(re.search(r'data-keep-all-peak="(\d+)"', svg).group(1)) == plan["keep_all"]["peak"]
assert abs(float(re.search(r'data-cost="([^"]+)"', svg).group(1)) - plan["cost"]) <= 1e-14 * plan["cost"]
CHECK
  run 0 planned --dot=-; says "^digraph plan"; [ "$(grep -c "live peak  " out)" = 0 ] || fail "the report goes into a DOT file on standard output"
  run 0 planned --svg=-; says "^<svg"
  for detail in full block module; do run 0 planned --dot=detail.dot --dot-detail=$detail -q; done
  run 2 planned --dot=c.dot --dot-detail=fine; complains "full, block or module"; [ ! -e c.dot ] || fail "a refused command writes"
  run 2 planned --dot-detail=full; complains "goes with"
  run 2 planned --points=3; complains "goes with"
  run 2 planned --dot=- --json; complains "only one result"
  run 4 planned --svg=missing/folder/x.svg; complains "missing/folder"
  run 0 "$reprise" sweep "$graphs/digits.json" --points=4 --memory-budget=170KiB --svg=curve.svg --csv=curve.csv; says "more saves"; well_formed curve.svg
  python3 - <<'CHECK' || fail "the curves are not those of the table"
import csv, re
svg = open("curve.svg").read()
drawn = sorted(re.findall(r'data-strategy="(\w+)" data-budget="(\d+)" data-peak="(\d+)" data-cost="([^"]+)"', svg))
rows = [(r["strategy"], r["budget"], r["peak"], float(r["cost"])) for r in csv.DictReader(open("curve.csv")) if r["peak"]]
assert sorted(rows) == sorted((s, b, p, float(c)) for s, b, p, c in drawn) and rows
CHECK
  run 0 "$reprise" compile "$source/examples/digits/digits.rp" --emit=ir -o digits.ir --svg=compiled.svg --plan-out=compiled.json; well_formed compiled.svg
  [ -s compiled.json ] || fail "compile does not write its plan"
  # the terminal: the verdict first, 80 columns, no escapes in a file
  run 0 planned; head -n 1 out | grep -q "^Digits fits 170.0 KiB: +" || fail "the verdict is not the first line"
  python3 -c "import sys; sys.exit(max(len(l) for l in open('out', encoding='utf-8').read().split('\n')) > 80)" || fail "more than 80 columns"
  if grep -q "$(printf '\033')" out; then fail "colour in a file"; fi
  if command -v script >/dev/null; then
    script -qec "'$reprise' plan '$graphs/digits.json' --memory-budget=170KiB --strategy=greedy" /dev/null >terminal </dev/null
    grep -q "$(printf '\033')" terminal || fail "no colour on a terminal"
    NO_COLOR=1 script -qec "'$reprise' plan '$graphs/digits.json' --memory-budget=170KiB --strategy=greedy" /dev/null >terminal </dev/null
    if grep -q "$(printf '\033\\[')" terminal; then fail "colour in spite of NO_COLOR"; fi
  fi
  ;;
report)
  run 0 planned --report=a.html --points=3 -q
  run 0 planned --report=b.html --points=3 -q; cmp -s a.html b.html || fail "the report differs from run to run"
  cp "$graphs/digits.json" graph.json
  python3 - <<'CHECK' || fail "the report lacks something, or wants the network"
import json, re
text = open("a.html", encoding="utf-8").read()
assert not re.search(r"""(src|href)=["'](?!#|data:)""", text.replace('xlink:href="', "")), "network"
for part in 'id="anatomy"', 'id="timeline"', 'id="curve"', 'id="graph"', 'id="storages"', "x#2", "174,080 B":
    assert part in text, part
graph = json.load(open("graph.json"))
assert text.count("<tr class=") == len(graph["tensors"]) + sum(len(n["outputs"]) for n in graph["nodes"]), "a row per storage"
CHECK
  run 0 "$reprise" plan "$source/examples/digits/digits.rp" --memory-budget=171KiB --report=model.html --points=2 -q
  grep -q 'class="source"' model.html || fail "no source in the report of a model"
  grep -q "again 1" model.html || fail "no recomputed line is marked"
  PATH=$work "$reprise" plan "$graphs/digits.json" --strategy=none --report=no-dot.html --points=2 -q 2>/dev/null || fail "a report needs dot"
  grep -q "Graphviz is not installed" no-dot.html || fail "the report does not say that dot is missing"
  ;;
explain)
  run 0 "$reprise" explain x "$graphs/digits.json" --memory-budget=170KiB --strategy=greedy; says "^x: recomputed"; says "keeping it"
  run 0 "$reprise" explain fc2.logits "$graphs/digits.json"; says "^fc2.logits: kept"; says "recomputing it would cost"
  run 0 "$reprise" explain fc1.weight "$graphs/digits.json"; says "nothing is decided"
  run 0 "$reprise" explain fc1.contract "$graphs/digits.json"; says "freed after its last use in the forward pass"
  run 0 "$reprise" explain fc2.logits "$graphs/digits.json" --json
  python3 -c "import json; p = json.load(open('out')); assert p['other_way']['cost'] > p['cost']" || fail "the other way is not dearer"
  run 2 "$reprise" explain fc2.logit "$graphs/digits.json"; complains "did you mean 'fc2.logits'"
  run 2 "$reprise" explain "$graphs/digits.json"; complains "expected STORAGE"
  run 3 "$reprise" explain x "$graphs/digits.json" --memory-budget=1KiB; complains "does not fit"
  run 4 "$reprise" explain x missing.rp
  ;;
docs)
  # every option of every command stands in the man page, and completion offers it
  for command in check fmt compile plan sweep explain verify device; do
    run 0 "$reprise" $command --help
    grep -o -e '--[a-z0-9-]*' out | sort -u >options
    while read -r option; do
      [ "$option" = --help ] && continue
      sed 's/\\-/-/g' "$source/docs/reprise.1" | grep -q "^[^.].*${option}\\\\fR" || fail "man page: $command $option"
    done <options
    if command -v bash >/dev/null; then
      PATH=$(dirname "$reprise"):$PATH bash -c 'source "$1"; COMP_WORDS=(reprise "$2" --); COMP_CWORD=2; _reprise
        printf "%s\n" "${COMPREPLY[@]}"' - "$source/docs/completion/reprise.bash" $command | grep -v -x -e -- | sort -u >offered
      grep -v -x -e -- options | cmp -s - offered || fail "bash completion of $command"
    fi
  done
  if command -v zsh >/dev/null; then zsh -n "$source/docs/completion/_reprise" || fail "zsh completion"; fi
  if command -v groff >/dev/null; then
    for page in reprise.1 reprise-program.7; do
      groff -t -man -Tutf8 -ww -z "$source/docs/$page" 2>warnings; [ ! -s warnings ] || { fail "$page"; head -n 3 warnings; }
    done
  fi
  # what the tour shows exists
  grep -o 'pictures/[a-z0-9_-]*\.svg' "$source/docs/tour.md" | sort -u | while read -r picture; do
    [ -s "$source/docs/$picture" ] || echo "$picture"
  done >missing
  [ ! -s missing ] || fail "the tour lacks $(cat missing)"
  ;;
layouts)
  command -v dot >/dev/null || { echo "dot is not installed"; exit 77; }
  draws() { # NAME ARGUMENTS...: the default picture with everything kept and with much recomputed
    name=$1; shift
    for strategy in none sqrt selective; do
      run 0 "$reprise" plan "$@" --strategy=$strategy --dot=g.dot -q && lays_out g.dot "$name ($strategy)"
    done
  }
  for example in trace digits/digits mnist batch_norm adapter char_rnn char_transformer gpt2; do
    run 0 "$reprise" compile "$source/examples/$example.rp" --emit=graph -o g.json -q --strategy=none
    draws $example g.json
  done
  run 0 "$reprise" compile "$source/examples/gpt2.rp" -D L=48 -D C=1600 -D H=25 --emit=graph -o g.json -q --strategy=none
  draws "gpt2 1.5B" g.json
  run 0 "$reprise" plan g.json --strategy=blocks --memory-budget=64GiB --dot=g.dot -q && lays_out g.dot "gpt2 1.5B, blocks"
  for file in "$shared"/graphs/*.json; do [ -e "$file" ] && draws "$file" "$file"; done
  for count in 1000 5000; do
    for modules in '' ', "module": "h.%d"'; do
      python3 - $count "$modules" >long.json <<'MAKE'
import json, sys
count, modules = int(sys.argv[1]), sys.argv[2]
nodes = []
for i in range(count): nodes.append({"id": f"f{i}", "cost": 1 + i % 7, "inputs": [f"h{i - 1}"] if i else [], "outputs": [{"id": f"h{i}", "bytes": 1000 + i % 5}], "phase": "forward"})
for i in reversed(range(count)): nodes.append({"id": f"b{i}", "cost": 2, "inputs": [f"h{i}"] + ([f"g{i + 1}"] if i + 1 < count else []), "outputs": [{"id": f"g{i}", "bytes": 1000}], "phase": "backward"})
if modules:
    for n in nodes: n["module"] = "h.%d" % (int(n["id"][1:]) // 4)
print(json.dumps({"format": "reprise-graph", "version": 1, "nodes": nodes, "results": ["g0"]}))
MAKE
      draws "$((2 * count)) nodes" long.json
    done
  done
  ;;
browser)
  browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || { echo "chromium is not installed"; exit 77; }
  run 0 planned --report=a.html --points=3 -q
  # a click on "bytes" sorts, a second one the other way; the search leaves the rows that match
  sed 's|</body>|<script>(function(){var t=document.getElementById("storages"),b=t.tHead.querySelectorAll("button")[1];\
function column(){return Array.prototype.map.call(t.tBodies[0].rows,function(r){return +r.cells[1].dataset.value;});}\
function sorted(d){return column().every(function(v,i,a){return !i \|\| d*(v-a[i-1])>=0;});}\
b.click();var first=sorted(-1);b.click();var second=sorted(1);var s=document.querySelector("input[type=search]");\
s.value="recomputed";s.dispatchEvent(new Event("input"));\
var shown=Array.prototype.filter.call(t.tBodies[0].rows,function(r){return !r.hidden;}).length;\
document.title="sorted "+first+" "+second+" shown "+shown+" of "+t.tBodies[0].rows.length;})()</script></body>|' a.html >clicked.html
  "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$work/profile" --enable-logging=stderr --v=0 \
    --dump-dom "file://$work/clicked.html" >dom 2>log || { tail -n 5 log; fail "the browser failed"; }
  grep -q "<title>sorted true true shown [1-9]" dom || { fail "sorting or searching"; grep -o "<title>[^<]*" dom | head -n 1; }
  if grep -q "CONSOLE" log; then fail "messages on the console"; grep CONSOLE log | head -n 3; fi
  for size in 1280,900 400,900; do
    "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$work/profile" --window-size=$size \
      --screenshot="$work/shot.png" "file://$work/a.html" >/dev/null 2>&1
    [ -s shot.png ] || fail "no picture at $size"
  done
  ;;
*) fail "unknown group $group" ;;
esac
finish_checks
