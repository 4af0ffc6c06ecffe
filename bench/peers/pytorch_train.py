#!/usr/bin/env python3
"""Trains a GPT-2 with PyTorch and reports times, as one JSON line: the peer of bench/train_step.

    pytorch_train.py --vocab 256 --steps 20 [--ranks 2] [--threads 1] ...

Hugging Face's GPT2LMHeadModel in eager mode and float32, attention by
scaled_dot_product_attention, AdamW in whichever of PyTorch's implementations (fused, foreach) is
faster here; one step is gradients to None, forward, loss, backward, update. With --ranks N,
DistributedDataParallel over gloo, N processes, the batch split evenly; with --strategy fsdp
fully_shard of every block and of the model (FSDP2), parameters freed after each block's forward
pass; with --strategy pipeline torch.distributed.pipelining's Schedule1F1B over gloo, as many blocks in
each stage, --micro-batches of the batch, the head's table not tied. Data are random tokens: they change
no time.

Reported, for the slowest rank: `seconds` of each step after the warm-up, `processor` seconds of the
first rank's, `loss` of the last step,
`peak` bytes of resident memory (VmHWM, all ranks added) and `base`, the part of it that was there
before the model was built (interpreter and libraries).
"""

import argparse
import json
import os
import sys
import time


def resident(field):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")


def build(args):
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(1)
    return GPT2LMHeadModel(GPT2Config(
        vocab_size=args.vocab, n_positions=args.sequence, n_embd=args.hidden, n_layer=args.layers,
        n_head=args.heads, use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=0, eos_token_id=0, attn_implementation="sdpa")).train()


def make_optimizer(model, implementation):
    import torch
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    others = [p for p in model.parameters() if p.ndim < 2]
    return torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                              {"params": others, "weight_decay": 0.0}],
                             lr=3e-4, **{implementation: True})


def step(model, optimizer, ids, labels):
    import torch
    optimizer.zero_grad(set_to_none=True)
    logits = model(input_ids=ids, use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))
    loss.backward()
    optimizer.step()
    return loss.item()


def distribute(model, args, rank):
    import torch
    torch.distributed.init_process_group("gloo", rank=rank, world_size=args.ranks)
    if args.strategy == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (args.ranks,))
    for block in model.transformer.h:
        fully_shard(block, mesh=mesh, reshard_after_forward=True)
    return fully_shard(model, mesh=mesh, reshard_after_forward=True)


def stage_of(model, args, rank):
    """Returns this process's stage: as many blocks as every other one."""
    import torch
    first, last = rank == 0, rank == args.ranks - 1

    class Stage(torch.nn.Module):
        def __init__(self, body, blocks, head):
            super().__init__()
            self.blocks = torch.nn.ModuleList(blocks)
            if first:
                self.tokens, self.positions = body.wte, body.wpe
            if last:
                self.norm, self.head = body.ln_f, torch.nn.Linear(head.in_features, head.out_features, bias=False)

        def forward(self, x):
            if first:
                x = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
            for block in self.blocks:
                out = block(x)
                x = out[0] if isinstance(out, tuple) else out
            return self.head(self.norm(x)) if last else x

    blocks = model.transformer.h
    own = blocks[len(blocks) * rank // args.ranks : len(blocks) * (rank + 1) // args.ranks]
    return Stage(model.transformer, own, model.lm_head).train()


class Pipeline:
    """A stage per process; `step` is one step over all micro-batches."""

    def __init__(self, model, args, rank):
        import torch
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B
        torch.distributed.init_process_group("gloo", rank=rank, world_size=args.ranks)

        def loss(logits, labels):
            return torch.nn.functional.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))

        self.model, self.first, self.last = model, rank == 0, rank == args.ranks - 1
        stage = PipelineStage(model, rank, args.ranks, torch.device("cpu"))
        self.schedule = Schedule1F1B(stage, args.micro_batches, loss_fn=loss)

    def step(self, optimizer, ids, labels):
        optimizer.zero_grad(set_to_none=True)
        losses = []
        self.schedule.step(*([ids] if self.first else []), **({"target": labels, "losses": losses} if self.last else {}))
        optimizer.step()
        return sum(loss.item() for loss in losses) / max(len(losses), 1)


