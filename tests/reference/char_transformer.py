"""Writes char_transformer.json: the first losses of examples/char_transformer.rp, computed with PyTorch.

    python char_transformer.py [char_transformer.json]

Two configurations, trained on the text of the project's licence: a small one, and the one of the file itself. Initial
weights and windows are drawn by the project's rules (philox.py), so nothing but the losses is stored.
"""

import json
import math
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

import philox

HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = os.path.join(HERE, "..", "..", "LICENSE")
SEED, UPDATES, TRAIN = 1337, 20, 10000
LEARNING_RATE, BETAS, DECAY, CLIP = 2e-3, (0.9, 0.99), 0.1, 1.0
WARMUP, STEPS, FINAL = 100, 2500, 0.05
VOCABULARY = 256

CONFIGURATIONS = {"small": {"B": 4, "T": 16, "C": 32, "H": 2, "L": 2}, "default": {"B": 16, "T": 64, "C": 128, "H": 4, "L": 4}}


def shapes(c):
    """Name -> (shape, standard deviation or constant), in the order in which the model declares them."""
    wide, residual = c["C"], 0.02 / math.sqrt(2 * c["L"])
    tensors = {"wte.weight": ((VOCABULARY, wide), 0.02), "wpe.weight": ((c["T"], wide), 0.02)}

    def norm(path):
        tensors[path + ".weight"], tensors[path + ".bias"] = ((wide,), "ones"), ((wide,), "zeros")

    def product(path, inner, outer, std):
        tensors[path + ".weight"], tensors[path + ".bias"] = ((inner, outer), std), ((outer,), "zeros")

    for i in range(c["L"]):
        norm(f"h.{i}.ln_1")
        product(f"h.{i}.attn.c_attn", wide, 3 * wide, 0.02)
        product(f"h.{i}.attn.c_proj", wide, wide, residual)
        norm(f"h.{i}.ln_2")
        product(f"h.{i}.mlp.c_fc", wide, 4 * wide, 0.02)
        product(f"h.{i}.mlp.c_proj", 4 * wide, wide, residual)
    norm("ln_f")
    return tensors


def initial(name, shape, kind):
    if isinstance(kind, str):
        return torch.full(shape, 1.0 if kind == "ones" else 0.0)
    drawn = philox.normal(SEED, philox.hash_name(name), philox.INITIAL_STREAM, np.arange(int(np.prod(shape))))
    return torch.tensor((kind * drawn).astype(np.float32)).reshape(shape)


def forward(w, c, text, following):
    batch, time = text.shape
    normed = lambda x, path: F.layer_norm(x, (c["C"],), w[path + ".weight"], w[path + ".bias"], 1e-5)
    product = lambda x, path: x @ w[path + ".weight"] + w[path + ".bias"]
    x = w["wte.weight"][text] + w["wpe.weight"]
    for i in range(c["L"]):
        qkv = product(normed(x, f"h.{i}.ln_1"), f"h.{i}.attn.c_attn")
        q, k, v = qkv.reshape(batch, time, 3, c["H"], -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + product(y.permute(0, 2, 1, 3).reshape(batch, time, -1), f"h.{i}.attn.c_proj")
        hidden = F.gelu(product(normed(x, f"h.{i}.ln_2"), f"h.{i}.mlp.c_fc"), approximate="tanh")
        x = x + product(hidden, f"h.{i}.mlp.c_proj")
    logits = normed(x, "ln_f") @ w["wte.weight"].T
    return F.cross_entropy(logits.reshape(-1, VOCABULARY), following.reshape(-1))


def rate(update):
    """Factor of the schedule at update 0, 1, …"""
    if update < WARMUP:
        return (update + 1) / WARMUP
    return FINAL + (1 - FINAL) * (1 + math.cos(math.pi * (update - WARMUP) / (STEPS - WARMUP))) / 2


def batch(c, text, number):
    """Micro-step `number` of the training data: windows of one pass over the text, drawn anew."""
    batches = (len(text) - 1) // c["T"] // c["B"]
    samples = number % batches * c["B"] + np.arange(c["B"])
    starts = philox.window_starts(SEED, number // batches, samples, len(text), c["T"])
    windows = torch.tensor(np.stack([text[s : s + c["T"] + 1] for s in starts]).astype(np.int64))
    return windows[:, :-1], windows[:, 1:]


def train(c, text):
    weights = {name: initial(name, *spec).requires_grad_() for name, spec in shapes(c).items()}
    matrices = [w for w in weights.values() if w.dim() >= 2]
    vectors = [w for w in weights.values() if w.dim() < 2]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE, betas=BETAS, eps=1e-8)
    losses = []
    for update in range(UPDATES):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * rate(update)
        loss = forward(weights, c, *batch(c, text, update))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights.values(), CLIP)
        optimizer.step()
        losses.append(float(f"{loss.item():.9g}"))
    return losses


def main():
    torch.set_num_threads(1)
    text = np.frombuffer(open(TEXT, "rb").read(), np.uint8)[:TRAIN]
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "char_transformer.json")
    result = {"text": "LICENSE", "TRAIN": TRAIN,
              "configurations": {n: {"definitions": c, "losses": train(c, text)} for n, c in CONFIGURATIONS.items()}}
    with open(path, "w", encoding="ascii") as file:
        file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
