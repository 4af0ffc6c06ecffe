#!/usr/bin/env python3
"""Block-sparse attention in PyTorch on one core: the peer of bench/block_sparse.

    pytorch_blocks.py TURNS SEQUENCE

Causal attention of 2 heads of 64, dense, and with the layouts of bench/block_sparse.cpp. Dense and with a mask of booleans it is
scaled_dot_product_attention, forward and backward; with a layout also flex_attention of a block mask, compiled, which PyTorch has for CPUs
forward only. Prints for each the least processor time of the turns, in which they alternate, as lines

    TYPE | LAYOUT | BLOCK | FORWARD MS | FORWARD AND BACKWARD MS | FLEX FORWARD MS
"""
import sys
import time

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

turns, sequence = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
torch._dynamo.config.recompile_limit = 64  # a kernel per layout and type
torch.manual_seed(1)


def layouts():
    """Name, block, which blocks (row, column) of the lower triangle are computed."""
    for size in 16, 64:
        window = 1024 // size
        yield "fixed, 4 local blocks", size, lambda i, j: (i // 4 == j // 4) | (j % 4 == 3)
        yield "fixed, windows of 1,024", size, lambda i, j, w=window: (i // w == j // w) | (j % w == w - 1)
        yield "sliding window of 1,024", size, lambda i, j, w=window: i - j < w


def seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start


class Case:
    def __init__(self, dtype, name, size, layout):
        self.name, self.size = name, size
        self.q, self.k, self.v, self.dout = (torch.randn(1, 2, sequence, 64).to(dtype) for _ in range(4))
        for each in self.q, self.k, self.v:
            each.requires_grad_()
        self.mask, self.blocks = None, None
        if layout:
            seen = lambda b, h, q, k: (k <= q) & layout(q // size, k // size)  # noqa: E731
            at = torch.arange(sequence)
            self.mask = seen(0, 0, at[:, None], at[None])
            self.blocks = create_block_mask(seen, None, None, sequence, sequence, device="cpu")
            self.flex = torch.compile(flex_attention)
        self.times = [float("inf")] * 3

    def forward(self):
        self.out = scaled_dot_product_attention(self.q, self.k, self.v, attn_mask=self.mask, is_causal=self.mask is None)

    def both(self):
        self.forward()
        torch.autograd.grad(self.out, (self.q, self.k, self.v), self.dout)

    def flex_forward(self):
        with torch.no_grad():
            q, k, v = (each.detach() for each in (self.q, self.k, self.v))  # flex_attention has no backward pass on CPUs
            return self.flex(q, k, v, block_mask=self.blocks)

    def turn(self):
        with torch.no_grad():
            forward = seconds(self.forward)
        found = [forward, seconds(self.both), seconds(self.flex_forward) if self.blocks is not None else float("inf")]
        self.times = [min(each) for each in zip(self.times, found)]


for dtype in torch.float32, torch.bfloat16:
    cases = [Case(dtype, "dense", 1, None), *(Case(dtype, *layout) for layout in layouts())]
    for case in cases[1:]:
        try:
            found = case.flex_forward()  # compiles
            with torch.no_grad():
                case.forward()
            assert (found - case.out).abs().max() < (1e-4 if dtype == torch.float32 else 0.05)
        except (RuntimeError, NotImplementedError) as error:
            for other in cases:
                other.blocks = None
            print(f"flex_attention does not run here: {str(error).splitlines()[0]}", file=sys.stderr)
            break
    for _ in range(turns):
        for case in cases:
            case.turn()
    for case in cases:
        texts = [f"{each * 1e3:.1f}" if each < float("inf") else "" for each in case.times]
        print(" | ".join([str(dtype).removeprefix("torch."), case.name, str(case.size), *texts]), flush=True)
