"""Writes optimizers.json: weights after each of five steps of torch.optim, and factors of torch's schedules.

    python optimizers.py [optimizers.json]

Two parameters, `w` [3] and `u` [2, 5]; the gradients of every step are given (the loss is the sum of parameter times gradient).
"""

import json
import os
import sys

import numpy as np
import torch

from vectors import numbers

SHAPES = {"w": (3,), "u": (2, 5)}
STEPS = 5


def drawn(rng, shape):
    return rng.integers(-128, 128, shape, endpoint=True) / 64.0


def run(name, optimizer, make, clip=0.0, settings=None, overrides=None, factors=None):
    """overrides: settings of single parameters, as rules give them; factors: what a schedule multiplies the rate with."""
    rng = np.random.default_rng(len(name))
    start = {n: drawn(rng, s) for n, s in SHAPES.items()}
    gradients = [{n: drawn(rng, s) for n, s in SHAPES.items()} for _ in range(STEPS)]
    parameters = {n: torch.tensor(v, requires_grad=True) for n, v in start.items()}
    names = {"wd": "weight_decay"}
    groups = [{"params": [p], **{names.get(k, k): v for k, v in (overrides or {}).get(n, {}).items()}}
              for n, p in parameters.items()]
    optimiser = make(groups)
    rates = [group["lr"] for group in optimiser.param_groups]
    after = []
    for step in range(STEPS):
        for group, rate in zip(optimiser.param_groups, rates):
            group["lr"] = rate * (factors[step] if factors else 1.0)
        for n, p in parameters.items():
            p.grad = torch.tensor(gradients[step][n])
        if clip:
            torch.nn.utils.clip_grad_norm_(list(parameters.values()), clip)
        optimiser.step()
        after.append({n: numbers(p.detach()) for n, p in parameters.items()})
    flat = lambda tensors: {n: numbers(v) for n, v in tensors.items()}
    return {"name": name, "optimizer": optimizer, "settings": settings or {}, "overrides": overrides or {}, "clip": clip,
            "factors": factors or [1.0] * STEPS, "start": flat(start), "gradients": [flat(g) for g in gradients],
            "after": after}


def optimizer_cases():
    sgd, adam, adamw = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
    make = lambda kind, **arguments: lambda groups: kind(groups, **arguments)
    return [
        run("sgd", "sgd", make(sgd, lr=0.1), settings={"lr": 0.1}),
        run("sgd with momentum", "sgd", make(sgd, lr=0.1, momentum=0.9), settings={"lr": 0.1, "momentum": 0.9}),
        run("sgd, nesterov", "sgd", make(sgd, lr=0.1, momentum=0.9, nesterov=True),
            settings={"lr": 0.1, "momentum": 0.9, "nesterov": True}),
        run("sgd, momentum and weight decay", "sgd", make(sgd, lr=0.05, momentum=0.5, weight_decay=0.1),
            settings={"lr": 0.05, "momentum": 0.5, "wd": 0.1}),
        run("sgd, a rate and a decay of its own", "sgd", make(sgd, lr=0.1, weight_decay=0.1),
            settings={"lr": 0.1, "wd": 0.1}, overrides={"w": {"lr": 0.3, "wd": 0.0}}),
        run("sgd, clipped", "sgd", make(sgd, lr=0.1, momentum=0.9), settings={"lr": 0.1, "momentum": 0.9}, clip=1.5),
        run("sgd, a limit above the norm", "sgd", make(sgd, lr=0.1), settings={"lr": 0.1}, clip=100.0),
        run("adam, defaults", "adam", make(adam), settings={}),
        run("adam, weight decay", "adam", make(adam, lr=0.02, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1),
            settings={"lr": 0.02, "betas": [0.8, 0.95], "eps": 1e-4, "wd": 0.1}),
        run("adamw, defaults", "adamw", make(adamw), settings={}),
        run("adamw, decay on matrices only, clipped", "adamw", make(adamw, lr=0.02, betas=(0.9, 0.95), weight_decay=0.1),
            settings={"lr": 0.02, "betas": [0.9, 0.95], "wd": 0.1}, overrides={"w": {"wd": 0.0}}, clip=0.5),
        run("adamw, a schedule", "adamw", make(adamw, lr=0.02, weight_decay=0.1), settings={"lr": 0.02, "wd": 0.1},
            factors=[0.5, 1.0, 0.75, 0.25, 0.0]),
    ]


def schedule(name, fields, make, updates, warmup=0):
    """Factors at updates 0, 1, … from torch's schedulers; warm-up is the part before them."""
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = make(optimiser)
    factors = [(t + 1) / warmup for t in range(warmup)]
    while len(factors) < updates:
        factors.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        scheduler.step()
    return {"name": name, "warmup": warmup, **fields, "factors": [float(f"{f:.12g}") for f in factors]}


def schedule_cases():
    schedulers = torch.optim.lr_scheduler
    cosine = lambda steps, final: lambda o: schedulers.CosineAnnealingLR(o, steps, eta_min=final)
    return [
        schedule("cosine", {"kind": "cosine", "steps": 10, "final": 0.0}, cosine(10, 0.0), 11),
        schedule("cosine to a tenth after warm-up", {"kind": "cosine", "steps": 17, "final": 0.1}, cosine(13, 0.1), 18, 4),
        schedule("linear", {"kind": "linear", "steps": 8, "final": 0.0}, lambda o: schedulers.LinearLR(o, 1.0, 0.0, 8), 12),
        schedule("linear after warm-up", {"kind": "linear", "steps": 11, "final": 0.25},
                 lambda o: schedulers.LinearLR(o, 1.0, 0.25, 8), 14, 3),
        schedule("step", {"kind": "step", "steps": 0, "every": 3, "factor": 0.1}, lambda o: schedulers.StepLR(o, 3, 0.1), 10),
        schedule("constant with warm-up", {"kind": "constant", "steps": 0}, lambda o: schedulers.ConstantLR(o, 1.0), 6, 3),
    ]


def main():
    torch.set_default_dtype(torch.float64)
    folder = os.path.dirname(os.path.abspath(__file__))
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(folder, "optimizers.json")
    lines = lambda items: ",\n".join(json.dumps(item, separators=(",", ":")) for item in items)
    with open(path, "w", encoding="ascii") as file:
        file.write('{"optimizers": [\n' + lines(optimizer_cases()) + '\n],\n"schedules": [\n' + lines(schedule_cases()) + "\n]}\n")


if __name__ == "__main__":
    main()
