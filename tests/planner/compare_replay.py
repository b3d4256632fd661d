#!/usr/bin/env python3
"""Compare the project's replay with an independent checker on the samples that planner_replay_samples prints.

usage: compare_replay.py SAMPLES CHECKER.py     (exit status 77 when the checker is not there)
"""
import importlib.util
import json
import os
import subprocess
import sys

samples, checker_path = sys.argv[1:]
if not os.path.exists(checker_path):
    print(f"skipped: {checker_path} is not there")
    sys.exit(77)
spec = importlib.util.spec_from_file_location("checker", checker_path)
checker = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)
output = subprocess.run([samples], capture_output=True, text=True, check=True).stdout.splitlines()
valid = differ = 0
for line in output:
    sample = json.loads(line)
    graph = checker.Graph(sample["graph"])
    peak, cost, runs, faults = checker.replay(graph, sample["plan"]["schedule"])
    same = bool(faults) == bool(sample["faults"]) and peak == sample["peak"] and abs(cost - sample["cost"]) < 1e-9
    same = same and {n: r for n, r in sample["runs"].items() if r} == runs and len(faults) == sample["faults"]
    valid += not faults
    if not same:
        differ += 1
        print(f"replay: {sample['faults']} faults, peak {sample['peak']}, cost {sample['cost']}, first "
              f"{sample['first']}; checker: {len(faults)} faults, peak {peak}, cost {cost}, first {faults[:2]}")
print(f"{len(output)} samples, {valid} valid, {differ} differ")
sys.exit(1 if differ or not 0 < valid < len(output) else 0)
