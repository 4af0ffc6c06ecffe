"""Compiles and runs a model with every stage of ZeRO over c ranks of a sequence and d of the batch; compares parameters and states bit by
bit, and what was sent and kept with the formulas: (c - 1)/c P + (d - 1)/d P/c are those of one group of c d ranks. usage: context_stages.py MODEL FOLDER ACCUMULATE"""
import re
import sys

import checkpoints
import numpy as np
from commands import call

model, folder, accumulate = sys.argv[1], sys.argv[2], int(sys.argv[3])
d, c, states = 2, 2, ("m", "v")
np.random.default_rng(0).integers(0, 64, 4000).astype("uint16").tofile(folder + "/tokens.bin")
RUN = ["--data", folder + "/tokens.bin", "--lr", "0.01", "--seed", "3"]


def tensors(path):
    return {name: values.tobytes() for name, values in checkpoints.read(path)[0].items()}


def compiled(name, *options):
    call("partita", "compile", model, "--dim", "batch=4", "--dim", "sequence=8", "--accumulate", str(accumulate), "--eps", "1e-3", *options, "-o", f"{folder}/{name}")
    return f"{folder}/{name}"


results, gradients, sent, kept = {}, {}, {}, {}
for stage in range(4):
    program = compiled(f"stage{stage}", "--mesh", f"dp={d},cp={c}", "--context-parallel", "ring", "--zero-stage", str(stage))
    text = call("partita", "run", program, "-n", "4", *RUN, "--init", "seed:1", "--steps", "3", "--checkpoint", f"{folder}/c{stage}", "--grads",
                f"{folder}/g{stage}")
    results[stage], gradients[stage] = tensors(f"{folder}/c{stage}"), tensors(f"{folder}/g{stage}")
    sent[stage] = {(kind, axis): int(size.replace(",", ""))
                   for kind, axis, size in re.findall(r"(\w+) over (\w+) \(\d+ ranks\), ([\d,]+) bytes per step", text)}
    kept[stage] = int(re.search(r"([\d,]+) persistent", text)[1].replace(",", ""))

alike = [{0, 1, 2, 3}] if accumulate == 1 else [{0, 1}, {2, 3}]
for stages in alike:
    for stage in stages:
        first = min(stages)
        assert results[stage] == results[first] and gradients[stage] == gradients[first], f"stage {stage} is not stage {first} bit by bit"
print("same bits: stages " + "; ".join(", ".join(map(str, sorted(stages))) for stages in alike))

# Bytes, padding aside, which is less than an element per tensor and rank. Beside gradients dp and cp sum the loss and the count of tokens.
parameters = {name: len(data) for name, data in results[0].items() if not name.endswith((".m", ".v", "step"))}
P, padding, small = sum(parameters.values()), 4 * len(parameters) * c * d, 64


def check(stage, kind, axis, expected, most=None):
    found = sent[stage].get((kind, axis), 0)
    assert expected <= found <= (most or expected) + 2 * accumulate * padding + small, (stage, kind, axis, found, expected)


near, far = P, P // c  # the buffers of a collective over cp, of which a link carries (c - 1)/c, and of its shards over dp, (d - 1)/d
check(0, "reduce_scatter", "cp", near)
check(0, "all_reduce", "dp", far)
check(0, "all_gather", "cp", near)
for stage in (1, 2, 3):
    times = 1 if stage == 1 else accumulate
    check(stage, "all_reduce", "dp", 0)
    check(stage, "reduce_scatter", "cp", times * near)
    check(stage, "reduce_scatter", "dp", times * far)
    # What the backward pass does not use (biases, a table of rows) is not gathered again.
    gathers = 1 if stage < 3 else accumulate
    check(stage, "all_gather", "dp", gathers * far, 2 * gathers * far if stage == 3 else None)
    check(stage, "all_gather", "cp", gathers * near, 2 * gathers * near if stage == 3 else None)
print("sent: over cp what one axis has, over dp a shard of it")
for stage in range(4):
    expected = (P if stage < 3 else P / (c * d)) + len(states) * P / (c * d if stage else 1)
    aligned = 3 * len(parameters) * (64 + 4 * c * d)
    assert expected <= kept[stage] <= expected + aligned, (stage, kept[stage], expected)
print("kept: what is split divided by dp x cp")

# A checkpoint knows tensors, not shards: one rank goes on from four, others from that, and end near those that went on alike.
if accumulate == 1:
    one, four = compiled("one"), compiled("four", "--mesh", "dp=4", "--zero-stage", "1")
    for name, ranks, program in (("a", 4, f"{folder}/stage2"), ("b", 1, one)):
        call("cp", "-r", f"{folder}/c2", f"{folder}/{name}")
        call("partita", "run", program, "-n", str(ranks), *RUN, "--steps", "5", "--resume", "--checkpoint", f"{folder}/{name}")
        call("partita", "run", four, "-n", "4", *RUN, "--steps", "6", "--resume", "--checkpoint", f"{folder}/{name}")
    a, b = (checkpoints.read(f"{folder}/{name}")[0] for name in "ab")
    worst = max(np.abs(a[name].astype("f8") - b[name].astype("f8")).max() / max(np.abs(b[name]).max(), 1e-3) for name in b)
    assert worst < 1e-4, worst
    print("resumed: with one rank, and on four of dp")
