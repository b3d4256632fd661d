#!/usr/bin/env python3
"""What memory is used for, what the reports say about it, and what the source may demand.

usage: memory.py REPRISE SOURCE_FOLDER GROUP [MODEL...]
"""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import models

LINEAR = """
module Linear(x: [..., I], O) {
  param weight: [O, I] = kaiming_uniform
  param bias: [O] = zeros
  return linear(x, weight, bias)
}
"""
# 526,336 bytes of weights; with gradients and both moments four times as many, if all gradients were held to the end
ADAM = LINEAR + """
dim B = 8
model MLP(x: [B, 256], y: [B, 256]) {
  loss mse(fc2:Linear(relu(fc1:Linear(x, 256)), 256), y)
}
train MLP { data x = constant(1); data y = constant(0); optimizer adam(lr=1e-3) }
"""
HEAD = """
dim T = 4096, V = 32000, E = 64
model Head(token: i32[T], target: i32[T]) {
  param table: [V, E] = normal(0.02)
  x = embed(table, token)
  logits = x @ transpose(table)
  loss cross_entropy(logits, target)
}
train Head { data token, target = constant(1); optimizer sgd(lr=0.1) }
"""
FROZEN = LINEAR + """
dim B = 64
model Stack(x: [B, 256]) {
  freeze {
    for i in 0..4 { x = relu(fc{i}:Linear(x, 256)) }
  }
  loss mean(square(head:Linear(x, 10)))
}
train Stack { data x = constant(0.5); optimizer adam(lr=0.1) }
"""
# layers whose activations are most of the memory
DEEP = LINEAR + """
dim B = 512, L = 8, W = 32
model Deep(x: [B, W], y: [B, W]) {
  for i in 0..L { x = dropout(tanh(layer.{i}:Linear(x, W)), 0.1) }
  loss mse(x, y)
}
train Deep { data x, y = csv("data.csv"); optimizer adam(lr=1e-3); seed 5 }
"""
SEGMENTS = LINEAR + """
dim B = 512, W = 32
model Segments(x: [B, W], y: [B, W]) {
  h = tanh(first:Linear(x, W))
  LINE
  h = tanh(third:Linear(z, W))
  h = tanh(fourth:Linear(h, W))
  loss mse(h, y)
}
train Segments { data x, y = csv("data.csv"); optimizer sgd(lr=0.1); seed 5 }
"""
PLANNING = ["--solver-nodes=10"]


class Model:
    def __init__(self, reprise, name, text):
        self.reprise, self.path = reprise, models.own(name, text)

    def call(self, command, *words, code=0):
        done = subprocess.run([self.reprise, command, self.path, *PLANNING, *words], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL)
        expect(done.returncode == code, f"{command} {words}: exit code {done.returncode}, expected {code}\n{done.stderr[-3000:]}")
        return done

    def plan(self, *words):
        return json.loads(self.call("plan", "--json", *words).stdout)

    def refused(self, *words):
        """The report of a budget that nothing fits, and the smallest it names."""
        text = self.call("plan", *words, code=3).stderr
        found = re.search(r"smallest budget with a plan: ([\d,]+) B", text)
        return text, int(found.group(1).replace(",", "")) if found else None

    def compile(self, output, *words):
        self.call("compile", "--cflags=-O1", "-q", "-o", output, *words)
        return "./" + output


def expect(good, message):
    if not good:
        sys.exit(f"FAILED: {message}")


