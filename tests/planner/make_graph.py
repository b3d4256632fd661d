#!/usr/bin/env python3
"""Write a synthetic training graph in the reprise-graph format to stdout.

usage: make_graph.py transformer LAYERS | chain LENGTH | rnn STEPS

transformer: 9 forward and 9 backward nodes a layer, costs in µs and bytes of a GPT-2-like block (B=8, T=1024, C=768).
chain: equal layers of 1 MiB and unit cost. rnn: STEPS cells that share a weight, whose gradient accumulates.
"""
import json
import sys

MIB = 1 << 20


class Builder:
    def __init__(self):
        self.nodes, self.tensors = [], []

    def node(self, name, cost, inputs, outputs, phase, op, module, recompute=True):
        self.nodes.append({"id": name, "cost": cost, "inputs": inputs,
                           "outputs": [{"id": o, "bytes": b} for o, b in outputs], "recompute": recompute,
                           "phase": phase, "op": op, "module": module})

    def dump(self, name, results):
        lines = ",\n  ".join(json.dumps(n) for n in self.nodes)
        head = json.dumps({"format": "reprise-graph", "version": 1, "name": name, "tensors": self.tensors,
                           "results": results})
        print(f'{head[:-1]}, "nodes": [\n  {lines}\n ]}}')


def transformer(layers):
    b = Builder()
    b.tensors = [{"id": "x0", "bytes": 24 * MIB}] + [{"id": f"w{i}", "bytes": 27 * MIB} for i in range(layers)]
    x = "x0"
    for i in range(layers):
        m, w, p = f"h.{i}", f"w{i}", f"l{i}."
        f = lambda n, c, ins, byts, op: b.node(p + n, c, ins, [(p + n + "_o", byts * MIB)], "forward", op, m)
        f("ln1", 22, [x], 24, "layer_norm")
        f("qkv", 260, [p + "ln1_o", w], 72, "matmul")
        f("att", 190, [p + "qkv_o"], 25, "attention")
        f("proj", 90, [p + "att_o", w], 24, "matmul")
        f("res1", 30, [x, p + "proj_o"], 24, "add")
        f("ln2", 22, [p + "res1_o"], 24, "layer_norm")
        f("fc", 350, [p + "ln2_o", w], 96, "matmul")
        f("gelu", 70, [p + "fc_o"], 96, "gelu")
        f("mlp", 350, [p + "gelu_o", w, p + "res1_o"], 24, "matmul")
        x = p + "mlp_o"
    b.node("loss", 10, [x], [("loss_o", 4)], "forward", "loss", "head", False)
    b.node("dloss", 10, ["loss_o", x], [("g", 24 * MIB)], "backward", "loss", "head", False)
    g = "g"
    for i in reversed(range(layers)):
        m, w, p = f"h.{i}", f"w{i}", f"l{i}."
        xin = f"l{i-1}.mlp_o" if i else "x0"
        k = lambda n, c, ins, byts, op: b.node(p + "d" + n, c, ins, [(p + n + "_g", byts * MIB)], "backward", op, m, False)
        k("mlp", 700, [g, p + "gelu_o", w], 96, "matmul")
        k("gelu", 100, [p + "mlp_g", p + "fc_o"], 96, "gelu")
        k("fc", 700, [p + "gelu_g", p + "ln2_o", w], 24, "matmul")
        k("ln2", 50, [p + "fc_g", p + "res1_o"], 24, "layer_norm")
        k("res1", 30, [g, p + "ln2_g"], 24, "add")
        k("proj", 180, [p + "res1_g", p + "att_o", w], 24, "matmul")
        k("att", 480, [p + "proj_g", p + "qkv_o", p + "att_o"], 72, "attention")
        k("qkv", 520, [p + "att_g", p + "ln1_o", w], 24, "matmul")
        k("ln1", 50, [p + "qkv_g", p + "res1_g", xin], 24, "layer_norm")
        g = p + "ln1_g"
    b.dump(f"transformer{layers}", [g])


def chain(length):
    b = Builder()
    b.tensors = [{"id": "x", "bytes": 0}]
    for i in range(1, length + 1):
        b.node(f"f{i}", 1, [f"h{i-1}" if i > 1 else "x"], [(f"h{i}", MIB)], "forward", "tanh", f"layer.{i}")
    b.node("loss", 0, [f"h{length}"], [("L", 0)], "forward", "loss", "head", False)
    b.node("seed", 0, ["L"], [(f"g{length}", MIB)], "backward", "loss", "head", False)
    for i in range(length, 0, -1):
        b.node(f"b{i}", 1, [f"h{i}", f"g{i}"], [(f"g{i-1}", MIB)], "backward", "tanh", f"layer.{i}", False)
    b.dump(f"chain{length}", ["g0"])


def rnn(steps):
    b = Builder()
    b.tensors = [{"id": "w", "bytes": 4 * MIB}, {"id": "h0", "bytes": MIB}]
    for t in range(1, steps + 1):
        b.node(f"mm{t}", 8, [f"h{t-1}", "w"], [(f"z{t}", MIB)], "forward", "matmul", f"cell.{t}")
        b.node(f"tanh{t}", 2, [f"z{t}"], [(f"h{t}", MIB)], "forward", "tanh", f"cell.{t}")
    b.node("loss", 1, [f"h{steps}"], [("L", 64)], "forward", "loss", "head", False)
    b.node("seed", 1, ["L", f"h{steps}"], [(f"g{steps}", MIB)], "backward", "loss", "head", False)
    for t in range(steps, 0, -1):
        b.node(f"dtanh{t}", 2, [f"h{t}", f"g{t}"], [(f"gz{t}", MIB)], "backward", "tanh", f"cell.{t}", False)
        extra = [f"dw{t+1}"] if t < steps else []
        b.node(f"dw{t}", 8, [f"h{t-1}", f"gz{t}"] + extra, [(f"dw{t}", 4 * MIB)], "backward", "matmul", f"cell.{t}", False)
        b.node(f"dh{t}", 8, [f"gz{t}", "w"], [(f"g{t-1}", MIB)], "backward", "matmul", f"cell.{t}", False)
    b.dump(f"rnn{steps}", ["dw1"])


if __name__ == "__main__":
    {"transformer": transformer, "chain": chain, "rnn": rnn}[sys.argv[1]](int(sys.argv[2]))
