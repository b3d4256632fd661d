"""Milliseconds per micro-step of GPT-2 in PyTorch, eager and then with torch.compile, as a line of JSON after each: what
tests/gpu/check.sh sets the compiled program's time against. The same model (examples/gpt2.rp), f32 without TF32, 8 micro-steps to an update, clipping, AdamW.

    gpt2_torch.py B T LAYERS HEADS WIDTH VOCABULARY [UPDATES]
"""

import json
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

MICRO_STEPS = 8


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.c_fc, self.mlp_proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.c_attn(self.ln_1(x)).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.1)
        x = x + F.dropout(self.c_proj(y.transpose(1, 2).reshape(b, t, c)), 0.1)
        return x + F.dropout(self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh")), 0.1)


class GPT2(nn.Module):
    def __init__(self, layers, heads, width, vocabulary):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(1024, width)
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])
        self.ln_f = nn.LayerNorm(width)

    def forward(self, tokens, targets):
        x = F.dropout(self.wte(tokens) + self.wpe.weight[: tokens.shape[1]], 0.1)
        for block in self.blocks:
            x = block(x)
        logits = self.ln_f(x) @ self.wte.weight.T
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def measure(model, tokens, targets, updates):
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    times = []
    for _ in range(updates + 1):  # the first one compiles
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(MICRO_STEPS):
            (model(tokens, targets) / MICRO_STEPS).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - start) * 1e3 / MICRO_STEPS)
    return sorted(times[1:])[len(times[1:]) // 2]


def main():
    b, t, layers, heads, width, vocabulary = map(int, sys.argv[1:7])
    updates = int(sys.argv[7]) if len(sys.argv) > 7 else 5
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = GPT2(layers, heads, width, vocabulary).cuda()
    tokens = torch.randint(vocabulary, (b, t), device="cuda")
    result = {"torch": torch.__version__, "eager_ms": measure(model, tokens, tokens, updates)}
    result["eager_peak_bytes"] = torch.cuda.max_memory_allocated()
    print(json.dumps(result), flush=True)
    torch.cuda.reset_peak_memory_stats()
    result["compile_ms"] = measure(torch.compile(model), tokens, tokens, updates)
    result["compile_peak_bytes"] = torch.cuda.max_memory_allocated()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
