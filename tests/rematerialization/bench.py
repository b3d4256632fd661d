#!/usr/bin/env python3
"""Measured step time beside the overhead that the plan predicts, at several budgets, as ratios to keep-all of the same run.

usage: bench.py REPRISE SOURCE_FOLDER
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import models

STEPS, ROUNDS = 12, 3


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout


def main():
    reprise, source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        models.write_data()
        print(f"{'model':12} {'arena':>14} {'of keep-all':>12} {'predicted':>10} {'measured':>10}")
        for name in ("transformer", "mlp", "rnn"):
            model = models.find(name, source, large=True)
            defines = [word for d in model.defines for word in ("-D", d)]
            programs, plans, high = [], [], 0
            for fraction in (None, 0.8, 0.6, 0.45):
                limit = ["--memory-budget", str(int(high * fraction))] if fraction else []
                program = f"./program{len(programs)}"
                done = subprocess.run([reprise, "compile", model.path, *defines, *limit, "--profile", name + ".json", "-q", "-o", program],
                                      capture_output=True, text=True)
                if done.returncode:
                    print(f"{name:12} {fraction}: {done.stderr.splitlines()[0]}")
                    continue
                programs.append(program)
                plans.append(json.loads(run(program, "--plan")))
                arena = [json.loads(line) for line in run(program, *model.options, "--memory").splitlines() if '"memory"' in line][0]["arena"]
                plans[-1]["arena"] = arena
                high = high or arena
            best = [float("inf")] * len(programs)
            for _ in range(ROUNDS):  # turn by turn, so that whatever else the machine does hits all alike
                for i, program in enumerate(programs):
                    start = time.monotonic()
                    run(program, *model.options, "--steps", "1")
                    once = time.monotonic()
                    run(program, *model.options, "--steps", str(STEPS + 1))
                    best[i] = min(best[i], (time.monotonic() - once - (once - start)) / STEPS)
            for plan, seconds in zip(plans, best):
                print(f"{name:12} {plan['arena']:14,} {plan['arena'] / high:11.0%} {plan['cost'] / plan['base_cost'] - 1:+9.1%} "
                      f"{seconds / best[0] - 1:+9.1%}")


main()
