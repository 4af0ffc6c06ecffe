"""What explain says that a node sends, within it and to other nodes, against the formulas of ZeRO-3, of hpZ and of weights in 8 bits.
usage: levels.py MODEL FOLDER"""
import json
import math
import re
import sys

from commands import call

model, folder = sys.argv[1:]
N, H = 4, 2  # ranks, of which a node has H
nodes, M = N // H, N // H - 1
PLAN = [model, "--dim", "batch=4", "--dim", "sequence=8", "--mesh", f"dp={N}", "--zero-stage", "3", "--gather-always"]


def levels(*options):
    """{row: (within, between)} of the table."""
    text = call("partita", "explain", *PLAN, *options)
    table = re.search(r"Sent by a node of 2 ranks in train_step, 2 nodes.*\n.*\n((?:  .*\n)+)", text)[1]
    rows = {}
    for line in table.splitlines():
        title, within, between = re.match(r"  (.*?) +([\d,]+) +([\d,]+)$", line).groups()
        rows[re.sub(" +", " ", title)] = int(within.replace(",", "")), int(between.replace(",", ""))
    return rows


def total(rows, axis="", direction="", level=1):
    return sum(sent[level] for row, sent in rows.items() if "over " + axis in row and row.startswith(direction) and "all_reduce" not in row)


# The bytes of the model, of what the backward pass gathers, and of the matrices that are rounded, with their blocks' scales.
call("partita", "compile", *PLAN, "-o", folder + "/p")
shapes = {each["name"]: each["shape"] for each in json.load(open(folder + "/p/manifest.json"))["parameters"]}
P = 4 * sum(math.prod(shape) for shape in shapes.values())
flat, hpz = levels("--ranks-per-node", str(H)), levels("--zero-hpz-partition-size", str(H))
both = levels("--zero-hpz-partition-size", str(H), "--zero-quantized-weights")
padding = 4 * len(shapes) * N
backward = flat["backward all_gather over dp"][1] * N // (N - 1)  # of what the backward pass gathers; P in the paper

# ZeRO-3: (N - 1)/N of P three times, one neighbour of a node's ranks being on another node, and as much on each of the H - 1 links within it.
ring = (N - 1) / N
assert 0 <= total(flat) - ring * (2 * P + backward) <= 3 * padding, (total(flat), ring * (2 * P + backward))
assert total(flat, level=0) == total(flat) * (H - 1)
# hpZ: P/H from each of a node's H ranks to the other nodes for the forward pass, as much for the gradients, for the backward pass nothing.
far = M / nodes
assert 0 <= total(hpz, "dp", "forward") - far * P <= padding and total(hpz, "dp", "backward all_gather") == 0
assert 0 <= total(hpz, "dp", "backward reduce_scatter") - far * P <= padding
assert total(hpz, "fsdp") == 0 and total(hpz, "dp", level=0) == 0  # one axis is between nodes, the other within
near = (H - 1) / H * H
assert 0 <= total(hpz, "fsdp", level=0) - near * (2 * P + backward) <= 3 * H * padding
# 8 bits: a byte per element and 4 per block, forward; the backward pass's are within the node.
matrices = {name: shape for name, shape in shapes.items() if len(shape) > 1}
elements = sum(math.prod(shape) for shape in matrices.values())
scales = sum(math.prod(shape) // min(256, shape[-1] & -shape[-1]) for shape in matrices.values())
vectors = P - 4 * elements
assert 0 <= total(both, "dp", "forward") - far * (elements + 4 * scales + vectors) <= padding, (total(both, "dp", "forward"), elements, scales)
assert total(both, "dp", "backward all_gather") == 0
assert both["without ZeRO++"][0] == flat["in all"][0] and both["without ZeRO++"] == hpz["without ZeRO++"]
print(f"between nodes: {total(both) / P:.2f} P, {total(hpz) / P:.2f} P with exact weights, ZeRO-3 {total(flat) / P:.2f} P")