def run(program, *words, code=0):
    done = subprocess.run([program, "--threads", "1", *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    expect(done.returncode == code, f"{program} {words}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stdout


def events(text, kind):
    return [event for event in map(json.loads, text.splitlines()) if event["event"] == kind]


def decisions(plan):
    return {decision["storage"]: decision for decision in plan["decisions"]}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def adam(reprise, source):
    """Updates inside the backward pass need less than all gradients at once; the report says where the peak is."""
    weights = 526336
    model = Model(reprise, "adam", ADAM)
    plan, program = model.plan(), model.compile("program")
    expect(plan["anatomy"]["weights"] == weights and plan["anatomy"]["optimizer_state"] == 2*weights, plan["anatomy"])
    expect(plan["peak"] < 4*weights, f"{plan['peak']} bytes, as if all gradients were held")
    expect(plan["anatomy"]["gradients"] < weights, plan["anatomy"])
    place = plan["peak_at"]
    expect(place["phase"] in ("backward", "update") and re.fullmatch(r"adam.rp:\d+:\d+", place["source"]), place)
    text = model.call("plan").stdout
    expect(f"peak phase   {place['phase']}, {place['source']}" in text, text)
    memory = events(run(program, "--memory"), "memory")[0]
    expect(memory["live_peak"] == memory["arena"] == memory["high_water"] == plan["peak"], memory)
    expect(memory["peak"]["phase"] == place["phase"], memory)
    text, smallest = model.refused("--memory-budget=1500000")
    expect(3*weights < smallest <= plan["peak"], text)
    expect(f"peak phase:                  {place['phase']}" in text and "weights, gradients and optimizer state are" in text, text)
    model.call("plan", f"--memory-budget={smallest}", "-q")
    expect(model.refused(f"--memory-budget={smallest - 1}")[1] == smallest, "the smallest budget depends on the question")


def logits(reprise, source):
    """Logits, softmax and its gradient: at most two of that size at any time; what does not fit names the logits."""
    size = 4096*32000*4
    model = Model(reprise, "head", HEAD)
    plan = model.plan()
    expect(decisions(plan)["logits"]["bytes"] == size == 524288000, decisions(plan))
    expect(plan["peak"] < 2*size + 30_000_000, plan["peak"])
    graph = json.loads(model.call("compile", "--emit=graph", "-o", "-").stdout)
    large = [output["id"] for node in graph["nodes"] for output in node["outputs"] if output["bytes"] >= size]
    expect(len(large) <= 3, f"storages as large as the logits: {large}")
    text, smallest = model.refused("--memory-budget=500MB")
    expect(size < smallest <= plan["peak"], text)
    expect(re.search(r"500.0 MiB .*logits .*head.rp:6:\d+|500.0 MiB .*logits .*head.rp:\d+:\d+", text), text)
    model.call("plan", f"--memory-budget={smallest}", "-q")


def frozen(reprise, source):
    """What trains alone costs memory: the input of the head, no gradient and no moment of a frozen weight."""
    model = Model(reprise, "frozen", FROZEN)
    plan = model.plan()
    kept = [(d["storage"], d["bytes"]) for d in plan["decisions"] if d["bytes"] >= 65536]
    expect(len(kept) == 1 and kept[0][1] == 65536, kept)
    graph = json.loads(model.call("compile", "--emit=graph", "-o", "-").stdout)
    expect(sorted(t["id"] for t in graph["tensors"] if t["role"] == "optimizer_state") ==
           ["optimizer.m.head.bias", "optimizer.m.head.weight", "optimizer.v.head.bias", "optimizer.v.head.weight"], graph["tensors"])
    late = [n for n in graph["nodes"] if n["phase"] != "forward" and (n["module"].startswith("fc") or
            any(name.startswith("fc") for name in n["inputs"] + n.get("writes", [])))]
    expect(not late, f"the backward pass goes through the frozen part: {late}")


def resident(pid):
    """KiB of a process, None when it has ended."""
    try:
        found = re.search(r"VmRSS:\s+(\d+) kB", open(f"/proc/{pid}/status").read())
        return int(found.group(1)) if found else None
    except OSError:
        return None


def watch(program, count):
    """(steps done, resident KiB) again and again during a run."""
    if os.path.exists("log.jsonl"):
        os.remove("log.jsonl")
    child = subprocess.Popen([program, "--threads", "1", "--steps", str(count), "--log", "log.jsonl"], stdout=subprocess.DEVNULL,
                             stdin=subprocess.DEVNULL)
    samples = []
    while child.poll() is None:
        done = open("log.jsonl").read().count('"step",') if os.path.exists("log.jsonl") else 0
        samples.append((done, resident(child.pid)))
        time.sleep(0.01)
    expect(child.returncode == 0, f"{program}: exit code {child.returncode}")
    return [(done, size) for done, size in samples if size is not None]


def steps(reprise, source):
    """Thousands of steps need what a hundred need, arena and process; at every budget."""
    model = Model(reprise, "deep", DEEP.replace("B = 512", "B = 64"))
    keep_all = model.plan()["peak"]
    _, smallest = model.refused("--memory-budget=1")
    for budget in (None, (smallest + keep_all)//2, smallest + smallest//50):
        program = model.compile("program", *([f"--memory-budget={budget}"] if budget else []))
        samples = watch(program, 2000)
        early, late = next(sample for sample in samples if sample[0] >= 100), samples[-1]
        expect(late[0] - early[0] >= 1000, f"only steps {early[0]} to {late[0]} were seen")
        expect(late[1] <= early[1] + 256, f"{early[1]} KiB after {early[0]} steps, {late[1]} KiB after {late[0]}")
        short, long = (events(run(program, "--memory", "--steps", n), "memory")[0] for n in ("1", "100"))
        for field in ("live_peak", "arena", "high_water"):
            expect(short[field] == long[field], f"{field}: {short[field]} in one step, {long[field]} in a hundred")


def strategies(reprise, source):
    """A strategy that does not reach the budget is refused; no plan needs more than keeping everything; enough is no clone."""
    model = Model(reprise, "deep", DEEP)
    keep_all = model.plan()
    budget = (model.refused("--memory-budget=1")[1] + keep_all["peak"])//2
    text, smallest = model.refused("--strategy=none", f"--memory-budget={budget}")
    expect("strategy none has no plan" in text and smallest == keep_all["peak"], text)
    model.call("compile", "-o", "none", "--strategy=none", f"--memory-budget={budget}", code=3)
    expect(not os.path.exists("none"), "a program was made although the strategy has no plan")
    for strategy in ("none", "blocks", "sqrt", "selective", "greedy", "ilp"):
        for enough in (keep_all["arena"], keep_all["arena"] + 1, 1 << 40):
            plan = model.plan(f"--strategy={strategy}", f"--memory-budget={enough}")
            expect(plan["peak"] == keep_all["peak"] and plan["cost"] == plan["base_cost"], f"{strategy} at {enough}: {plan['cost']}")
            expect(all(d["runs"] == 1 for d in plan["decisions"]), f"{strategy} clones at {enough}")
        done = subprocess.run([reprise, "plan", model.path, *PLANNING, "--json", f"--strategy={strategy}", f"--memory-budget={budget}"],
                              capture_output=True, text=True)
        expect(done.returncode in (0, 3), done.stderr)
        if done.returncode == 0:
            plan = json.loads(done.stdout)
            expect(plan["peak"] <= plan["arena"] <= budget < keep_all["peak"] and plan["strategy"] == strategy, f"{strategy}: {plan['peak']}")


def resume(reprise, source):
    """Stopped after two of four steps and resumed, also by the program of another budget: bit for bit, with the same peak."""
    model = Model(reprise, "deep", DEEP)
    keep_all = model.plan()["peak"]
    _, smallest = model.refused("--memory-budget=1")
    programs = [model.compile("all")] + [model.compile(name, f"--memory-budget={budget}") for name, budget in
                                         (("middle", (smallest + keep_all)//2), ("smallest", smallest + smallest//50))]
    run(programs[0], "--steps", "4", "--save", "expected.st")
    for first in programs:
        run(first, "--steps", "2", "--save", "half.st")
        for second in programs:
            out = run(second, "--resume", "half.st", "--steps", "4", "--save", "found.st", "--poison", "--memory")
            expect(read("found.st") == read("expected.st"), f"{first}, then {second}: not the weights of the uninterrupted run")
            memory, whole = events(out, "memory")[0], events(run(second, "--memory"), "memory")[0]
            expect(all(memory[f] == whole[f] for f in ("live_peak", "arena", "high_water")), f"{memory} after resuming, {whole} before")
    # interrupted by a signal, wherever that is
    for program in programs:
        child = subprocess.Popen([program, "--threads", "1", "--steps", "100000", "--save", "stopped.st", "--log", "log.jsonl"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        for _ in range(1000):
            if os.path.exists("log.jsonl") and '"step"' in open("log.jsonl").read():
                break
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        expect(child.wait() == 130 and os.path.exists("stopped.st"), f"{program}: no snapshot after SIGINT")
        done = [event["step"] for event in events(open("log.jsonl").read(), "step")][-1]
        goal = str(done + 2)
        run(programs[0], "--steps", goal, "--save", "expected.st")
        run(program, "--resume", "stopped.st", "--steps", goal, "--save", "found.st")
        expect(read("found.st") == read("expected.st"), f"{program}: resumed after SIGINT at step {done}, it differs")
        os.remove("stopped.st"), os.remove("log.jsonl")


def report(reprise, source):
    """The report lists every tensor of the decisions with name, line, bytes, fate and runs, and adds up."""
    model = Model(reprise, "deep", DEEP)
    keep_all = model.plan()["peak"]
    _, smallest = model.refused("--memory-budget=1")
    for budget in (keep_all, (smallest + keep_all)//2, smallest + smallest//50):
        words = [f"--memory-budget={budget}"]
        plan, text = model.plan(*words), model.call("plan", "-v", *words).stdout
        runs = [step[1] for step in plan["schedule"] if step[0] == "run"]
        graph = json.loads(model.call("compile", "--emit=graph", "-o", "-").stdout)
        maker = {output["id"]: node["id"] for node in graph["nodes"] for output in node["outputs"]}
        lines = dict(re.findall(r"^  (?:keep|recompute) +\d+x .*?iB?  (\S+) +(\S+)$", text, re.M))
        kept = 0
        for decision in plan["decisions"]:
            name = decision["storage"]
            expect(decision["runs"] == runs.count(maker[name]), f"{name}: {decision} runs {runs.count(maker[name])} times")
            expect(re.fullmatch(r"deep.rp:\d+:\d+", decision["source"]), decision)
            row = re.search(rf"^  {decision['decision']} +{decision['runs']}x +\S+ \S+ +{re.escape(name)} +{re.escape(decision['source'])}$",
                            text, re.M)
            expect(row, f"no row of {decision} in\n{text}")
            kept += decision["bytes"] if decision["decision"] == "keep" else 0
        expect(f"kept {kept:,} B" in text, f"kept bytes are {kept:,} in\n{text}")
        expect(sum(plan["anatomy"].values()) == plan["peak"], plan["anatomy"])
        program = model.compile("program", *words)
        carried = json.loads(run(program, "--plan"))
        expect(carried["schedule"] == plan["schedule"], "the program carries another plan")
        memory = events(run(program, "--memory"), "memory")[0]
        expect(memory["anatomy"] == plan["anatomy"], f"{memory['anatomy']} measured, {plan['anatomy']} planned")


def evaluation(reprise, source):
    """Where evaluation needs more than training, the smallest budget is its, and all commands say so."""
    text = LINEAR + """
module Measure(x: [B, W]) {
  if eval { return mean(exp(0.01*(x @ transpose(x)))) }
  return mean(x)
}
dim B = 512, W = 32
model Wide(x: [B, W], y: [B, W]) {
  h = tanh(first:Linear(tanh(second:Linear(x, W)), W))
  output measure = m:Measure(h)
  loss mse(h, y)
}
train Wide { data x, y = csv("data.csv"); test x, y = csv("data.csv"); optimizer sgd(lr=0.1) }
"""
    model = Model(reprise, "wide", text)
    matrix = 512*512*4
    program = model.compile("all")
    arena = events(run(program, "--memory"), "start")[0]["arena"]
    training = events(run(program, "--memory"), "memory")[0]["live_peak"]
    expect(training < matrix < arena, f"training {training}, arena {arena}")
    report, smallest = model.refused("--memory-budget=1")
    expect(smallest == arena and "which evaluation needs" in report, report)
    for command, words in (("plan", []), ("compile", ["-o", "small"])):
        report = model.call(command, f"--memory-budget={arena - 1}", *words, code=3).stderr
        expect(f"training fits {arena - 1:,} B" in report and f"smallest budget with a plan: {arena:,} B" in report, report)
    expect(not os.path.exists("small"), "a program was made that cannot evaluate")
    tight = model.compile("tight", f"--memory-budget={arena}")
    for words in (["--steps", "3", "--save", "x.st"], ["--eval", "--load", "x.st"]):
        expect([e for e in map(json.loads, run(program, *words).splitlines()) if e["event"] == "test"] ==
               [e for e in map(json.loads, run(tight, *words).splitlines()) if e["event"] == "test"], "evaluation differs")
    model.call("sweep", "--points=3", "-q", "--csv=curve.csv")
    expect(all(int(line.split(",")[1]) >= arena for line in open("curve.csv").read().splitlines()[1:]), open("curve.csv").read())


def demands(reprise, source):
    """`keep` and `recompute` are obeyed, or the budget is refused with the line."""
    plain = "z = tanh(second:Linear(h, W))\n  z = sigmoid(more:Linear(z, W))"
    inside = "recompute { u = tanh(second:Linear(h, W)); z = sigmoid(more:Linear(u, W)) }"
    alone = "recompute { u = tanh(second:Linear(h, W)) }\n  z = sigmoid(more:Linear(u, W))"
    kept = "keep u = tanh(second:Linear(h, W))\n  z = sigmoid(more:Linear(u, W))"

    def segments(name, line):
        return Model(reprise, name, SEGMENTS.replace("LINE", line))

    free = segments("free", plain)
    keep_all = free.plan()
    smallest = free.refused("--memory-budget=1")[1]
    budgets = [None, keep_all["peak"], (smallest + keep_all["peak"])//2, smallest]
    for budget in budgets:
        words = [f"--memory-budget={budget}"] if budget else []
        plan = segments("inside", inside).plan(*words)
        expect(decisions(plan)["u"]["decision"] == "recompute" and decisions(plan)["u"]["runs"] > 1, f"at {budget}: {plan['decisions']}")
    for budget in budgets[:2]:
        words = [f"--memory-budget={budget}"] if budget else []
        plan = segments("alone", alone).plan(*words)
        expect(decisions(plan)["u"]["decision"] == "keep" and decisions(plan)["u"]["runs"] == 1, f"at {budget}: {plan['decisions']}")
    expect(decisions(segments("alone", alone).plan(f"--memory-budget={smallest}"))["u"]["runs"] > 1, "u may be dropped by the budget")
    # `keep` against the budget: refused with its line, although it would fit without
    model = segments("kept", kept)
    text, needed = model.refused(f"--memory-budget={smallest}")
    expect(needed > smallest, text)
    expect(re.search(r"'keep' holds 64.0 KiB of u, made at kept.rp:11:\d+", text), text)
    model.call("compile", "-o", "kept", f"--memory-budget={smallest}", code=3)
    expect(not os.path.exists("kept"), "a program was made although `keep` does not fit")
    plan = model.plan(f"--memory-budget={needed}")
    expect(decisions(plan)["u"]["decision"] == "keep" and plan["peak"] <= needed, plan["decisions"])
    expect(plan["cost"] > plan["base_cost"], "nothing else is recomputed at the smallest budget with `keep`")
    # `keep` inside `recompute` is a located error, however deep
    for line in ("recompute { keep u = tanh(h)\n z = u*u }", "recompute { recompute { keep u = tanh(h) }\n z = u*u }"):
        done = subprocess.run([reprise, "check", models.own("both", SEGMENTS.replace("LINE", line))], capture_output=True, text=True)
        expect(done.returncode == 1 and re.search(r"both.rp:11:\d+: error: .*keep", done.stderr), done.stderr)
    # a segment whose second run needs more than there is
    text, needed = segments("inside", inside).refused("--memory-budget=1")
    expect(needed >= smallest, f"{needed} with a segment, {smallest} without")


def curves(reprise, source, models_of_curves):
    """Sweeps after packing: more memory is never slower, for every strategy; a plan handed in is never made worse."""
    for model in models_of_curves:
        found = models.find(model, source)
        small = [] if model.startswith("tiny") else ["L=4"]
        defines = [word for d in found.defines + small for word in ("-D", d)]
        base = [reprise, "sweep", found.path, *defines, *PLANNING, "--points=4", "-q", "--csv=curve.csv"]
        expect(subprocess.run(base).returncode == 0, f"sweep of {model}")
        best, rows = {}, 0
        header, *lines = open("curve.csv").read().splitlines()
        for line in lines:
            row = dict(zip(header.split(","), line.split(",")))
            if not row["cost"]:
                expect(row["strategy"] not in best, f"{model}: {row['strategy']} has a plan for less than {row['budget']}, but none for it")
                continue
            rows += 1
            expect(float(row["cost"]) <= best.get(row["strategy"], float("inf")), f"{model}: {row}")
            expect(int(row["peak"]) <= int(row["arena"]) <= int(row["budget"]), f"{model}: {row}")
            best[row["strategy"]] = float(row["cost"])
        expect(rows > 8 and len(best) == 6, f"{model}: only {rows} points, {list(best)}")
        expect(all(best["ilp"] <= cost*(1 + 1e-9) for cost in best.values()), f"{model}: {best}")
        # the plan of a small budget is good for a larger one, also when the planner says nothing
        plan_words = [reprise, "plan", found.path, *defines, *PLANNING, "-q"]
        budgets = sorted({int(line.split(",")[1]) for line in lines})
        expect(subprocess.run([*plan_words, f"--memory-budget={budgets[1]}", "--plan-out=small.json"]).returncode == 0, "plan")
        small = json.load(open("small.json"))
        for further in ([], ["--planner=false"]):
            words = [*plan_words, f"--memory-budget={budgets[2]}", "--plan-in=small.json", "--plan-out=large.json", *further]
            expect(subprocess.run(words, stderr=subprocess.DEVNULL).returncode == 0, f"{model}: --plan-in {further}")
            cost = json.load(open("large.json"))["cost"]
            expect(cost <= small["cost"]*(1 + 1e-9), f"{model}: {cost} with an incumbent of {small['cost']} {further}")


def main():
    reprise, source, group = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    groups = {f.__name__: f for f in (adam, logits, frozen, steps, strategies, resume, report, evaluation, demands, curves)}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        models.write_data()
        groups[group](reprise, source, *([sys.argv[4:]] if group == "curves" else []))


main()
