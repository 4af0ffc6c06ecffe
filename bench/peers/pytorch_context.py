#!/usr/bin/env python3
"""PyTorch's context parallelism (torch.distributed.tensor.experimental.context_parallel) on two CPU processes over gloo: the peer of bench/ring_exchange.

    pytorch_context.py [--turns 3] [--sequence 8192]

Attention of 1 x 4 heads x SEQUENCE x 32 in float32, causal and both ways, with the default backends of scaled_dot_product_attention and with MATH alone.
Prints for each what of it runs, with the least seconds of the turns on the slower rank, or the last line of what PyTorch says.
"""
import argparse
import contextlib
import os
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F  # context_parallel replaces its attention
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.experimental import context_parallel
from torch.nn.attention import SDPBackend, sdpa_kernel

CASES = [(causal, math, backward) for causal in (True, False) for math in (False, True) for backward in (False, True)]


def attend(mesh, sequence, causal, math, backward):
    """Returns the seconds of one attention."""
    operands = [torch.randn(1, 4, sequence, 32, requires_grad=backward) for _ in range(3)]
    backends = sdpa_kernel(SDPBackend.MATH) if math else contextlib.nullcontext()
    with context_parallel(mesh, buffers=[each.detach() for each in operands], buffer_seq_dims=[2] * 3), backends:
        shards = [each.detach()[:, :, :sequence // mesh.size()].clone().requires_grad_(backward) for each in operands]
        dist.barrier()
        start = time.perf_counter()
        out = F.scaled_dot_product_attention(*shards, is_causal=causal)
        if backward:
            out.sum().backward()
        return time.perf_counter() - start


def rank(number, folder, case, arguments):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=number, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    path = os.path.join(folder, str(number))
    try:
        least = min(attend(mesh, arguments.sequence, *case) for _ in range(arguments.turns))
        said = f"{least:.3f} s"
    except Exception as error:  # whatever PyTorch raises is the result
        said = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
    with open(path, "w") as file:
        file.write(said)
    os._exit(0)  # the other rank may wait in a collective that this one never makes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--sequence", type=int, default=8192)
    arguments = parser.parse_args()
    print(f"PyTorch {torch.__version__}, gloo, 2 processes\n\n| attention | backends | pass | result |\n|---|---|---|---|")
    for case in CASES:
        causal, math, backward = case
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(rank, (folder, case, arguments), nprocs=2)
            said = [open(os.path.join(folder, str(number))).read() for number in range(2)]
        print(f"| {'causal' if causal else 'both ways'} | {'MATH' if math else 'default'} | {'forward and backward' if backward else 'forward'} | "
              f"{max(said)} |", flush=True)


if __name__ == "__main__":
    main()
