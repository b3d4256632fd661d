#!/usr/bin/env python3
"""Programs with plans that no planner made: whatever valid schedule is compiled, the results are those of keeping everything.

usage: planted.py REPRISE SOURCE_FOLDER layer_norm       one output of several kept, the other made again, both ways
       planted.py REPRISE SOURCE_FOLDER updates OPTIMIZER  cheaper plans that read a weight after its update
       planted.py REPRISE SOURCE_FOLDER random MODEL PLANS
                                                         random schedules of a model of models.py or a model file
"""
import copy
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import models
from planted_plans import Graph, plan_at_random, plan_of_runs

LAYER_NORM = """
import "PEAK"
dim B = 4, E = 64
model Norm(x: [B, E]) {
  param scale: [E] = normal(1)
  param weight: [E] = normal(1)
  param bias: [E] = normal(1)
  param v: [B, E] = normal(1)
  h = x*scale
  y = layer_norm(h, weight, bias)
  grad x
  value = mean(v*square(y))
  loss value + peak:Peak(value, 2048)
}
train Norm { data x = csv("data.csv"); optimizer adam(lr=0.01); seed 3 }
"""

# h v is read after v's gradient is known, and v's update runs as soon as it can: making h v again there is cheap and wrong
GATED = """
dim B = 256
model Gated(x: [B, 32], y: [B, 32]) {
  h = x
  for i in 0..4 {
    param w.{i}: [32, 32] = normal(0.1)
    param v.{i}: [32, 32] = normal(0.1)
    h = exp(h @ w.{i})*(h @ v.{i})
  }
  loss mean(h) + 0*mean(y)
}
train Gated { data x, y = csv("data.csv"); optimizer OPTIMIZER; seed 3 }
"""
GATED_BUDGETS = 6


