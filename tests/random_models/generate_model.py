"""Random models in the Reprise language: the same seed gives the same text.

A model is a chain of random steps on a pool of values [B, T, E] with B, T, E of odd sizes: layers, residuals, shared
modules, weights used twice, blocks to recompute (also in each other and around loops), keep and freeze, states of modules
and of the model, slices, concatenations, rearrangements, attention, embeddings, gradients of inner values. Kinks and steep
functions are left out where finite differences would be meaningless.
"""
import random

MODULES = """
module Linear(x: [..., I], O) {
  param weight: [O, I] = kaiming_uniform
  param bias: [O] = uniform(0.1)
  return linear(x, weight, bias)
}
module Norm(x: [..., E]) {
  param weight: [E] = uniform(1)
  param bias: [E] = normal(0.1)
  return layer_norm(x, weight + 1, bias, eps=0.1)
}
module Scale(x: [..., E]) {
  param g: [E] = normal(0.5, mean=1)
  return rms_norm(x, g, eps=0.1)
}
module Centre(x: [B, T, E]) {
  state mean: [E] = zeros
  state count: i64[] = zeros
  if eval { return x - mean }
  m = mean(mean(x, axis=0), axis=0)
  update mean = 0.9*mean + 0.1*m
  update count = count + 1
  return x - m + 0.5*mean
}
module MLP(x: [..., E]) { return x + down:Linear(tanh(up:Linear(x, 2*E)), E) }
module Attention(x: [B, T, E], H, P) {
  q, k, v = unstack(rearrange(qkv:Linear(x, 3*E), "b t (s h d) -> s b h t d", s=3, h=H))
  y = attention(q, k, v, causal=true, dropout=P)
  return proj:Linear(rearrange(y, "b h t d -> b t (h d)"), E)
}
"""

POINTWISE = ["tanh({})", "sigmoid({})", "silu({})", "gelu({})", 'gelu({}, "tanh")', "softplus({})", "sin({})",
             "{0}*{0}*0.3", "-{}", "exp(-square({}))", "rsqrt(1 + square({}))", "erf({})", "1/(1.5 + square({}))"]


