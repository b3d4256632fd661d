#!/usr/bin/env python3
"""Print the table of docs/checkpointing.md: overhead, bound, gap and time of reprise-planner beside published figures.

usage: bench_planner.py --planner=PROGRAM --checker=check_plan.py [--data=FOLDER] [--reprise=PROGRAM] [--synthetic]
                        [--only=TEXT] [GRAPH.json ...]

--data: the public instances (monet-*.json, checkmate-*.json, dtr-*.json), at the budgets of their publications and the
fractions below. --reprise: exports of the models of this project, by `reprise compile --emit=graph`. --synthetic: graphs of
make_graph.py. All of them, and further graph files, are planned at 0.9, 0.7, 0.5, 0.3 of the keep-everything peak (a chain also at 0.15). --only:
those whose path contains TEXT. Every plan is replayed by the checker. `cpu s` is the processor time of both of the planner's
processes, `wall s` depends on what else the machine does.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

FRACTIONS = (0.9, 0.7, 0.5, 0.3)
SMALLER = {"chain64": (0.15,)}
# Overhead in % over keeping everything: 24 h of Gurobi on 12 threads (MONeT's runs; the proven costs for vgg_unet).
PUBLISHED = {("monet-vgg16", 10): 2.03, ("monet-vgg16", 9): 2.35, ("monet-vgg16", 8): 4.16,
             ("monet-unet", 10): 2.42, ("monet-unet", 8): 3.48, ("monet-unet", 7): 4.42, ("monet-unet", 6): 6.03,
             ("monet-unet", 5): 11.16, ("monet-mobilenet", 10): 3.40, ("monet-mobilenet", 7): 9.07,
             ("monet-mobilenet", 5): 14.57, ("checkmate-vgg_unet", 0.64): 3.838, ("checkmate-vgg_unet", 0.76): 2.306}
SYNTHETIC = (("transformer", 48), ("transformer", 96), ("transformer", 278), ("chain", 64), ("rnn", 64))
MLP = """
dim B = 2048
module Layer(x: [_, I]) {
  param weight: [I, I] = kaiming_normal
  param bias: [I] = zeros
  return dropout(relu(x @ weight + bias), 0.1)
}
model DropoutMLP(x: [B, 256], y: [B, 256]) {
  for i in 0..16 { x = layer.{i}:Layer(x) }
  loss mse(x, y)
}
train DropoutMLP { data x, y = csv("data.csv"); optimizer sgd(lr=0.05, momentum=0.9); seed 7 }
"""
# Our own models: name, example (None: the text above), definitions. The transformer ties its embeddings.
OWN = (("own-dropout_mlp", None, []), ("own-batch_norm", "batch_norm.rp", []),
       ("own-char_transformer", "char_transformer.rp", ["P=0.1"]),
       ("own-char_rnn", "char_rnn.rp", ["T=32"]), ("own-gpt2", "gpt2.rp", ["B=4"]))


def keep_all_peak(graph):
    align = graph.get("alignment", 1)
    up = lambda n: -(-n // align) * align
    last, size = {}, {}
    for i, n in enumerate(graph["nodes"]):
        for t in n["inputs"]:
            last[t] = i
    held = peak = sum(up(t["bytes"]) for t in graph.get("tensors", []))
    for i, n in enumerate(graph["nodes"]):
        held += sum(up(o["bytes"]) for o in n["outputs"])
        peak = max(peak, held + up(n.get("workspace", 0)))
        size.update({o["id"]: up(o["bytes"]) for o in n["outputs"]})
        gone = {t for t in n["inputs"] if last[t] == i} | {o["id"] for o in n["outputs"] if o["id"] not in last}
        held -= sum(size[t] for t in gone if t in size and t not in graph.get("results", []))
    return peak


def replay(options, path, plan, budget):
    """What the checker finds wrong with a plan, or an empty text."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(plan, file)
        file.flush()
        check = subprocess.run([sys.executable, options["checker"], path, file.name, "--budget", str(budget)],
                               capture_output=True, text=True)
    return "" if check.returncode == 0 else (check.stdout + check.stderr).splitlines()[0]