class Compiler:
    def __init__(self, reprise, model):
        self.reprise, self.model = reprise, model
        self.defines = [word for d in model.defines for word in ("-D", d)]

    def run(self, command, *words, code=0):
        done = subprocess.run([self.reprise, command, self.model.path, *self.defines, *words], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        if done.returncode != code:
            sys.exit(f"expected exit code {code}, found {done.returncode}: {command} {words}\n{done.stdout}{done.stderr[-3000:]}")
        return done

    def graph(self):
        self.run("compile", "--emit=graph", "-q", "-o", "graph.json")
        return Graph(json.load(open("graph.json")))

    def smallest(self):
        refused = self.run("plan", "--memory-budget=1", "--solver-nodes=10", code=3)
        return int(re.search(r"smallest budget with a plan: ([\d,]+) B", refused.stderr).group(1).replace(",", ""))

    def compile_planted(self, plan):
        """The program of exactly this plan: a planner that knows nothing else says it."""
        write("plan.json", plan)
        with open("stream", "w") as f:
            f.write(json.dumps({"event": "plan", "plan": plan}) + "\n" + json.dumps({"event": "end", "reason": "planted"}) + "\n")
        with open("planner", "w") as f:
            f.write("cat stream\n")
        self.run("compile", f"--memory-budget={plan['peak']}", "--planner=sh planner", "--cflags=-O1", "-q", "-o", "program")


def write(path, plan):
    with open(path, "w") as f:
        json.dump(plan, f)


def runs_of(plan):
    return [step[1] for step in plan["schedule"] if step[0] == "run"]


def train(model):
    common = ["./program", "--threads", "2", *model.options]

    def output(*words):
        done = subprocess.run([*common, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            sys.exit(f"{words}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        return done.stdout

    output("--steps", "3", "--poison", "--save", "weights.st", "--dump-grads", "gradients.st", "--log", "log.jsonl")
    losses = [event["loss"] for event in map(json.loads, open("log.jsonl")) if event["event"] == "step"]
    memory = [json.loads(line) for line in output("--memory").splitlines() if '"memory"' in line][0]
    plan = json.loads(output("--plan"))
    return losses, open("gradients.st", "rb").read(), open("weights.st", "rb").read(), memory, plan


def check(compiler, expected, plan, name):
    """Compiles and trains; the arena may be above the plan's peak only by what packing leaves."""
    compiler.compile_planted(plan)
    losses, gradients, weights, memory, found = train(compiler.model)
    checks = {"losses": losses == expected[0], "gradients": gradients == expected[1], "weights": weights == expected[2],
              "runs": runs_of(found) == runs_of(plan), "peak": memory["live_peak"] == plan["peak"],
              "arena": memory["arena"] == memory["high_water"] == plan["peak"]}
    faults = [what for what, good in checks.items() if not good]
    if faults:
        write(f"{name}.json", plan)
        sys.exit(f"{name}: {', '.join(faults)} differ\n{json.dumps(plan['schedule'])}\n{memory}")


def expect_refused(compiler, plan, said):
    write("wrong.json", plan)
    for command in (["plan"], ["compile", "-o", "wrong"]):
        done = compiler.run(*command, f"--memory-budget={plan['peak']}", "--plan-in=wrong.json", "--solver-nodes=10", code=1)
        if not re.search(said, done.stderr):
            sys.exit(f"expected '{said}', found {done.stderr}")
    if os.path.exists("wrong"):
        sys.exit("a refused plan became a program")


def check_layer_norm(compiler, expected):
    graph = compiler.graph()
    everything = [(i, ()) for i in range(len(graph.nodes))]
    norm, backward = graph.find("layer_norm"), graph.find("layer_norm_backward", "backward")
    y, mean, rstd = graph.outputs(norm)
    reader = next(i for i in graph.readers[y] if i > graph.find("mean") and i < backward)
    cases = {"y kept, statistics made again": {backward: (y,)},
             "statistics kept, y made again": {reader: (mean, rstd)},
             "y and mean kept, rstd made again": {backward: (y, mean)},
             "rstd kept, y and mean made again": {reader: (rstd,)},
             "all made again twice": {reader: (), backward: (y,)}}
    for name, again in cases.items():
        runs = [pair for i, pair in enumerate(everything) for pair in ([(norm, again[i]), pair] if i in again else [pair])]
        plan = plan_of_runs(graph, runs)
        check(compiler, expected, plan, name)
        # without the second run, what it made is read after it was freed
        wrong = copy.deepcopy(plan)
        second = max(k for k, step in enumerate(plan["schedule"]) if step[:2] == ["run", graph.nodes[norm]["id"]])
        del wrong["schedule"][second]
        expect_refused(compiler, wrong, "wrong.json: not a plan of this graph: step [0-9]+: \"n[0-9]+[^\"]*\" \\(norm.rp:[0-9:]+\\) reads \"[^\"]+\", "
                       "which is not live")
        # a dropped output that nobody keeps
        if again.get(reader) == (mean, rstd):
            wrong = copy.deepcopy(plan)
            wrong["schedule"] = [step for step in plan["schedule"] if step != ["free", mean]]
            first = wrong["schedule"].index(["run", graph.nodes[norm]["id"]])
            wrong["schedule"].insert(first + 1, ["free", mean])
            expect_refused(compiler, wrong, f"reads \"{re.escape(mean)}\", which is not live")


def late_reads(graph, plan):
    """Runs that read a persistent tensor after a later node of the graph has written it."""
    late, written = [], {}
    for node in runs_of(plan):
        i = graph.position[node]
        late += [(node, name) for name in graph.nodes[i]["inputs"] if name in written and written[name] > i]
        for name in graph.nodes[i].get("writes", []):
            written[name] = i
    return late


def check_updates(compiler, expected):
    """At several budgets, the planner's plan and that of the same graph without writes: where the second is cheaper and reads late it is
    refused wherever it is handed in, and the program of the first is right."""
    graph, both = compiler.graph(), 0
    unwritten = copy.deepcopy(graph.graph)
    for node in unwritten["nodes"]:
        node.pop("writes", None)
    json.dump(unwritten, open("unwritten.json", "w"))
    keep_all = expected[3]["arena"]
    smallest = compiler.smallest()
    for i in range(GATED_BUDGETS):
        budget = smallest + (keep_all - smallest)*i//GATED_BUDGETS
        compiler.run("plan", f"--memory-budget={budget}", "-q", "--solver-nodes=10", "--plan-out=legal.json")
        subprocess.run([compiler.reprise, "plan", "unwritten.json", f"--memory-budget={budget}", "-q", "--solver-nodes=10",
                        "--plan-out=cheap.json"], check=True)
        legal, cheap = json.load(open("legal.json")), json.load(open("cheap.json"))
        if late_reads(graph, legal):
            sys.exit(f"the plan at {budget} reads late: {late_reads(graph, legal)}")
        if cheap["cost"] > legal["cost"]*(1 - 1e-9) or not late_reads(graph, cheap):
            continue
        both += 1
        expect_refused(compiler, cheap, r"wrong.json: not a plan of this graph: step \d+: \"[^\"]+\" \(gated.rp:[0-9:]+\) must see "
                       r"\"[vw].\d\" as it was before \"[^\"]+\" \(gated.rp:[0-9:]+\) wrote it")
        if both <= 2:
            check(compiler, expected, legal, f"gated-{budget}")
    print(f"{compiler.model.name}: {both} of {GATED_BUDGETS} budgets have a cheaper plan that reads late")
    if not both:
        sys.exit("no budget has both a legal plan and a cheaper one that reads late")


def main():
    reprise, source, what = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    paths = [os.path.abspath(word) for word in sys.argv[4:5]]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        models.write_data()
        peak = os.path.join(source, "tests/examples/behaviours/parts/peak.rp")
        if what == "layer_norm":
            model = models.Model("norm", models.own("norm", LAYER_NORM.replace("PEAK", peak)), [], [])
        elif what == "updates":
            model = models.Model("gated", models.own("gated", GATED.replace("OPTIMIZER", sys.argv[4])), [], [])
        elif sys.argv[4].endswith(".rp"):
            model = models.Model("given", paths[0], [], [])
        else:
            model = models.find(sys.argv[4], source)
        compiler = Compiler(reprise, model)
        compiler.run("compile", "--cflags=-O1", "-q", "-o", "program")
        expected = train(model)
        if what == "layer_norm":
            check_layer_norm(compiler, expected)
            return
        if what == "updates":
            check_updates(compiler, expected)
            return
        graph, wanted, seed, keep_all = compiler.graph(), int(sys.argv[5]), 0, expected[3]["arena"]
        while wanted:
            plan = plan_at_random(graph, random.Random(seed), (0.1, 0.2, 0.4, 0.8)[seed % 4])
            seed += 1
            if seed > 1000:
                sys.exit(f"{model.name}: too few random plans need less than keeping everything")
            if plan["peak"] >= keep_all:  # a budget that holds everything is never answered with clones
                continue
            wanted -= 1
            check(compiler, expected, plan, f"{model.name}-{seed}")
            print(f"{model.name} {seed}: {len(runs_of(plan)) - len(graph.nodes)} further runs, peak {plan['peak']:,} of {keep_all:,}", flush=True)


main()
