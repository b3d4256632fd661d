"""Writes operators.json: outputs and gradients of every operator of the language, from PyTorch in float64.

    python operators.py [operators.json]
"""

import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

import philox
from vectors import Input, bools, case, integers, real, start_group, write

TRANSPOSED = [("permute", 1, 0)]
STRIDED = [("slice", 1, 1, 17, 3)]  # of [3, 17]: 6 columns
LARGE = {"abs", "exp", "log", "tanh", "erf", "sigmoid", "softplus", "gelu", "silu", "sin", "sqrt"}


def pointwise_one():
    same = {
        "negate": torch.neg, "square": torch.square, "abs": torch.abs, "sign": torch.sign, "floor": torch.floor,
        "exp": torch.exp, "sin": torch.sin, "cos": torch.cos, "erf": torch.erf, "tanh": torch.tanh,
        "sigmoid": torch.sigmoid, "relu": torch.relu, "softplus": F.softplus, "silu": F.silu, "gelu": F.gelu,
        "stop": lambda x: x.detach(), "copy": lambda x: x.clone(),
    }
    positive = {"sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "log": torch.log}
    bounds = {**{op: (-4, 4) for op in same}, **{op: (1 / 64, 9) for op in positive}, "log1p": (-0.9375, 8)}
    for op, function in {**same, **positive, "log1p": torch.log1p}.items():
        low, high = bounds[op]
        case(op, function, real(low=low, high=high), name="scalar")
        case(op, function, real(1, low=low, high=high), name="one element")
        case(op, function, real(17, 3, low=low, high=high, views=TRANSPOSED), name="transposed")
        case(op, function, real(3, 17, low=low, high=high, views=STRIDED), name="every third column")
        if op in LARGE:
            spread = (1 / 64, 90) if op in positive else (-20, 20)
            case(op, function, real(1000, low=spread[0], high=spread[1]), name="1000 over a wide range")
    tanh_gelu = lambda x: F.gelu(x, approximate="tanh")
    case("gelu", tanh_gelu, real(3, 17, low=-4, high=4, views=STRIDED), name="tanh form", approximate="tanh")
    case("gelu", tanh_gelu, real(1000, low=-20, high=20), name="tanh form, 1000", approximate="tanh")
    case("leaky_relu", lambda x: F.leaky_relu(x, 0.01), real(17), name="default slope")
    case("leaky_relu", lambda x: F.leaky_relu(x, 0.2), real(17, 3, views=TRANSPOSED), name="slope 0.2", slope=0.2)
    case("sigmoid", torch.sigmoid, Input([-1000.0, -100, -30, 0, 30, 100, 1000]), name="far out")
    case("softplus", F.softplus, Input([-1000.0, -100, -30, 0, 15, 100, 1000]), name="far out")
    case("tanh", torch.tanh, Input([-1000.0, -20, -1e-4, 0, 1e-4, 20, 1000]), name="far out and tiny")
    case("relu", torch.relu, Input([-1.0, 0, 1]), name="at zero")
    case("square", torch.square, real(17, dtype="f64"), name="f64")
    case("exp", torch.exp, real(17, dtype="f64"), name="f64")
    for op, function in (("negate", torch.neg), ("square", torch.square), ("abs", torch.abs), ("sign", torch.sign)):
        case(op, function, integers(17, low=-50, high=50), name="i32")


def pointwise_two():
    reals = {"add": torch.add, "subtract": torch.subtract, "multiply": torch.multiply, "divide": torch.divide,
             "maximum": torch.maximum, "minimum": torch.minimum}
    for op, function in reals.items():
        low = 0.25 if op == "divide" else -2
        case(op, function, real(3, 17), real(3, 17, low=low), name="same shape")
        case(op, function, real(3, 1), real(17, low=low), name="column and row")
        case(op, function, real(), real(2, 1, 17, low=low), name="scalar and rank 3")
        case(op, function, real(17, 3, views=TRANSPOSED), real(3, 17, low=low, views=[("slice", 0, 0, 1, 1)]),
             name="transposed and first row")
        if op in ("add", "divide", "maximum"):
            case(op, function, real(1000), real(1, low=low), name="1000 and one element")
        if op != "divide":
            case(op, function, integers(17, low=-50, high=50), integers(3, 1, low=-50, high=50), name="i32")
    ties = Input([1.0, 2, 3, 2]), Input([2.0, 2, 2, 2])
    case("maximum", torch.maximum, *ties, name="ties")
    case("minimum", torch.minimum, *ties, name="ties")
    case("power", torch.pow, real(3, 17, low=0.25), real(17), name="positive base")
    case("power", torch.pow, real(17, low=-3, high=3), Input(3.0, gradient=False), name="negative base, whole exponent")
    case("power", torch.pow, real(5, low=0, high=0), real(5, low=1.5, high=3), name="base zero")
    case("power", torch.pow, real(17, low=0.25), Input(-0.5, gradient=False), name="constant exponent")
    signed = lambda *shape: integers(*shape, low=-20, high=20)
    divisors = Input(np.array([-7, -3, -2, -1, 1, 2, 3, 7, 20, -20, 5, -5, 4, -4, 6, 9, 11]), "i32")
    floor_divide = lambda x, y: torch.div(x, y, rounding_mode="floor")
    case("floor_divide", floor_divide, signed(3, 17), divisors, name="all signs, as in Python")
    case("modulo", torch.remainder, signed(3, 17), divisors, name="all signs, as in Python")
    case("floor_divide", floor_divide, Input(np.array([[-10**12], [10**12 + 7]]), "i64"), Input([-1000003, 999983], "i64"),
         name="i64")
    case("modulo", torch.remainder, Input(np.array([[-10**12], [10**12 + 7]]), "i64"), Input([-1000003, 999983], "i64"),
         name="i64")


def comparisons():
    for op, function in (("equal", torch.eq), ("not_equal", torch.ne), ("less", torch.lt), ("less_equal", torch.le),
                         ("greater", torch.gt), ("greater_equal", torch.ge)):
        case(op, function, Input([-1.0, 0, 1, 2]), Input([[1.0], [0]]), name="broadcast")
        case(op, function, integers(17, 3, high=4, views=TRANSPOSED), integers(3, 17, high=4), name="i32 transposed")
    case("equal", torch.eq, bools(17), bools(17), name="bool")
    case("logical_and", torch.logical_and, bools(3, 17), bools(17), name="broadcast")
    case("logical_or", torch.logical_or, bools(17, 3, views=TRANSPOSED), bools(3, 1), name="transposed, broadcast")
    case("logical_not", torch.logical_not, bools(3, 17), name="")
    case("where", torch.where, bools(3, 17), real(3, 1), real(17), name="all broadcast")
    case("where", torch.where, bools(1), real(17, 3, views=TRANSPOSED), real(), name="one condition")
    case("where", torch.where, bools(17), integers(17), integers(1), name="i32")


def conversions():
    to = {"f32": torch.float64, "f64": torch.float64, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
          "bool": torch.bool}
    cast = lambda name: lambda x: x.to(to[name])
    case("cast", cast("f64"), real(17), name="f32 to f64", output_types=["f64"], to="f64")
    case("cast", cast("f32"), integers(17, 3, high=256, dtype="u8", views=TRANSPOSED), name="u8 to f32", to="f32")
    case("cast", cast("f32"), bools(17), name="bool to f32", to="f32")
    case("cast", cast("i32"), real(17), name="f32 to i32, towards zero", to="i32")
    case("cast", cast("i32"), integers(17, high=256, dtype="u8"), name="u8 to i32", to="i32")
    case("cast", cast("i64"), integers(17, low=-5), name="i32 to i64", to="i64")
    case("cast", cast("bool"), Input([-1.0, 0, 0.5]), name="f32 to bool", to="bool")
    saturated = lambda x: torch.tensor([2**31 - 1, -2**31, 0], dtype=torch.int32)
    case("cast", saturated, Input([4e9, -4e9, math.nan], gradient=False), name="out of range saturates, nan is 0", to="i32")
    case("full", lambda: torch.full((3, 17), 0.25, dtype=torch.float64), name="f32", shape=[3, 17], value=0.25)
    case("full", lambda: torch.full((), 7, dtype=torch.int32), name="i32 scalar", shape=[], value=7, to="i32")
    case("arange", lambda: torch.arange(17, dtype=torch.int32), name="i32", shape=[17])
    case("arange", lambda: torch.arange(17, dtype=torch.float64), name="f32", shape=[17], to="f32")


def reductions():
    reduced = {"sum": torch.sum, "mean": torch.mean, "max": torch.amax, "min": torch.amin}
    for op, function in reduced.items():
        everything = lambda x, f=function: f(x, tuple(range(x.dim())))
        case(op, everything, real(3, 17), name="all axes")
        case(op, everything, real(1000), name="1000")
        case(op, everything, real(), name="scalar")
        case(op, lambda x, f=function: f(x, (0,)), real(3, 17), name="first axis", axis=[0])
        case(op, lambda x, f=function: f(x, (1,), True), real(17, 3, views=TRANSPOSED), name="last axis kept, transposed",
             axis=[-1], keepdims=True)
        case(op, lambda x, f=function: f(x, (0, 2)), real(3, 17, 5), name="outer axes", axis=[0, 2])
        case(op, lambda x, f=function: f(x, (1,)), real(3, 1, 5), name="axis of size one", axis=[1])
        case(op, lambda x, f=function: f(x, (1,)), real(3, 1, views=[("expand", 3, 17)]), name="expanded input", axis=[1])
    case("max", lambda x: torch.amax(x, (0,)), Input([2.0, 1, 2, 2]), name="ties share the gradient")
    case("min", lambda x: torch.amin(x, (0,)), Input([[1.0, 1], [1, 3]]), name="ties", axis=[0])
    case("sum", lambda x: torch.sum(x).to(torch.int32), integers(1000, low=-5), name="i32")
    case("max", lambda x: torch.amax(x, (0,)), integers(3, 17, low=-50), name="i32", axis=[0])


def views():
    case("reshape", lambda x: x.reshape(17, 6), real(3, 2, 17), name="", shape=[17, 6])
    case("reshape", lambda x: x.reshape(51), real(17, 3, views=TRANSPOSED), name="transposed", shape=[51])
    case("reshape", lambda x: x.reshape(3, 2, 3), real(3, 17, views=STRIDED), name="strided", shape=[3, 2, 3])
    case("permute", lambda x: x.permute(2, 0, 1), real(3, 2, 17), name="", axes=[2, 0, 1])
    case("slice", lambda x: x[:, 2:16:5], real(3, 17), name="step 5", axis=1, start=2, stop=16, step=5)
    case("slice", lambda x: x[2:3], real(3, 17), name="last row", axis=0, start=2, stop=3)
    case("slice", lambda x: x[1:7:2], real(3, 17, views=TRANSPOSED), name="transposed", axis=0, start=1, stop=7, step=2)
    case("expand", lambda x: x.expand(2, 3, 17), real(3, 1), name="", shape=[2, 3, 17])
    case("transpose", lambda x: x.transpose(-1, -2), real(2, 3, 17), name="last two axes")
    case("transpose", lambda x: x.permute(1, 2, 0), real(2, 3, 17), name="given axes", axes=[1, 2, -3])
    case("concat", lambda *x: torch.cat(x, 0), real(3, 5), real(1, 5), real(2, 5), name="rows", axis=0)
    case("concat", lambda *x: torch.cat(x, 1), real(3, 1), real(17, 3, views=TRANSPOSED), name="columns", axis=1)
    case("concat", lambda *x: torch.cat(x, -1), real(3, 2), real(3, 5), name="last axis", axis=-1)
    case("concat", lambda *x: torch.cat(x, 0), real(17), name="one tensor")
    case("concat", lambda *x: torch.cat(x, 0), integers(3), integers(17), name="i32")
    case("stack", lambda *x: torch.stack(x, 0), real(17), real(17), real(17), name="first axis")
    case("stack", lambda *x: torch.stack(x, -1), real(3, 17, views=STRIDED), real(3, 6), name="last axis", axis=-1)
    case("stack", lambda *x: torch.stack(x, 1), real(3, 17), real(3, 17), name="middle axis", axis=1)
    case("stack", lambda *x: torch.stack(x, 0), real(), real(), name="scalars")


def language_views():
    """What the language offers beside the op table; their arguments are not attributes of an operator."""
    heads = lambda x: x.reshape(2, 5, 3, 4).permute(2, 0, 1, 3)
    case("rearrange", heads, real(2, 5, 12), name="heads", pattern="b t (h d) -> h b t d", sizes={"h": 3})
    case("rearrange", lambda x: x.permute(1, 2, 0).reshape(3, 34), real(2, 3, 17), name="merge", pattern="a b c -> b (c a)",
         sizes={})
    case("rearrange", lambda x: x.reshape(17, 1, 3), real(3, 17, views=[("permute", 1, 0)]), name="unit axis",
         pattern="a b -> a 1 b", sizes={})
    case("rearrange", lambda x: x.reshape(2, 3, 2, 4, 2).permute(0, 2, 4, 1, 3).reshape(8, 3, 4), real(2, 6, 8),
         name="blocks to the batch", pattern="b (h p) (w q) -> (b p q) h w", sizes={"p": 2, "q": 2})
    case("split", lambda x: torch.chunk(x, 3, 1), real(2, 12), name="thirds", differentiated=3, parts=3, axis=1)
    case("split", lambda x: torch.chunk(x, 2, 0), real(3, 4, views=TRANSPOSED), name="transposed, the first half alone has a loss",
         differentiated=1, parts=2, axis=0)
    case("unstack", lambda x: torch.unbind(x, 0), real(3, 17), name="rows", differentiated=3, axis=0)
    case("unstack", lambda x: torch.unbind(x, 1), real(3, 4, 2), name="middle axis, two of four have a loss", differentiated=2,
         axis=1)
    case("index", lambda x: x[:, 4], real(3, 17), name="a column", axis=1, at=4)
    case("index", lambda x: x[2], real(3), name="an element", axis=0, at=2)


def products():
    matmul = torch.matmul
    case("contract", matmul, real(3, 17), real(17, 5), name="3x17 17x5")
    case("contract", matmul, real(1, 1000), real(1000, 1), name="inner 1000")
    case("contract", matmul, real(3, 1), real(1, 17), name="outer")
    case("contract", matmul, real(1, 1), real(1, 1), name="1x1")
    case("contract", matmul, real(2, 1, 3, 5), real(4, 5, 2), name="batches broadcast")
    case("contract", matmul, real(17, 3, views=TRANSPOSED), real(5, 17, views=TRANSPOSED), name="both transposed")
    case("contract", matmul, real(3, 17, views=STRIDED), real(6, 5), name="strided columns")
    case("contract", matmul, real(3, 2, 5, views=[("permute", 1, 0, 2)]), real(2, 5, 3), name="permuted batch")
    case("matmul", matmul, real(17), real(17), name="two vectors")
    case("matmul", matmul, real(17), real(17, 3), name="row vector")
    case("matmul", matmul, real(3, 17), real(17), name="column vector")
    case("matmul", matmul, real(2, 3, 17), real(17), name="batch and vector")
    case("matmul", matmul, real(17), real(2, 17, 3), name="vector and batch")
    case("matmul", matmul, real(2, 3, 5), real(5, 4), name="rows of a batch")
    case("matmul", matmul, real(3, 2, 5, views=[("permute", 1, 0, 2)]), real(4, 5, views=TRANSPOSED), name="permuted batch")
    case("matmul", matmul, real(2, 3, 5), real(2, 5, 4), name="batched")
    case("matmul", matmul, real(2, 3, 5, dtype="f64"), real(5, 4, dtype="f64"), name="f64")
    case("linear", F.linear, real(3, 17), real(5, 17), real(5), name="bias")
    case("linear", F.linear, real(2, 3, 17), real(5, 17), None, name="no bias, batch")
    case("linear", F.linear, real(17), real(5, 17), real(5), name="vector")


def normalisation():
    for axis, shape in ((-1, (3, 17)), (0, (3, 17)), (1, (2, 3, 5)), (-1, (1, 1)), (-1, (2, 1000))):
        for op, function in (("softmax", torch.softmax), ("log_softmax", torch.log_softmax)):
            case(op, lambda x, f=function, a=axis: f(x, a), real(*shape, low=-6, high=6), name=f"axis {axis} of {list(shape)}",
                 axis=axis)
    case("softmax", lambda x: torch.softmax(x, -1), real(17, 3, views=TRANSPOSED), name="transposed, default axis")
    case("softmax", lambda x: torch.softmax(x, -1), Input([[1000.0, 999, 0], [-1000, -1000, -1000]]), name="far out")
    case("log_softmax", lambda x: torch.log_softmax(x, -1), Input([[1000.0, 999, 0], [-1000, -1000, -1000]]), name="far out")
    case("softmax_rows", lambda x: torch.softmax(x, -1), real(2, 3, 17), name="rank 3")

    def layer_norm(x, weight=None, bias=None, eps=1e-5):
        y = F.layer_norm(x, x.shape[-1:], weight, bias, eps)
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
        return y, mean, torch.rsqrt(variance + eps)

    case("layer_norm", layer_norm, real(3, 17), real(17), real(17), name="weight and bias")
    case("layer_norm", layer_norm, real(2, 3, 5), None, None, name="neither")
    case("layer_norm", layer_norm, real(3, 17), real(17), None, name="no bias")
    case("layer_norm", layer_norm, real(3, 17), None, real(17), name="no weight")
    case("layer_norm", lambda x, w, b: layer_norm(x, w, b, 0.1), real(17, 3, views=TRANSPOSED), real(17), real(17),
         name="transposed, eps 0.1", eps=0.1)
    case("layer_norm", layer_norm, real(2, 1000), real(1000), real(1000), name="1000")
    case("layer_norm", layer_norm, real(17), real(17), real(17), name="one row, rank 1")
    case("layer_norm", layer_norm, real(3, 1), real(1), real(1), name="one column")
    rms_norm = lambda x, weight=None, eps=1e-6: F.rms_norm(x, x.shape[-1:], weight, eps)
    case("rms_norm", rms_norm, real(3, 17), real(17), name="weight")
    case("rms_norm", rms_norm, real(17, 3, views=TRANSPOSED), None, name="no weight, transposed")
    case("rms_norm", lambda x, w: rms_norm(x, w, 0.1), real(2, 3, 5), real(5), name="eps 0.1", eps=0.1)


def losses():
    labels = lambda *data, dtype="i32": Input(np.array(data), dtype)

    def cross_entropy(x, t, ignore=None, smoothing=0.0, reduce="mean"):
        t = t.long()
        rows, classes = x.reshape(-1, x.shape[-1]), x.shape[-1]
        loss = F.cross_entropy(rows, t.reshape(-1), reduction=reduce, label_smoothing=smoothing,
                               ignore_index=-100 if ignore is None else ignore)
        return loss.reshape(t.shape) if reduce == "none" else loss

    ce = cross_entropy
    case("cross_entropy", ce, real(3, 17), labels(0, 16, 5), name="mean")
    case("cross_entropy", ce, real(2, 3, 5), integers(2, 3, high=5), name="batch of sequences")
    case("cross_entropy", ce, real(3, 17), labels(0, 16, 5, dtype="u8"), name="u8 targets")
    case("cross_entropy", ce, real(3, 17), labels(0, 16, 5, dtype="i64"), name="i64 targets")
    for reduce in ("mean", "sum", "none"):
        case("cross_entropy", lambda x, t, r=reduce: ce(x, t, -1, 0.1, r), real(5, 7), labels(-1, 3, 0, -1, 6),
             name=f"ignore, smoothing, {reduce}", ignore=-1, smoothing=0.1, reduce=reduce)
    case("cross_entropy", lambda x, t: ce(x, t, -100), real(3, 5), labels(4, -100, 2), name="ignore -100", ignore=-100)
    case("cross_entropy", lambda x, t: ce(x, t, 2), real(3, 5), labels(4, 2, 2), name="an ignored class", ignore=2)
    case("cross_entropy", lambda x, t: ce(x, t, smoothing=0.3), real(17, 3, views=TRANSPOSED), labels(1, 2, 16),
         name="smoothing, transposed", smoothing=0.3)
    case("cross_entropy", ce, real(2, 1000, low=-6, high=6), labels(999, 0), name="1000 classes")
    # the log-sum-exp, near 1000, is kept as one float: its last bit is 6e-5 of every probability
    case("cross_entropy", ce, Input([[1000.0, 0, -1000], [-1000, -1000, -1000]]), labels(2, 0), name="far out", tolerance=1e-4)
    case("cross_entropy", lambda x, t: ce(x, t, -1), Input(np.zeros((2, 3))), labels(-1, 1), name="ln 3 over one row", ignore=-1)
    all_ignored = lambda x, t: (x * 0).sum()
    case("cross_entropy", all_ignored, real(2, 3), labels(-1, -1), name="all ignored gives 0", ignore=-1)

    def rows(x, t, ignore=None, smoothing=0.0):
        return ce(x, t, ignore, smoothing, "none"), torch.logsumexp(x, -1)

    case("cross_entropy_rows", rows, real(3, 17), labels(0, 16, 5), name="loss and log-sum-exp")
    case("cross_entropy_rows", lambda x, t: rows(x, t, -1, 0.1), real(3, 17), labels(0, -1, 5), name="ignore, smoothing",
         ignore=-1, smoothing=0.1)
    for reduce in ("mean", "sum", "none"):
        case("mse", lambda x, y, r=reduce: F.mse_loss(x, y, reduction=r), real(3, 17), real(17, 3, views=TRANSPOSED),
             name=reduce, reduce=reduce)
    case("mse", lambda x, y: F.mse_loss(x, y.expand(3, 17)), real(3, 17), real(17), name="broadcast")


def choices():
    case("argmax", lambda x: torch.argmax(x, -1).int(), Input([[1.0, 3, 3], [-1, -2, -1]]), name="the first of equals")
    case("argmax", lambda x: torch.argmax(x, 0).int(), Input(np.random.default_rng(0).permutation(51).reshape(3, 17) / 4),
         name="axis 0", axis=0)
    distinct = Input(np.random.default_rng(1).permutation(30).reshape(2, 5, 3) / 4)
    case("argmax", lambda x: torch.argmax(x, 1).int(), distinct, name="middle axis", axis=1)
    case("argmax_rows", lambda x: torch.argmax(x, -1).int(), Input(np.random.default_rng(2).permutation(1000)[None] / 4),
         name="1000")
    embed = lambda table, index: F.embedding(index.long(), table)
    case("embed", embed, real(17, 3), Input(np.array([3, 0, 16, 3, 3]), "i32"), name="repeated indices")
    case("embed", embed, real(5, 7), integers(2, 3, high=5), name="batch of sequences")
    case("embed", embed, real(3, 17, views=TRANSPOSED), Input(np.array(4), "i32"), name="scalar index, transposed table")
    case("embed", embed, real(1, 1), Input(np.array([0, 0, 0]), "i32"), name="one entry")


def attentions():
    def attention(q, k, v, bias=None, mask=None, causal=False, scale=None):
        scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
        if bias is not None:
            scores = scores + bias
        if mask is not None:
            scores = scores.masked_fill(~(mask[:, None, None] if mask.dim() == 2 and scores.dim() == 4 else mask), -1e30)
        if causal:
            rows, columns = scores.shape[-2:]
            scores = scores.masked_fill(torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows).logical_not(), -1e30)
        return torch.softmax(scores, -1) @ v

    sdpa = F.scaled_dot_product_attention
    case("attention", lambda q, k, v: sdpa(q, k, v), real(3, 5), real(7, 5), real(7, 2), name="plain")
    case("attention", lambda q, k, v, b, m: sdpa(q, k, v, is_causal=True), real(2, 3, 5, 4), real(2, 3, 5, 4), real(2, 3, 5, 4),
         None, None, name="causal", causal=True)
    case("attention", lambda q, k, v, b, m: sdpa(q, k, v, attn_mask=m[:, None, None]), real(2, 2, 3, 4), real(2, 2, 5, 4),
         real(2, 2, 5, 4), None, Input(np.array([[1, 1, 0, 1, 0], [0, 1, 1, 1, 1]], bool), "bool"), name="mask of keys")
    case("attention", lambda q, k, v, b: sdpa(q, k, v, attn_mask=b, scale=0.5), real(2, 2, 3, 4), real(2, 2, 5, 4),
         real(2, 2, 5, 4), real(2, 3, 5), name="bias, scale", scale=0.5)
    case("attention", lambda q, k, v, b, m: attention(q, k, v, b, m, True), real(2, 2, 3, 4), real(2, 2, 5, 4), real(2, 2, 5, 4),
         real(1, 2, 3, 5), Input(np.array([[1, 1, 1, 1, 1], [1, 1, 0, 1, 1]], bool), "bool"),
         name="causal with more keys than queries, bias, mask", causal=True)
    case("attention", lambda q, k, v: sdpa(q, k, v, is_causal=True), *[
        real(2, 5, 3, 4, views=[("permute", 0, 2, 1, 3)]) for _ in range(3)], name="causal, heads by permutation", causal=True)
    lower = lambda x, value=-1e30: x.masked_fill(torch.ones(x.shape[-2:], dtype=torch.bool).tril(
        x.shape[-1] - x.shape[-2]).logical_not(), value)
    case("causal_mask", lower, real(2, 5, 5), name="square")
    case("causal_mask", lambda x: lower(x, -2.0), real(3, 5), name="more columns than rows, value -2", value=-2.0)


def dropout():
    """The mask by the rule of runtime/random.h: seed 7 and micro-step 3 (set by the test), module path: the case's name."""

    def drop(x, p, path):
        u = philox.uniform(7, philox.operator_id(path, 0), 3, np.arange(x.numel())).reshape(x.shape)
        return torch.where(torch.tensor(u < np.float32(p)), 0.0, x / (1 - p))

    case("dropout", lambda x: drop(x, 0.5, "default p"), real(1000), name="default p")
    case("dropout", lambda x: drop(x, 0.25, "transposed"), real(17, 3, views=TRANSPOSED), name="transposed", p=0.25)
    case("dropout", lambda x: x * 1, real(17), name="p 0 is the identity", p=0.0)


def main():
    torch.set_default_dtype(torch.float64)
    for group in (pointwise_one, pointwise_two, comparisons, conversions, reductions, views, language_views, products,
                  normalisation, losses, choices, attentions, dropout):
        start_group()
        group()
    folder = os.path.dirname(os.path.abspath(__file__))
    write(sys.argv[1] if len(sys.argv) > 1 else os.path.join(folder, "operators.json"))


if __name__ == "__main__":
    main()
