"""Cases for tests/operators: inputs, what PyTorch makes of them in float64, and gradients of a scalar loss.

The loss of a case is the sum over its differentiated outputs of output * weight, weight i = ((37 i + 11) mod 101 - 50) / 32
by flat index. Inputs are multiples of 1/64, so that they are exact in float32 too.
"""

import json
import zlib

import numpy as np
import torch

TORCH_TYPES = {"f32": torch.float64, "f64": torch.float64, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
               "bool": torch.bool}
CASES = []
DRAWN = [0]  # tensors drawn since the group of cases began, so that a new case changes only what follows it in its group


class Input:
    """A leaf tensor, and the views through which the operator sees it."""

    def __init__(self, data, dtype="f32", views=(), gradient=True):
        self.data, self.dtype, self.views = np.asarray(data), dtype, list(views)
        self.real = dtype in ("f32", "f64")
        self.gradient = gradient and self.real

    def leaf(self):
        return torch.tensor(self.data.tolist(), dtype=TORCH_TYPES[self.dtype]).reshape(self.data.shape).requires_grad_(
            self.gradient)

    def seen(self, leaf):
        for kind, *arguments in self.views:
            if kind == "permute":
                leaf = leaf.permute(arguments)
            elif kind == "reshape":
                leaf = leaf.reshape(arguments)
            elif kind == "expand":
                leaf = leaf.expand(arguments)
            elif kind == "slice":
                axis, start, stop, step = arguments
                leaf = leaf[(slice(None),) * axis + (slice(start, stop, step),)]
            else:
                raise ValueError(kind)
        return leaf

    def text(self):
        fields = {"type": self.dtype, "shape": list(self.data.shape), "data": numbers(self.data)}
        if self.views:
            fields["views"] = [list(view) for view in self.views]
        if self.real and not self.gradient:
            fields["gradient"] = False
        return fields


def number(value):
    """Twelve digits; JSON has no words for what is not finite, so those are strings."""
    value = float(value)
    if not np.isfinite(value):
        return "nan" if np.isnan(value) else "inf" if value > 0 else "-inf"
    return int(value) if value == int(value) and abs(value) < 1e15 else float(f"{value:.12g}")


def numbers(array):
    return [number(v) for v in np.asarray(array).reshape(-1)]


def start_group():
    DRAWN[0] = 0


def generator(*key):
    DRAWN[0] += 1
    return np.random.default_rng(zlib.crc32(repr((key, DRAWN[0])).encode()))


def real(*shape, low=-2.0, high=2.0, views=(), dtype="f32", gradient=True):
    rng = generator("real", shape, low, high)
    data = rng.integers(int(low * 64), int(high * 64), shape, endpoint=True) / 64.0
    return Input(data, dtype, views, gradient)


def integers(*shape, low=0, high=10, dtype="i32", views=()):
    """low … high - 1"""
    return Input(generator("integers", shape, low, high).integers(low, high, shape), dtype, views)


def bools(*shape, views=()):
    return Input(generator("bools", shape).integers(0, 2, shape).astype(bool), "bool", views)


def weights(shape):
    index = torch.arange(int(np.prod(shape)), dtype=torch.int64)
    return (((index * 37 + 11) % 101 - 50).to(torch.float64) / 32).reshape(shape)


def type_name(tensor, wanted):
    names = {torch.float64: "f32", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8", torch.bool: "bool"}
    return wanted or names[tensor.dtype]


def case(op, function, *inputs, name="", differentiated=1, output_types=(), tolerance=None, **attributes):
    """Adds a case: function(*views) gives a tensor or several. Optional inputs left out are None. Gradients that are
    zero on purpose are recorded as zeros."""
    leaves = [i and i.leaf() for i in inputs]
    outputs = function(*[i and i.seen(leaf) for i, leaf in zip(inputs, leaves)])
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    loss = sum((o * weights(o.shape)).sum() for o in outputs[:differentiated] if o.dtype == torch.float64)
    wanted = [leaf for i, leaf in zip(inputs, leaves) if i and i.gradient]
    found = [None] * len(wanted)
    if wanted and isinstance(loss, torch.Tensor) and loss.requires_grad:
        found = torch.autograd.grad(loss, wanted, allow_unused=True)
    found = iter([torch.zeros_like(w) if g is None else g for g, w in zip(found, wanted)])
    gradients = [numbers(next(found).detach()) if i and i.gradient else None for i in inputs]
    types = list(output_types) + [None] * len(outputs)
    if not output_types and any(i and i.dtype == "f64" for i in inputs):
        types = ["f64" if o.dtype == torch.float64 else None for o in outputs]
    fields = {"op": op, "name": name, "attributes": attributes, "inputs": [i and i.text() for i in inputs],
              "outputs": [{"type": type_name(o, t), "shape": list(o.shape), "data": numbers(o.detach())}
                          for o, t in zip(outputs, types)],
              "differentiated": differentiated, "gradients": gradients}
    if tolerance:
        fields["tolerance"] = tolerance
    CASES.append(fields)


def write(path):
    lines = ",\n".join(json.dumps(c, separators=(",", ":")) for c in CASES)
    with open(path, "w", encoding="ascii") as file:
        file.write("[\n" + lines + "\n]\n")