def faster_optimizer(model, take_step):
    """Times the update alone, three of each kind after one that allocates the states."""
    take_step(make_optimizer(model, "foreach"))  # leaves gradients
    best = {}
    for implementation in ("fused", "foreach"):
        optimizer = make_optimizer(model, implementation)
        optimizer.step()
        start = time.perf_counter()
        for _ in range(3):
            optimizer.step()
        best[implementation] = time.perf_counter() - start
        del optimizer
    return min(best, key=best.get)


def run(args, rank):
    import torch
    torch.set_num_threads(args.threads)
    torch.set_num_interop_threads(1)
    base = resident("VmHWM")
    model = build(args)
    rows = args.batch if args.strategy == "pipeline" else args.batch // args.ranks
    generator = torch.Generator().manual_seed(2 + (rank if args.strategy != "pipeline" else 0))
    tokens = torch.randint(0, args.vocab, (rows, args.sequence + 1), generator=generator)
    ids, labels = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    implementation = args.optimizer
    if args.strategy == "pipeline":
        model = stage_of(model, args, rank)
        pipeline = Pipeline(model, args, rank)

    def take_step(optimizer):
        return pipeline.step(optimizer, ids, labels) if args.strategy == "pipeline" else step(model, optimizer, ids, labels)

    if implementation == "auto" and args.strategy != "fsdp":
        implementation = faster_optimizer(model, take_step)
    if args.ranks > 1 and args.strategy != "pipeline":
        model = distribute(model, args, rank)
    if implementation == "auto":  # for stages: rank 0's choice
        choice = [faster_optimizer(model, take_step)]
        torch.distributed.broadcast_object_list(choice)
        implementation = choice[0]
    optimizer = make_optimizer(model, implementation)
    seconds, processor, loss = [], [], 0.0
    for index in range(args.warmup + args.steps):
        if args.ranks > 1:
            torch.distributed.barrier()
        start, started = time.perf_counter(), time.process_time()
        loss = take_step(optimizer)
        if index >= args.warmup:
            seconds.append(time.perf_counter() - start)
            processor.append(time.process_time() - started)
    result = {"seconds": seconds, "processor": processor, "loss": loss, "peak": resident("VmHWM"), "base": base,
              "optimizer": implementation, "torch": torch.__version__}
    if args.ranks > 1:
        results = [None] * args.ranks
        torch.distributed.all_gather_object(results, result)
        torch.distributed.barrier()
        result["seconds"] = [max(times) for times in zip(*(r["seconds"] for r in results))]
        result["peak"] = sum(r["peak"] for r in results)
        result["base"] = sum(r["base"] for r in results)
    if rank == 0:
        print(json.dumps(result), flush=True)
    if args.ranks > 1:
        os._exit(0)  # tearing down gloo can hang if the other rank is gone first


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in [("layers", 6), ("hidden", 384), ("heads", 6), ("vocab", 256), ("batch", 8),
                        ("sequence", 256), ("steps", 10), ("warmup", 3), ("threads", 1),
                        ("ranks", 1), ("micro-batches", 8)]:
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--strategy", choices=["ddp", "fsdp", "pipeline"], default="ddp")
    parser.add_argument("--optimizer", choices=["auto", "fused", "foreach"], default="auto")
    args = parser.parse_args()
    if args.strategy == "pipeline" and (args.ranks < 2 or args.batch % args.micro_batches):
        parser.error("--strategy pipeline needs two --ranks, and a --batch that is divisible by --micro-batches")
    if args.batch % args.ranks:
        parser.error(f"--batch {args.batch} is not divisible by --ranks {args.ranks}")
    rank = int(os.environ.get("RANK", -1))
    if args.ranks == 1 or rank >= 0:
        run(args, max(rank, 0))
        return
    import socket
    import subprocess
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [subprocess.Popen(
        [sys.executable, *sys.argv],
        env={**os.environ, "RANK": str(r), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        for r in range(args.ranks)]
    sys.exit(max(process.wait() for process in processes))


if __name__ == "__main__":
    main()
