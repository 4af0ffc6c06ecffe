"""Compiles and runs a model with a secondary copy of its parameters in groups of ranks (hpZ) and without; compares bits, and what is sent and
kept, with the formulas. usage: hpz.py MODEL FOLDER ACCUMULATE"""
import json
import re
import sys

import checkpoints
import numpy as np
from commands import call

model, folder, accumulate = sys.argv[1], sys.argv[2], int(sys.argv[3])
H, nodes = 2, 2
np.random.default_rng(0).integers(0, 64, 4000).astype("uint16").tofile(folder + "/tokens.bin")
RUN = ["-n", str(H * nodes), "--data", folder + "/tokens.bin", "--lr", "0.01", "--seed", "3", "--init", "seed:1", "--steps", "3"]
PLANS = {
    "flat": ["--mesh", "dp=4"],  # ZeRO-3 over all ranks
    "hybrid": ["--mesh", "dp=2,fsdp=2"],  # the state in each group: sums in the same order
    "hpz": ["--mesh", "dp=4", "--zero-hpz-partition-size", str(H)],
    "int8": ["--mesh", "dp=4", "--zero-hpz-partition-size", str(H), "--zero-quantized-weights"],
}
bits, sent, census, kept = {}, {}, {}, {}
for name, plan in PLANS.items():
    program = f"{folder}/{name}"
    call("partita", "compile", model, "--dim", "batch=4", "--dim", "sequence=8", "--eps", "1e-3", "--accumulate", str(accumulate), "--zero-stage", "3",
         "--gather-always", *plan, "-o", program)
    text = call("partita", "run", program, *RUN, "--checkpoint", f"{folder}/c-{name}")
    bits[name] = {key: values.tobytes() for key, values in checkpoints.read(f"{folder}/c-{name}")[0].items()}
    sent[name] = {(kind, axis): int(size.replace(",", ""))
                  for kind, axis, size in re.findall(r"(\w+) over (\w+) \(\d+ ranks\), ([\d,]+) bytes per step", text)}
    manifest = json.load(open(program + "/manifest.json"))
    census[name] = {}
    for each in manifest["explained"]:
        if each["function"] == "train_step":
            key = (each["kind"], each["axis"], each["direction"] == "backward")
            census[name][key] = census[name].get(key, 0) + each["calls"] * each["bytes"]
    kept[name] = manifest["memory"]

tensors = checkpoints.read(f"{folder}/c-flat")[0]
P = 4 * sum(values.size for key, values in tensors.items() if not key.endswith((".m", ".v", "step")))
padding = 4 * len(tensors) * H * nodes * accumulate

# Exact, to the bit where the sums have the same order: a micro-batch's shards are summed over dp before they are added up only with hpZ.
assert accumulate > 1 or bits["hpz"] == bits["hybrid"], "hpZ is not hybrid sharding bit by bit"
a, b = (checkpoints.read(f"{folder}/c-{name}")[0] for name in ("flat", "hpz"))
worst = max(np.abs(a[key].astype("f8") - b[key].astype("f8")).max() / max(np.abs(a[key]).max(), 1e-3) for key in a)
assert worst < 1e-4, worst
print("equal: ZeRO-3" + (", and hybrid sharding bit by bit" if accumulate == 1 else ""))

# Between groups: the forward gather's P / H a rank, P for a group, and the gradients'; nothing in the backward pass.
for name in ("hpz", "int8"):
    again = census[name].get(("all_gather", "dp", True), 0)
    assert again == 0, (name, again)
    for axis in ("dp", "fsdp"):  # the runtime's count is the census
        for kind in ("all_gather", "reduce_scatter"):
            counted = sum(census[name].get((kind, axis, backward), 0) for backward in (False, True))
            assert counted == sent[name].get((kind, axis), 0), (name, kind, axis, counted, sent[name])
g = accumulate
for key, low in ((("all_gather", "dp", False), P // H), (("all_gather", "fsdp", False), P), (("reduce_scatter", "dp", True), P // H),
                 (("reduce_scatter", "fsdp", True), P)):
    assert g * low <= census["hpz"][key] <= g * low + padding, (key, census["hpz"][key], g * low)
flat = sent["flat"]["all_gather", "dp"]
backward = census["hpz"]["all_gather", "fsdp", True]  # what the backward pass needs: no biases, no table of rows
assert abs(flat - g * P - backward) <= padding, (flat, P, backward)
print("sent between groups: P / H forward, nothing backward")

# Kept: the shards as ever, and a group's share of what the backward pass gathers, in whatever form it came.
for name in ("hpz", "int8"):
    assert abs(kept[name]["persistent"] - kept["flat"]["persistent"]) <= 16 * padding
    largest = [each["largest"] for each in kept[name]["functions"]["train_step"]["kinds"] if each["kind"] == "secondary"][0]
    expected = census[name]["all_gather", "fsdp", True] // accumulate // H
    unused = census[name]["all_gather", "fsdp", False] // accumulate // H - expected  # what the forward pass alone needs, for a while
    assert expected <= largest <= expected + unused + 16 * padding, (name, largest, expected)
assert 2 * census["int8"]["all_gather", "dp", False] < census["hpz"]["all_gather", "dp", False]
print("kept: a share 1 / H of what the backward pass gathers")
