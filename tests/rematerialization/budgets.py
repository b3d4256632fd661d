#!/usr/bin/env python3
"""Trains one model at budgets from keep-all to the smallest and compares, bit for bit.

usage: budgets.py REPRISE SOURCE_FOLDER MODEL

At each budget: losses, the weights after 10 steps, every gradient of the first step and of one from those weights equal those
of keep-all, with freed bytes poisoned; live_peak <= arena = high_water <= budget; the program runs as many clones as the plan
has further runs; the cost never rises with memory by more than the gaps that the plans state.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import models

BUDGETS = 8
PLANNING = ["--solver-nodes", "10"]


def run(*words, code=0):
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode != code:
        sys.exit(f"expected exit code {code}, found {done.returncode}: {' '.join(words)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done


def read(path):
    with open(path, "rb") as f:
        return f.read()


def train(reprise, model, budget):
    defines = [word for d in model.defines for word in ("-D", d)]
    limit = ["--memory-budget", str(budget)] if budget else []
    run(reprise, "compile", model.path, *defines, *limit, *PLANNING, "--cflags=-O1", "-q", "-o", "program")
    common = ["./program", "--threads", "2", *model.options]
    run(*common, "--steps", "10", "--poison", "--save", "weights.st", "--dump-grads", "gradients.st", "--log", "log.jsonl")
    run(*common, "--load", "weights.st", "--steps", "1", "--poison", "--dump-grads", "last.st")
    losses = [event["loss"] for event in map(json.loads, open("log.jsonl")) if event["event"] == "step"]
    memory = [json.loads(line) for line in run(*common, "--memory").stdout.splitlines() if '"memory"' in line][0]
    run(*common, "--steps", "1", "--trace", "trace.json")
    events = json.load(open("trace.json"))["traceEvents"]
    clones = sum(1 for e in events if e["ph"] == "X" and e["args"].get("recomputed"))
    plan = json.loads(run("./program", "--plan").stdout)
    return {"weights": read("weights.st"), "gradients": [read("gradients.st"), read("last.st")], "losses": losses, "memory": memory, "clones": clones,
            "plan": plan}


def extra_runs(plan):
    runs = [step[1] for step in plan["schedule"] if step[0] == "run"]
    return len(runs) - len(set(runs))


def smallest(reprise, model):
    defines = [word for d in model.defines for word in ("-D", d)]
    refused = run(reprise, "plan", model.path, *defines, *PLANNING, "--memory-budget", "1KiB", code=3)
    return int(re.search(r"smallest budget with a plan: ([\d,]+) B", refused.stderr).group(1).replace(",", ""))


def main():
    reprise, source, name = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        models.write_data()
        model = models.find(name, source)
        keep_all = train(reprise, model, None)
        assert keep_all["clones"] == 0 and extra_runs(keep_all["plan"]) == 0
        micro_steps = 3 if name == "accumulate" else 1
        low, high = smallest(reprise, model), keep_all["memory"]["arena"]
        faults, least = [], 0
        for i in range(BUDGETS):
            # packing may need a little more than live bytes at the very smallest budget
            budget = high - (high - low) * i // (BUDGETS - 1) + (high - low) // 50 * (i == BUDGETS - 1)
            found = train(reprise, model, budget)
            memory, plan = found["memory"], found["plan"]
            checks = {
                "losses": found["losses"] == keep_all["losses"] and len(found["losses"]) == 10,
                "gradients": found["gradients"] == keep_all["gradients"],
                "weights": found["weights"] == keep_all["weights"],
                "memory": memory["live_peak"] <= memory["arena"] == memory["high_water"] <= budget,
                "peak": memory["live_peak"] == plan["peak"],
                "packing": memory["arena"] <= 1.02 * memory["live_peak"],
                "clones": found["clones"] == micro_steps * extra_runs(plan),
                "bound": plan["lower_bound"] <= plan["cost"] * (1 + 1e-9),
            }
            # plans of separate runs: none is above the bound of another with less memory by more than its gap
            checks["cost"] = plan["lower_bound"] >= 0 and least <= plan["cost"] * (1 + 1e-9)
            least = max(least, plan["lower_bound"])
            faults += [f"{name} at {budget}: {what}" for what, good in checks.items() if not good]
            print(f"{name} {budget}: arena {memory['arena']}, {extra_runs(plan)} further runs, "
                  f"+{100 * (plan['cost'] / plan['base_cost'] - 1):.1f} %", flush=True)
        if faults:
            sys.exit("\n".join(faults))


main()
