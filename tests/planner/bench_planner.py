#!/usr/bin/env python3
"""Print the table of docs/checkpointing.md: overhead, bound, gap and time of reprise-planner beside published figures.

usage: bench_planner.py --planner=PROGRAM --data=FOLDER --checker=check_plan.py [--only=TEXT] [GRAPH.json ...]

FOLDER holds the public instances (monet-*.json, checkmate-*.json, dtr-*.json). Every plan is replayed by the checker. Budgets
are those of the publications and 0.9, 0.7, 0.5, 0.3 of the keep-everything peak; synthetic graphs come from make_graph.py,
further graph files are planned at the same fractions. `cpu` is the processor time of both of the planner's processes.
"""
import json
import os
import resource
import subprocess
import sys
import tempfile

FRACTIONS = (0.9, 0.7, 0.5, 0.3)
# Overhead in % over keeping everything: 24 h of Gurobi on 12 threads (MONeT's runs; the proven costs for vgg_unet).
PUBLISHED = {("monet-vgg16", 10): 2.03, ("monet-vgg16", 9): 2.35, ("monet-vgg16", 8): 4.16,
             ("monet-unet", 10): 2.42, ("monet-unet", 8): 3.48, ("monet-unet", 7): 4.42, ("monet-unet", 6): 6.03,
             ("monet-unet", 5): 11.16, ("monet-mobilenet", 10): 3.40, ("monet-mobilenet", 7): 9.07,
             ("monet-mobilenet", 5): 14.57, ("checkmate-vgg_unet", 0.64): 3.838, ("checkmate-vgg_unet", 0.76): 2.306}
SYNTHETIC = (("transformer", 48), ("transformer", 96), ("transformer", 278), ("chain", 64), ("rnn", 64))


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


def measure(options, path, graph, label, budget):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([options["planner"], path, f"--budget={budget}"], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    events = [json.loads(line) for line in done.stdout.splitlines()]
    end = events[-1] if events else {}
    name = graph.get("name", os.path.basename(path))
    head = f"| {name} ({len(graph['nodes'])}) | {label} |"
    known = PUBLISHED.get((name, label))
    known = f"{known:.2f}" if known is not None else "–"
    if done.returncode == 3:
        print(f"{head} {known} | does not fit: smallest {end.get('smallest_budget'):,}, proven impossible up to "
              f"{end.get('largest_impossible'):,} | | | {cpu:.1f} |", flush=True)
        return True
    plans = [e["plan"] for e in events if e["event"] == "plan"]
    if done.returncode != 0 or not plans:
        smallest = end.get("smallest_budget")
        print(f"{head} {known} | no plan (smallest known {smallest:,}) | | | {cpu:.1f} |" if smallest else
              f"{head} failed with {done.returncode}: {done.stderr.strip()}", flush=True)
        return done.returncode == 5
    plan = plans[-1]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(plan, file)
        file.flush()
        check = subprocess.run([sys.executable, options["checker"], path, file.name, "--budget", str(budget)],
                               capture_output=True, text=True)
    percent = lambda cost: 100 * (cost / plan["base_cost"] - 1)
    gap = 100 * (plan["cost"] - plan["lower_bound"]) / plan["cost"]
    verdict = "" if check.returncode == 0 else " INVALID: " + check.stdout.splitlines()[0]
    print(f"{head} {known} | {percent(plan['cost']):.3f} | {percent(plan['lower_bound']):.3f} | "
          f"{'optimal' if plan['status'] == 'optimal' else f'{gap:.3f} %'}{verdict} | {cpu:.1f} |", flush=True)
    return check.returncode == 0


def cases_of(graph, peak):
    name = graph.get("name", "")
    fixed = graph.get("fixed_bytes", 0)
    for (instance, budget) in PUBLISHED:
        if instance == name:
            yield budget, int(budget * 2**30) - fixed if budget > 1 else int(budget * peak)
    for fraction in FRACTIONS:
        yield fraction, int(fraction * peak)


def main():
    options = dict(a[2:].split("=", 1) for a in sys.argv[1:] if a.startswith("--"))
    paths = [a for a in sys.argv[1:] if not a.startswith("--")]
    folder = options["data"]
    paths += sorted(os.path.join(folder, f) for f in os.listdir(folder) if f.endswith(".json") and "chain8" not in f)
    good = True
    print("| instance (nodes) | budget | published % | ours % | lower bound % | gap | cpu s |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for kind, size in SYNTHETIC:
            path = os.path.join(scratch, f"{kind}{size}.json")
            with open(path, "w") as file:
                maker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "make_graph.py")
                subprocess.run([sys.executable, maker, kind, str(size)], stdout=file, check=True)
            paths.append(path)
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
