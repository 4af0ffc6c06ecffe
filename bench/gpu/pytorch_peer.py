#!/usr/bin/env python3
"""Trains a GPT-2 or a LLaMA with PyTorch on one GPU and reports as one JSON line: the peer of bench/gpu/compare.

    pytorch_peer.py --kind gpt2 --layers 12 --width 768 --heads 12 --batch 32 --sequence 1024 --mode autocast

torch.compile of the whole model and its loss, attention by scaled_dot_product_attention (FlashAttention where PyTorch
takes it), fused AdamW, gradients clipped at 1 and set to none. --mode autocast: float32 parameters, bfloat16 by
torch.autocast; --mode pure: parameters, gradients and moments in bfloat16 (less memory and work than Partita's step,
which keeps masters and moments in float32). The vocabulary is padded to 50304, as is usual with PyTorch for speed.
The model is ours, written for speed: no library of models slows PyTorch down.
"""

import argparse
import json
import sys
import time

START = time.perf_counter()


def modules(args):
    import torch
    from torch import nn
    import torch.nn.functional as F
    width, heads, key_heads, dim = args.width, args.heads, args.key_heads or args.heads, args.width // args.heads
    llama = args.kind == "llama"

    def rotate(x, cosine, sine):
        a, b = x.chunk(2, -1)
        return x * cosine + torch.cat((-b, a), -1) * sine

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            norm = (lambda: nn.RMSNorm(width, eps=1e-5)) if llama else (lambda: nn.LayerNorm(width))
            self.norm1, self.norm2 = norm(), norm()
            self.qkv = nn.Linear(width, (heads + 2 * key_heads) * dim, bias=not llama)
            self.out = nn.Linear(heads * dim, width, bias=not llama)
            inner = args.inner or 4 * width
            self.up = nn.Linear(width, inner * (2 if llama else 1), bias=not llama)
            self.down = nn.Linear(inner, width, bias=not llama)

        def forward(self, x, cosine, sine):
            b, s, _ = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, s, -1, dim).transpose(1, 2).split(
                (heads, key_heads, key_heads), 1)
            if llama:
                q, k = rotate(q, cosine, sine).to(v.dtype), rotate(k, cosine, sine).to(v.dtype)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=key_heads != heads)
            x = x + self.out(y.transpose(1, 2).reshape(b, s, heads * dim))
            y = self.up(self.norm2(x))
            if llama:
                gate, y = y.chunk(2, -1)
                return x + self.down(F.silu(gate) * y)
            return x + self.down(F.gelu(y, approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(args.vocab, width)
            self.positions = None if llama else nn.Embedding(args.sequence, width)
            self.blocks = nn.ModuleList(Block() for _ in range(args.layers))
            self.norm = nn.RMSNorm(width, eps=1e-5) if llama else nn.LayerNorm(width)
            self.head = nn.Linear(width, args.vocab, bias=False)
            self.head.weight = self.table.weight
            for module in self.modules():
                if isinstance(module, (nn.Linear, nn.Embedding)):
                    nn.init.normal_(module.weight, std=0.02)
            angle = torch.outer(torch.arange(args.sequence).float(),
                                500000.0 ** (-torch.arange(0, dim, 2).float() / dim)).repeat(1, 2)
            self.register_buffer("cosine", angle.cos(), persistent=False)
            self.register_buffer("sine", angle.sin(), persistent=False)

        def forward(self, ids, labels):
            x = self.table(ids)
            if self.positions is not None:
                x = x + self.positions.weight
            for block in self.blocks:
                x = block(x, self.cosine, self.sine)
            logits = self.head(self.norm(x))
            return F.cross_entropy(logits.float().view(-1, args.vocab), labels.view(-1))

    return Model


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=["gpt2", "llama"], default="gpt2")
    parser.add_argument("--mode", choices=["autocast", "pure"], default="autocast")
    for name, value in [("layers", 12), ("width", 768), ("heads", 12), ("key-heads", 0), ("inner", 0),
                        ("vocab", 50304), ("batch", 32), ("sequence", 1024), ("steps", 20),
                        ("warmup", 5)]:
        parser.add_argument("--" + name, type=int, default=value)
    args = parser.parse_args()
    import torch
    if not torch.cuda.is_available():
        sys.exit("pytorch_peer.py: PyTorch finds no GPU")
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    model = modules(args)().cuda()
    if args.mode == "pure":
        model = model.bfloat16()
    loss_of = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.1, fused=True)
    tokens = torch.randint(0, min(args.vocab, 50257), (args.batch, args.sequence + 1), device="cuda")
    ids, labels = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    seconds, first = [], None
    for index in range(args.warmup + args.steps):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=args.mode == "autocast"):
            loss = loss_of(ids, labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        last = loss.item()
        torch.cuda.synchronize()
        first = first or time.perf_counter() - START
        if index >= args.warmup:
            seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": seconds, "tokens_per_step": args.batch * args.sequence, "loss": last,
                      "first_step": first, "peak_bytes": torch.cuda.max_memory_allocated(),
                      "reserved_bytes": torch.cuda.max_memory_reserved(),
                      "mode": args.mode, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