def run_planner(options, path, budget):
    """The finished process, its events, processor and wall seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run([options["planner"], path, f"--budget={budget}"], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done, [json.loads(line) for line in done.stdout.splitlines()], cpu, time.monotonic() - start


def describe(options, path, budget, done, events):
    """The columns ours, bound and gap, and whether they are as they should be."""
    end = events[-1] if events else {}
    if done.returncode == 3:
        return (f"does not fit: smallest {end.get('smallest_budget'):,}, proven impossible up to "
                f"{end.get('largest_impossible'):,} | |", True)
    if done.returncode == 5 and end.get("smallest_budget"):
        return f"no plan (smallest known {end['smallest_budget']:,}) | |", True
    plans = [e["plan"] for e in events if e["event"] == "plan"]
    if done.returncode != 0 or not plans:
        return f"failed with {done.returncode}: {done.stderr.strip()} | |", False
    plan = plans[-1]
    fault = replay(options, path, plan, budget)
    percent = lambda cost: 100 * (cost / plan["base_cost"] - 1)
    gap = "optimal" if plan["status"] == "optimal" else f"{100 * (1 - plan['lower_bound'] / plan['cost']):.3f} %"
    return (f"{percent(plan['cost']):.3f} | {percent(plan['lower_bound']):.3f} | {gap}"
            f"{' INVALID: ' + fault if fault else ''}", not fault)


def measure(options, path, graph, label, budget):
    done, events, cpu, wall = run_planner(options, path, budget)
    columns, good = describe(options, path, budget, done, events)
    name = graph.get("name", os.path.basename(path))
    known = PUBLISHED.get((name, label))
    known = "–" if known is None else f"{known:.2f}"
    print(f"| {name} ({len(graph['nodes'])}) | {label} | {known} | {columns} | {cpu:.1f} | {wall:.1f} |", flush=True)
    return good


def export_own(options, scratch):
    """Writes the graph files of our own models and returns their paths."""
    examples = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
    paths = []
    for name, example, defines in OWN:
        path = os.path.join(scratch, name + ".json")
        model = os.path.join(examples, example) if example else os.path.join(scratch, name + ".rp")
        if not example:
            with open(model, "w") as file:
                file.write(MLP)
        subprocess.run([options["reprise"], "compile", model, "--emit=graph", "-o", path] + [f"-D{d}" for d in defines],
                       check=True)
        with open(path) as file:
            graph = json.load(file)
        graph["name"] = name
        with open(path, "w") as file:
            json.dump(graph, file)
        paths.append(path)
    return paths


def make_synthetic(scratch):
    maker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "make_graph.py")
    paths = []
    for kind, size in SYNTHETIC:
        paths.append(os.path.join(scratch, f"{kind}{size}.json"))
        with open(paths[-1], "w") as file:
            subprocess.run([sys.executable, maker, kind, str(size)], stdout=file, check=True)
    return paths


def cases_of(graph, peak):
    name = graph.get("name", "")
    fixed = graph.get("fixed_bytes", 0)
    for (instance, budget) in PUBLISHED:
        if instance == name:
            yield budget, int(budget * 2**30) - fixed if budget > 1 else int(budget * peak)
    for fraction in FRACTIONS + SMALLER.get(name, ()):
        yield fraction, int(fraction * peak)


def main():
    options = dict((a[2:].split("=", 1) + [""])[:2] for a in sys.argv[1:] if a.startswith("--"))
    paths = [a for a in sys.argv[1:] if not a.startswith("--")]
    good = True
    print("| instance (nodes) | budget | published % | ours % | lower bound % | gap | cpu s | wall s |\n"
          "|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        if "reprise" in options:
            paths += export_own(options, scratch)
        if "data" in options:
            folder = options["data"]
            paths += sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".json") and "chain8" not in f)
        if "synthetic" in options:
            paths += make_synthetic(scratch)
        for path in paths:
            if options.get("only", "") not in path:
                continue
            with open(path) as file:
                graph = json.load(file)
            for label, budget in cases_of(graph, keep_all_peak(graph)):
                good = measure(options, path, graph, label, budget) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
