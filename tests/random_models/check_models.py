"""usage: check_models.py REPRISE FIRST_SEED COUNT BUDGETS [PLANS [STEPS]]

For each seed a random model (generate_model.py) of up to STEPS (8) steps in a temporary folder:
- `reprise verify` passes: gradients against finite differences, the program against the interpreter;
- at BUDGETS budgets from the smallest that has a plan up to that of keeping everything, the program runs with freed memory
  poisoned; weights, gradients and outputs are bitwise those of keeping everything, and the measured high water is the arena,
  which is within the budget;
- repeated, the run gives the same bits;
- so do PLANS random valid schedules that no planner made, as far as they need less than keeping everything.
Prints what failed together with the seed; exit code 1 when something did. REPRISE_TEST_TARGET: options of verify and
compile, such as "--target=cuda --arch=sm_90".
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

from generate_model import Model

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "rematerialization"))
from planted_plans import Graph, plan_at_random  # noqa: E402

STEPS = 2
PLANNING = ["--solver-nodes=10"]
TARGET = os.environ.get("REPRISE_TEST_TARGET", "").split()


def run(arguments, folder):
    result = subprocess.run(arguments, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    return result.returncode, result.stdout.decode(), result.stderr.decode()


def write_npy(path, code, descr, shape, values):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " "*(63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{code}", *values))


def write_data(model, folder):
    records, length, width = 8*model.batch, model.length, model.width
    draw = model.random
    write_npy(f"{folder}/x.npy", "f", "<f4", (records, length, width),
              [draw.uniform(-1, 1) for _ in range(records*length*width)])
    write_npy(f"{folder}/y.npy", "f", "<f4", (records, length), [draw.uniform(-1, 1) for _ in range(records*length)])
    write_npy(f"{folder}/token.npy", "i", "<i4", (records, length),
              [draw.randrange(model.vocabulary) for _ in range(records*length)])


class Failure(Exception):
    pass


def expect(arguments, folder, codes=(0,)):
    code, out, err = run(arguments, folder)
    if code not in codes:
        raise Failure(f"exit code {code} of {' '.join(arguments)}\n{out[-500:]}{err[-3000:]}")
    return code, out, err


def train(program, folder):
    """The bytes of weights, optimizer state, gradients and outputs after a run with freed memory poisoned."""
    expect([f"./{program}", "--threads", "2", "--steps", str(STEPS), "--poison", "--save", "run.st", "--dump-grads",
            "run.grads"], folder)
    return open(f"{folder}/run.st", "rb").read(), open(f"{folder}/run.grads", "rb").read()


def check_memory(program, folder, budget=None):
    """Returns the arena's bytes."""
    _, out, _ = expect([f"./{program}", "--memory", "--threads", "2"], folder)
    event = next(json.loads(line) for line in out.splitlines() if '"memory"' in line)
    if not event["live_peak"] <= event["arena"] == event["high_water"] <= (budget or event["arena"]):
        raise Failure(f"memory at budget {budget}: {event}")
    return event["arena"]


def find_budgets(reprise, folder, arena, count):
    """`count` budgets from the smallest with a plan to the arena of keeping everything."""
    code, _, err = expect([reprise, "compile", "model.rp", "-o", "small", "--memory-budget=1", *PLANNING, *TARGET], folder, (3,))
    found = re.search(r"smallest budget with a plan[^0-9]*([0-9,]+) B", err)
    if not found:
        raise Failure(f"no smallest budget in\n{err}")
    smallest = int(found.group(1).replace(",", ""))
    if smallest > arena:
        raise Failure(f"the smallest budget {smallest} is above the arena {arena} of keeping everything")
    steps = max(count - 1, 1)
    return sorted({smallest + (arena - smallest)*i//steps for i in range(count)})


def check_planted(reprise, folder, expected, keep_all, count, random):
    """Random schedules, said by a planner that knows nothing else."""
    expect([reprise, "compile", "model.rp", "--emit=graph", "-q", "-o", "graph.json", *TARGET], folder)
    graph = Graph(json.load(open(f"{folder}/graph.json")))
    for _ in range(count):
        plan = plan_at_random(graph, random, random.choice([0.1, 0.3, 0.6, 0.9]))
        if plan["peak"] >= keep_all:  # a budget that holds everything is never answered with clones
            continue
        with open(f"{folder}/stream", "w") as file:
            file.write(json.dumps({"event": "plan", "plan": plan}) + "\n" + json.dumps({"event": "end", "reason": "planted"}) + "\n")
        with open(f"{folder}/planner", "w") as file:
            file.write("cat stream\n")
        _, _, err = expect([reprise, "compile", "model.rp", "-o", "planted", f"--memory-budget={plan['peak']}", "--planner=sh planner",
                            "--cflags=-O1", *TARGET], folder, (0, 3))
        if "was packed into" in err:  # not every schedule can be packed without gaps
            continue
        _, out, _ = expect(["./planted", "--plan"], folder)
        if [s for s in json.loads(out)["schedule"] if s[0] == "run"] != [s for s in plan["schedule"] if s[0] == "run"]:
            raise Failure(f"a valid schedule was refused: {err}\n{json.dumps(plan)}")
        if train("planted", folder) != expected:
            raise Failure(f"weights or gradients of a random schedule differ from those of keeping everything\n{json.dumps(plan)}")
        check_memory("planted", folder, plan["peak"])


def check_model(reprise, seed, count, plans, steps, folder):
    model = Model(seed, steps)
    text = model.text()
    with open(f"{folder}/model.rp", "w") as file:
        file.write(text)
    write_data(model, folder)
    expect([reprise, "verify", "model.rp", *TARGET], folder)
    if not count:
        return
    expect([reprise, "compile", "model.rp", "-o", "all", *TARGET], folder)
    expected = train("all", folder)
    if train("all", folder) != expected:
        raise Failure("a second run differs from the first")
    arena = check_memory("all", folder)
    for budget in find_budgets(reprise, folder, arena, count):
        expect([reprise, "compile", "model.rp", "-o", "prog", f"--memory-budget={budget}", *PLANNING, *TARGET], folder)
        if train("prog", folder) != expected:
            raise Failure(f"weights or gradients at budget {budget} differ from those of keeping everything ({arena})")
        check_memory("prog", folder, budget)
    check_planted(reprise, folder, expected, arena, plans, model.random)


def main():
    reprise, given = os.path.abspath(sys.argv[1]), [int(word) for word in sys.argv[2:]]
    first, count, budgets, plans, steps = given + [0, 8][len(given) - 3:]
    failures = 0
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                check_model(reprise, seed, budgets, plans, steps, folder)
            except Failure as failure:
                failures += 1
                print(f"seed {seed}: {failure}\n{open(folder + '/model.rp').read()}", flush=True)
    print(f"{count} models, {failures} failed")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