class Model:
    def __init__(self, seed, most_steps=8):
        self.random = random.Random(seed)
        self.most_steps = most_steps
        choose = self.random.choice
        self.batch, self.length = choose([1, 2, 3, 5]), choose([1, 2, 3, 4, 7])
        self.heads = choose([1, 2, 3])
        self.width = self.heads*choose([1, 2, 4, 5])
        self.vocabulary = choose([1, 3, 11])
        self.lines, self.pool, self.count, self.indent = [], [], 0, "  "
        self.wishes, self.freezing = [], False
        self.shared, self.uses = {}, 0
        self.calls = {"up": [], "recomputed": False}

    def line(self, text):
        self.lines.append(self.indent + text)

    def name(self):
        self.count += 1
        return f"v{self.count}"

    def value(self):
        """A value of shape [B, T, E], later ones more often."""
        return self.pool[max(self.random.randrange(len(self.pool)), self.random.randrange(len(self.pool)))]

    def label(self, module):
        """A fresh label, or a shared one of this module."""
        if module in self.shared and self.random.random() < 0.5:
            return self.shared[module]
        self.uses += 1
        return f"m{self.uses}"

    def layer(self, x):
        module = self.random.choice(["Linear", "Norm", "Scale", "MLP", "Attention", "Centre"])
        arguments = {"Linear": ", E", "Attention": f", H, {self.random.choice([0, 0, 0.25])}"}.get(module, "")
        return f"{self.label(module)}:{module}({x}{arguments})"

    def pieces(self, x):
        """Takes a value apart and puts it together again."""
        half = self.random.randrange(1, self.width) if self.width > 1 else 0
        forms = ['rearrange(rearrange({0}, "b t e -> e (b t)"), "e (b t) -> b t e", b=B)',
                 "permute(permute({0}, [2, 0, 1]), [1, 2, 0])",
                 "transpose(transpose({0}))*0.5",
                 "stack(unstack({0}, axis=1), axis=1)",
                 "concat({0}[:, T-1:], {0}[:, :T-1], axis=1)" if self.length > 1 else "{0}[:, 0:1]",
                 "reshape(reshape({0}, [B*T, E]), [B, T, E])",
                 "{0}[:, 0:1] + {0}",
                 "expand({0}[:, :, 0:1], [B, T, E])",
                 f"concat({{0}}[..., {half}:], {{0}}[..., :{half}], axis=-1)" if half else "{0} - {0}[0]",
                 "{0} - mean({0}, axis=-1, keepdims=true)",
                 "sum({0}, axis=[0, 1])*0.1 + {0}",
                 "softmax({0})", "log_softmax({0}, axis=1)*0.2", "softmax({0}, axis=0)",
                 "(softmax({0} @ transpose({0})) @ {0})"]
        form = self.random.choice(forms)
        if form.startswith("stack(unstack"):
            names = [self.name() for _ in range(self.length)]
            self.line(f"{', '.join(names)} = unstack({x}, axis=1)")
            return f"stack({', '.join(reversed(names))}, axis=1)"
        return form.format(x)

    def parameter(self, x):
        """A parameter of the model itself, broadcast against the value."""
        name = f"p{self.uses}"
        self.uses += 1
        shape = self.random.choice(["[E]", "[T, 1]", "[]", "[B, 1, 1]", "[1, T, E]", "[E, E]"])
        self.line(f"param {name}: {shape} = normal(0.3)")
        if shape == "[E, E]":
            return f"{x} @ {name}"
        return self.random.choice(["{0}*{1}", "{1} + {0}", "{0} - {1}*{1}"]).format(x, name)

    def expression(self):
        x = self.value()
        kind = self.random.random()
        if kind < 0.30:
            return self.layer(x)
        if kind < 0.45:
            return f"{x} + {self.layer(x)}"
        if kind < 0.60:
            return self.random.choice(POINTWISE).format(x)
        if kind < 0.78:
            return self.pieces(x)
        if kind < 0.88:
            return self.parameter(x)
        return self.random.choice(["{0}*{1}", "{0} + {1}", "dropout({0}, 0.2) + {1}", "stop({0}) + {1}",
                                   "where({0} < 100.0, {1}, {0})", "{0} + {0}"]).format(x, self.value())

    def block(self, opening, most):
        """Steps in a block of their own."""
        self.line(opening + " {")
        self.indent += "  "
        for _ in range(self.random.randrange(1, most + 1)):
            self.step()
        self.indent = self.indent[2:]
        self.line("}")

    def loop(self):
        """A value that some turns of a loop make anew, with weights of each turn."""
        name, turns = self.name(), self.random.randrange(2, 5)
        self.line(f"{name} = {self.value()}")
        inside = self.random.choice(["{0}", "{0}", "recompute {{ {0} }}"]) if "recompute" not in self.opened() else "{0}"
        body = self.random.choice(["{0} = {0} + tanh({1}.{{i}}:Linear({0}, E))", "{0} = tanh({1}.{{i}}:Linear({0}, E)*{0})",
                                   "h = sin({1}.{{i}}:Linear({0}, E)); {0} = {0}*0.5 + h*h", "{0} = dropout({1}.{{i}}:MLP({0}), 0.1)"])
        self.uses += 1
        self.line(f"for i in 0..{turns} {{ {inside.format(body.format(name, f'm{self.uses}'))} }}")
        self.pool.append(name)

    def opened(self):
        """Words of the blocks that are open."""
        depth, words = len(self.indent)//2 - 1, []
        for line in reversed(self.lines):
            at = (len(line) - len(line.lstrip()))//2
            if line.endswith("{") and at <= depth:
                words.append(line.split()[0])
                depth = at - 1
        return words

    def model_state(self):
        """A state of the model: read before or after its update, or both."""
        name, x = f"s{self.name()}", self.value()
        self.line(f"state {name}: [E] = {self.random.choice(['zeros', 'ones', 'normal(0.5)'])}")
        reads = [f"{self.name()} = {x}*0.5 + {name}", f"{self.name()} = {x}*({name} + 0.5)"]
        update = f"update {name} = 0.9*{name} + 0.1*mean(mean({self.value()}, axis=0), axis=0)"
        for line in self.random.choice([[reads[0], update], [update, reads[1]], [reads[0], update, reads[1]]]):
            self.line(line)
            if not line.startswith("update"):
                self.pool.append(line.split()[0])
        if self.random.random() < 0.3:
            self.wishes.append(f"output seen_{name} = sum({name})")

    def step(self):
        opened = self.opened()
        kind = self.random.random()
        if kind < 0.25 and len(opened) < 2 and "freeze" not in opened:
            self.block("recompute" if kind < 0.18 or opened else "freeze", 3)
            return
        if kind < 0.32:
            self.loop()
            return
        if kind < 0.37 and "freeze" not in opened:
            self.model_state()
            return
        name = self.name()
        expression = self.expression()
        keep = "recompute" not in opened and self.random.random() < 0.1
        self.line(("keep " if keep else "") + f"{name} = {expression}")
        self.pool.append(name)
        if not opened and self.random.random() < 0.1:
            self.wishes.append(f"grad {name}")

    def loss(self):
        last = self.pool[-1]
        asked = [wish.split()[1] for wish in self.wishes if wish.startswith("grad")]
        if asked:  # the loss depends on what a gradient is asked of
            self.line(f"last = {' + 0.1*'.join([last, *asked])}")
            last = "last"
        kind = self.random.randrange(4)
        # the head is a layer, or the table once more
        self.line(f"logits = head:Linear({last}, V)" if self.random.random() < 0.7 else f"logits = {last} @ transpose(table)")
        for wish in self.wishes:
            self.line(wish)
        self.line("output mean(logits), second = mean(square(logits))" if kind < 2 else "output logits")
        self.lines[-1] = self.lines[-1].replace("output mean(logits)", "output average = mean(logits)")
        if kind == 0:
            self.line('loss cross_entropy(logits, token, reduce="sum") per f32(B*T)')
        elif kind == 1:
            self.line("loss mse(mean(logits, axis=-1), y)")
        elif kind == 2:
            self.line("loss cross_entropy(logits, token, smoothing=0.1) + 0.01*mean(square(logits))")
        else:
            self.line("loss sum(square(mean(logits, axis=-1) - y)) per 1 + sum(square(y))")

    def training(self):
        choose = self.random.choice
        optimizer = choose(["sgd(lr=0.01)", "sgd(lr=0.01, momentum=0.9, nesterov=true, wd=0.01)", "adam(lr=1e-3)",
                            "adamw(lr=1e-3) { wd = 0 where rank < 2; lr = lr/2 where size > 20 }"])
        items = ['data x = npy("x.npy")', 'data y = npy("y.npy")', 'data token = npy("token.npy")',
                 "optimizer " + optimizer, f"seed {self.random.randrange(100)}"]
        items += choose([[], ["clip 0.01"], ["clip 1e-30"], ["clip 1000"]])
        items += choose([[], [f"accumulate {self.random.randrange(2, 9)}"]])
        items += choose([[], ["schedule cosine(steps=5, warmup=1)"], ["schedule step(every=1, factor=0.5)"]])
        if "head:" in "\n".join(self.lines):
            items += choose([[], [], ['freeze "head.weight"']])
        return "train Random {\n" + "".join(f"  {item}\n" for item in items) + "}\n"

    def text(self):
        for module in ["Linear", "MLP", "Attention", "Norm"]:
            if self.random.random() < 0.4:
                self.shared[module] = "tied" + module
        self.line(f"param table: [V, E] = normal(0.5)")
        self.line("e = embed(table, token)")
        self.pool = ["x", "e"]
        for _ in range(self.random.randrange(1, self.most_steps + 1)):
            self.step()
        self.loss()
        head = f"dim B = {self.batch}, T = {self.length}, E = {self.width}, V = {self.vocabulary}\nconst H = {self.heads}\n"
        shared = "".join(f"  shared {label}\n" for label in self.shared.values() if f"{label}:" in "\n".join(self.lines))
        model = "model Random(x: [B, T, E], y: [B, T], token: i32[B, T]) {\n" + shared
        return head + MODULES + model + "\n".join(self.lines) + "\n}\n" + self.training()
