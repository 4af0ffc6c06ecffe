"""Compiles and runs a model with gradients in 4 bits (qgZ) and without; compares what is sent with the formulas, the bits of buckets of any size,
and losses. usage: qgz.py MODEL FOLDER"""
import json
import math
import re
import sys

import checkpoints
import numpy as np
from commands import call

model, folder = sys.argv[1:]
H, N, ACCUMULATE, BLOCK = 2, 4, 2, 32
np.random.default_rng(0).integers(0, 64, 4000).astype("uint16").tofile(folder + "/tokens.bin")
RUN = ["-n", str(N), "--data", folder + "/tokens.bin", "--lr", "0.01", "--seed", "3", "--init", "seed:1", "--steps", "8"]
QGZ, HPZ = "--zero-quantized-gradients", ["--zero-hpz-partition-size", str(H)]
PLANS = {
    "exact": ["--zero-stage", "3", *HPZ],
    "three": ["--zero-stage", "3", *HPZ, QGZ],
    "buckets": ["--zero-stage", "3", *HPZ, QGZ, "--bucket-bytes", "3000"],
    "one": ["--zero-stage", "1", QGZ],
    "two": ["--zero-stage", "2", "--sync-each", "step", QGZ],
    "half": ["--zero-stage", "3", *HPZ, QGZ, "--precision", "bfloat16"],
    "zeropp": ["--zero-stage", "3", *HPZ, QGZ, "--precision", "bfloat16", "--zero-quantized-weights"],
}
sent, calls, losses, manifests = {}, {}, {}, {}
for name, plan in PLANS.items():
    program = f"{folder}/{name}"
    call("partita", "compile", model, "--dim", "batch=4", "--dim", "sequence=8", "--eps", "1e-3", "--accumulate", str(ACCUMULATE), "--mesh", f"dp={N}",
         *plan, "-o", program)
    text = call("partita", "run", program, *RUN, "--checkpoint", f"{folder}/c-{name}", "--log", f"{folder}/{name}.csv")
    found = re.findall(r"([\d,]+) (\w+) over (\w+) \(\d+ ranks\), ([\d,]+) bytes per step", text)
    sent[name] = {(kind, axis): int(size.replace(",", "")) for _, kind, axis, size in found}
    calls[name] = {(kind, axis): int(count.replace(",", "")) for count, kind, axis, _ in found}
    losses[name] = [float(line.split(",")[1]) for line in open(f"{folder}/{name}.csv").read().split()[1:]]
    manifests[name] = json.load(open(program + "/manifest.json"))


def divided(n, ranks):
    return -(-n // ranks)


def chunk(n):
    return 4 * (divided(n, BLOCK) + divided(n, 8))


def worth(n, element):
    return chunk(n) < element * n


SHAPES = [each["shape"] for each in manifests["exact"]["parameters"]]
COUNTS = [math.prod(shape) for shape in SHAPES]


def expected(levels, element, times):
    """The bytes over each axis, as the runtime counts them: of the whole bucket's chunks, and of what is summed exactly."""
    result = {}
    shards = COUNTS
    for axis, ranks in levels:
        shards = [divided(n, ranks) for n in shards]
        rounds = [len(shape) > 1 and worth(n, element) for shape, n in zip(SHAPES, shards)]
        result["all_to_all", axis] = times * ranks * sum(chunk(n) for n, yes in zip(shards, rounds) if yes)
        result["reduce_scatter", axis] = times * ranks * sum(element * n for n, yes in zip(shards, rounds) if not yes)
    return {key: size for key, size in result.items() if size}


HIERARCHY, FLAT = [("fsdp", H), ("dp", N // H)], [("dp", N)]
for name, levels, element, times in (("three", HIERARCHY, 4, ACCUMULATE), ("buckets", HIERARCHY, 4, ACCUMULATE), ("one", FLAT, 4, 1),
                                     ("two", FLAT, 4, 1), ("half", HIERARCHY, 2, ACCUMULATE), ("zeropp", HIERARCHY, 2, ACCUMULATE)):
    found = {key: size for key, size in sent[name].items() if key[0] in ("all_to_all", "reduce_scatter")}
    assert found == expected(levels, element, times), (name, found, expected(levels, element, times))
    census = {}  # what was announced
    for each in manifests[name]["explained"]:
        if each["function"] == "train_step" and (each["kind"], each["axis"]) in found:
            key = each["kind"], each["axis"]
            census[key] = census.get(key, 0) + each["calls"] * each["bytes"]
    assert census == found, (name, census, found)
print(f"sent: 4 (n / {BLOCK} + n / 8) bytes per chunk of n elements, over one axis after another")

bits = {name: {key: values.tobytes() for key, values in checkpoints.read(f"{folder}/c-{name}")[0].items()} for name in ("three", "buckets")}
assert bits["three"] == bits["buckets"] and calls["buckets"]["all_to_all", "fsdp"] > calls["three"]["all_to_all", "fsdp"], calls
print("equal: buckets of any size, bit by bit")

for name in ("three", "one", "two"):
    worst = max(abs(a - b) for a, b in zip(losses[name], losses["exact"]))
    assert 0 < worst < 0.05 * losses["exact"][0], (name, losses[name], losses["exact"])
print("losses: near the exact ones, not the same")
