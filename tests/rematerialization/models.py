"""Models and made-up data for the tests and the benchmark of rematerialization."""
import os
import random

MLP = """
dim B = 128, L = 64, W = 32
module Layer(x: [_, I]) {
  param weight: [I, I] = kaiming_normal
  param bias: [I] = zeros
  return dropout(tanh(x @ weight + bias), 0.1)
}
model DeepMLP(x: [B, W], y: [B, W]) {
  for i in 0..L { x = layer.{i}:Layer(x) }
  loss mse(x, y)
}
train DeepMLP { data x, y = csv("data.csv"); optimizer sgd(lr=0.05, momentum=0.9); seed 7 }
"""

# batch statistics written as state: updated once per step, whatever is played again
STATE = """
dim B = 64, L = 8, W = 32
module Norm(x: [_, I]) {
  param weight: [I] = ones
  state running: [I] = zeros
  state count: i64[] = zeros
  if eval { return (x - running)*weight }
  m = mean(x, axis=0)
  update running = 0.9*running + 0.1*m
  update count = count + 1
  return (x - m)*weight
}
module Layer(x: [_, I]) {
  param weight: [I, I] = kaiming_normal
  return relu(norm:Norm(x @ weight))
}
model Running(x: [B, W], y: [B, W]) {
  for i in 0..L { x = layer.{i}:Layer(x) }
  loss mse(x, y)
}
train Running { data x, y = csv("data.csv"); optimizer adam(lr=1e-3); seed 3 }
"""

ACCUMULATE = MLP.replace("DeepMLP", "Micro").replace("L = 64", "L = 12").replace("seed 7", "accumulate 3; clip 0.5; seed 7").replace(
    "sgd(lr=0.05, momentum=0.9)", "adamw(lr=1e-3, wd=0.1)")


class Model:
    def __init__(self, name, path, defines, options):
        self.name, self.path, self.defines, self.options = name, path, defines, options


def write_data():
    random.seed(5)
    with open("data.csv", "w") as f:
        for _ in range(512):
            f.write(",".join("%.4f" % random.uniform(-1, 1) for _ in range(64)) + "\n")
    with open("text.txt", "w") as f:
        f.write("".join(random.choice("abcdefgh ,.\n") for _ in range(20000)))


def own(name, text):
    with open(name + ".rp", "w") as f:
        f.write(text)
    return name + ".rp"


def find(name, source, large=False):
    """The model of a name; large: sizes whose step takes long enough to be timed."""
    examples = os.path.join(source, "examples")
    if name == "transformer":
        sizes = ["B=8", "T=128"] if large else ["B=4", "T=32"]
        return Model(name, os.path.join(examples, "char_transformer.rp"), sizes + ["TRAIN=15000", "END=20000"], ["--data", "text.txt"])
    if name == "rnn":
        sizes = ["B=64", "T=64"] if large else ["B=8", "T=64"]
        return Model(name, os.path.join(examples, "char_rnn.rp"), sizes + ["TRAIN=15000", "END=20000"], ["--data", "text.txt"])
    if name in ("tiny_transformer", "tiny_rnn"):
        sizes = ["B=2", "T=8", "C=16", "H=2", "L=2", "P=0.1"] if name == "tiny_transformer" else ["B=2", "T=6", "E=8", "D=16"]
        file = "char_transformer.rp" if name == "tiny_transformer" else "char_rnn.rp"
        return Model(name, os.path.join(examples, file), sizes + ["TRAIN=15000", "END=20000"], ["--data", "text.txt"])
    text = {"mlp": MLP, "state": STATE, "accumulate": ACCUMULATE}[name]
    return Model(name, own(name, text), ["B=256"] if large else [], [])
