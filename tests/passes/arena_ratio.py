#!/usr/bin/env python3
"""Compares the arena of a model with the most bytes that are live at once, without a budget and at several.

usage: arena_ratio.py REPRISE MODEL.rp [NAME=VALUE...]

Without a budget the arena is the live peak. At budgets down to the smallest that has a plan it is at most the budget and at most
2 % above the live peak of the plan. Stacks of 8 MiB.
"""
import re
import resource
import subprocess
import sys

BUDGETS = 4
MOST = 1.02


def limit_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (8 << 20, resource.getrlimit(resource.RLIMIT_STACK)[1]))


def plan(reprise, words, budget=None):
    limit = ["--memory-budget", str(budget)] if budget else []
    return subprocess.run([reprise, "plan", *words, "--solver-nodes", "10", *limit], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, preexec_fn=limit_stack)


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        sys.exit(f"no '{pattern}' in:\n{text[-2000:]}")
    return int(found.group(1).replace(",", ""))


def measure(reprise, words, budget=None):
    done = plan(reprise, words, budget)
    if done.returncode:
        sys.exit(f"exit code {done.returncode} at {budget}:\n{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return number(r"live peak +([\d,]+) B", done.stdout), number(r"arena +([\d,]+) B", done.stdout)


def main():
    reprise, model = sys.argv[1:3]
    words = [model] + [word for definition in sys.argv[3:] for word in ("-D", definition)]
    peak, arena = measure(reprise, words)
    print(f"no budget: live peak {peak}, arena {arena}")
    if arena != peak:
        sys.exit("without a budget the arena is larger than the live peak")
    refused = plan(reprise, words, 64)
    if refused.returncode != 3:
        sys.exit(f"a budget of 64 bytes: exit code {refused.returncode}, expected 3\n{refused.stderr[-2000:]}")
    smallest = number(r"smallest budget with a plan: ([\d,]+) B", refused.stderr)
    for i in range(BUDGETS):
        budget = smallest + (peak - smallest) * i // BUDGETS
        peak_there, arena = measure(reprise, words, budget)
        print(f"budget {budget}: live peak {peak_there}, arena {arena}, {arena / peak_there:.4f}")
        if arena > budget or arena > MOST * peak_there:
            sys.exit("the arena is larger than it may be")


main()
