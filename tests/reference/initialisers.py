"""Writes initialisers.json: widths of torch.nn.init's distributions, and the first elements of each weight of
tests/examples/behaviours/initialisers.rp by the project's rules.

    python initialisers.py [initialisers.json]
"""

import json
import math
import os
import sys

import numpy as np
import torch
from torch.nn import init

import philox

SEED, ELEMENTS = 11, 8


def fans(shape):
    return init._calculate_fan_in_and_fan_out(torch.empty(shape))


def kaiming(shape, mode="fan_in", a=0.0):
    """torch.nn.init.kaiming_normal_: gain / sqrt(fan)"""
    return init.calculate_gain("leaky_relu", a) / math.sqrt(fans(shape)[mode == "fan_out"])


def xavier(shape, gain=1.0):
    return gain * math.sqrt(2.0 / sum(fans(shape)))


LINEAR, CONVOLUTION, SQUARE = (64, 300), (64, 16, 3, 3), (100, 100)
# name: kind, width (bound or standard deviation), mean
WEIGHTS = {
    "zeros": ("constant", 0.0, 0.0), "ones": ("constant", 1.0, 0.0), "constant": ("constant", -0.5, 0.0),
    "uniform": ("uniform", 0.25, 0.0), "normal": ("normal", 0.02, 0.0), "normal_mean": ("normal", 0.5, 2.0),
    "trunc_normal": ("truncated", 0.02, 0.0),
    "kaiming_uniform": ("uniform", math.sqrt(3) * kaiming(LINEAR), 0.0),
    "kaiming_uniform_a": ("uniform", math.sqrt(3) * kaiming(LINEAR, a=math.sqrt(5)), 0.0),
    "kaiming_normal": ("normal", kaiming(LINEAR), 0.0),
    "kaiming_normal_fan_out": ("normal", kaiming(CONVOLUTION, "fan_out"), 0.0),
    "kaiming_given": ("uniform", math.sqrt(3) * math.sqrt(2) / math.sqrt(64), 0.0),
    "xavier_uniform": ("uniform", math.sqrt(3) * xavier(LINEAR), 0.0),
    "xavier_uniform_conv": ("uniform", math.sqrt(3) * xavier(CONVOLUTION, 2.0), 0.0),
    "xavier_normal": ("normal", xavier(LINEAR), 0.0),
}


def drawn(name, kind, width, mean):
    key, index = philox.hash_name(name), np.arange(ELEMENTS)
    if kind == "constant":
        return np.full(3, width)
    if kind == "uniform":
        return width * (2 * philox.uniform(SEED, key, philox.INITIAL_STREAM, index) - 1)
    normals = philox.normal(SEED, key, philox.INITIAL_STREAM, index)
    attempt = 0
    while kind == "truncated" and (abs(normals) > 2).any():
        attempt += 1
        again = philox.normal(SEED, key, philox.INITIAL_STREAM - attempt, index)
        normals = np.where(abs(normals) > 2, again, normals)
    return mean + width * normals


def main():
    check_against_torch()
    folder = os.path.dirname(os.path.abspath(__file__))
    entries = [{"name": n, "kind": k, "width": float(f"{w:.12g}"), "mean": m,
                "first": [float(f"{v:.9g}") for v in drawn(n, k, w, m)]} for n, (k, w, m) in WEIGHTS.items()]
    with open(sys.argv[1] if len(sys.argv) > 1 else os.path.join(folder, "initialisers.json"), "w", encoding="ascii") as file:
        file.write("[\n" + ",\n".join(json.dumps(e) for e in entries) + "\n]\n")


def check_against_torch():
    """The formulas above are those of torch.nn.init: bounds and deviations of what it draws."""
    torch.manual_seed(0)
    w = torch.empty(LINEAR)
    for function, width in ((lambda: init.kaiming_uniform_(w, a=math.sqrt(5)), WEIGHTS["kaiming_uniform_a"][1]),
                            (lambda: init.xavier_uniform_(w), WEIGHTS["xavier_uniform"][1])):
        assert 0.99 * width < function().abs().max().item() <= width * (1 + 1e-6)
    for function, width in ((lambda: init.kaiming_normal_(w), WEIGHTS["kaiming_normal"][1]),
                            (lambda: init.xavier_normal_(w), WEIGHTS["xavier_normal"][1])):
        assert abs(function().std().item() / width - 1) < 0.02


if __name__ == "__main__":
    main()
