#!/usr/bin/env python3
"""`keep`, `recompute`, states and views in odd combinations: `reprise verify` of each, which trains at several budgets too.

usage: odd_segments.py REPRISE SOURCE_FOLDER PART PARTS [TRAIN_ITEMS]       part 0, 1, ... of the cases
"""
import os
import subprocess
import sys
import tempfile

MODEL = """
import "PEAK"
dim B = 6, E = 8
module Linear(x: [..., I], O) {
  param weight: [O, I] = kaiming_uniform
  param bias: [O] = uniform(0.1)
  return linear(x, weight, bias)
}
model Odd(x: [B, E], y: [B, E]) {
BODY
}
train Odd { data x = constant(0.3); data y = constant(0.7); optimizer adam(lr=0.01); seed 5; ITEMS }
"""

# Statements; VALUE(v) stands for the loss of v beside a peak of memory.
CASES = {
    "an update in a segment": """
  state e: [E] = ones
  recompute { u = tanh(a:Linear(x, E)*e); update e = 0.5*e + 0.1*mean(u, axis=0); v = u*u*e }
  VALUE(mse(b:Linear(v, E), y))""",
    "a segment that reads a state after its update": """
  state e: [E] = ones
  update e = 0.5*e + 0.1*mean(x, axis=0)
  recompute { u = tanh(a:Linear(x, E)*e); v = u*u*e }
  output s = sum(e)
  VALUE(mse(b:Linear(v, E), y))""",
    "states that change places around a segment": """
  state s: [E] = ones
  state t: [E] = zeros
  p, o = s, t
  recompute { u = tanh(a:Linear(x*p + o, E)); v = u*u*p }
  update s = o + 0.5
  update t = p
  output i = sum(s), j = sum(t)
  VALUE(mse(v, y))""",
    "keep of what is made of a state": """
  state s: [E] = ones
  keep u = s*2
  update s = s + 1
  VALUE(mse(a:Linear(x*u, E), y))""",
    "keep of a view": """
  keep z = transpose(tanh(a:Linear(x, E)))
  VALUE(mean(square(tanh(transpose(z)) + b:Linear(y, E))))""",
    "keep of integers": """
  keep k = argmax(x)
  VALUE(mse(b:Linear(x, E)*f32(k[0] + 1), y))""",
    "keep of what nobody reads": """
  keep q = tanh(a:Linear(x, E))
  VALUE(mse(b:Linear(x, E), y))""",
    "keep of what only the forward pass reads": """
  keep q = stop(tanh(a:Linear(x, E)))
  VALUE(mse(b:Linear(x, E) + q, y))""",
    "keep of a name bound again, and of parts": """
  keep q = tanh(a:Linear(x, E))
  keep q = tanh(b:Linear(q, E))
  keep r, s = split(q, 2, axis=1)
  VALUE(mean(square(r*s)) + 0*mean(y))""",
    "keep of a concat that another one reads": """
  p = tanh(a:Linear(x, E))
  keep q = concat(p, p*p, axis=0)
  r = concat(q, tanh(q), axis=1)
  VALUE(mean(square(d:Linear(r, E))) + mean(y)*0)""",
    "concats in and behind a segment": """
  p = tanh(a:Linear(x, E))
  q = sigmoid(b:Linear(p, E))
  recompute { r = concat(p*q, q, axis=1); s = tanh(c:Linear(r, E)); s = s*s }
  t = concat(s, p*s, axis=0)
  VALUE(mean(square(d:Linear(t, E))) + mean(y)*0)""",
    "a segment that nobody reads": """
  recompute { q = tanh(a:Linear(x, E)) }
  VALUE(mse(b:Linear(x, E), y))""",
    "an empty segment": """
  recompute { }
  VALUE(mse(b:Linear(x, E), y))""",
    "a segment of views": """
  recompute { q = transpose(x); r = reshape(q, [E*B]); s = reshape(r, [E, B]) }
  VALUE(mse(a:Linear(transpose(s), E), y))""",
    "the loss in a segment": """
  recompute { q = tanh(a:Linear(x, E)); VALUE(mse(q*q, y)) }""",
    "outputs in a segment": """
  recompute { q = tanh(a:Linear(x, E)); output q, m = mean(q); r = q*q }
  VALUE(mse(r, y))""",
    "gradients of what a segment drops": """
  recompute { q = tanh(a:Linear(x, E)); grad q; r = q*q*x }
  grad x
  VALUE(mse(r, y))""",
    "a weight declared in a segment": """
  recompute { param w: [E, E] = normal(0.5); q = tanh(x @ w); r = q*q @ w }
  VALUE(mse(r, y))""",
    "a denominator made in a segment": """
  recompute { q = tanh(a:Linear(x, E)); d = sum(square(stop(q))) + 1 }
  loss sum(square(q - y)) per d""",
    "a frozen part in a segment": """
  recompute { freeze { q = tanh(a:Linear(x, E)) }; r = tanh(b:Linear(q, E)); s = r*r }
  VALUE(mse(c:Linear(s, E), y))""",
    "one weight in several segments": """
  shared a
  recompute { q = tanh(a:Linear(x, E)); q = q*q }
  recompute { r = tanh(a:Linear(q, E)); r = r*r }
  VALUE(mse(a:Linear(r, E), y))""",
    "dropouts in several segments": """
  recompute { q = dropout(tanh(a:Linear(x, E)), 0.5); q = q*q }
  recompute { r = dropout(tanh(b:Linear(x, E)), 0.5); r = r*r }
  VALUE(mse(c:Linear(q + r, E), y))""",
}


def main():
    reprise, source, part, parts = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    peak = os.path.join(source, "tests/examples/behaviours/parts/peak.rp")
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, body in list(CASES.items())[part::parts]:
            lines = []
            for line in body.strip("\n").splitlines():
                before, found, value = line.partition("VALUE(")
                if found:
                    value, end = value.rsplit(")", 1)
                    line = f"{before}value = {value}; loss value + peak:Peak(value, 4096){end}"
                lines.append(line)
            text = MODEL.replace("PEAK", peak).replace("BODY", "\n".join(lines)).replace("ITEMS", " ".join(sys.argv[5:]))
            with open(f"{folder}/odd.rp", "w") as f:
                f.write(text)
            done = subprocess.run([reprise, "verify", "-q", "--elements=3", "--cflags=-O1", "odd.rp"], cwd=folder, capture_output=True,
                                  text=True, stdin=subprocess.DEVNULL)
            if done.returncode:
                failures += 1
                print(f"{name}: exit code {done.returncode}\n{done.stderr[-2000:]}\n{text}", flush=True)
    sys.exit(failures > 0)


main()
