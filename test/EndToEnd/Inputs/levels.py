"""What explain says that a node of GPUs sends, within it and to other nodes, against the formulas of ZeRO-3, of hpZ, of weights in 8 bits, of ZeRO++ in
bfloat16 and of 1-bit Adam.
usage: levels.py MODEL FOLDER"""
import json
import math
import re
import sys

from commands import call

model, folder = sys.argv[1:]
N, H = 4, 2  # ranks, of which a node has H
GRADIENT_BLOCK = 32
nodes, M = N // H, N // H - 1
RANKS = [model, "--target", "cuda", "--dim", "batch=4", "--dim", "sequence=8", "--mesh", f"dp={N}"]
PLAN = [*RANKS, "--zero-stage", "3", "--gather-always"]


def levels(*options, plan=PLAN):
    """{row: (within, between)} of the table; of a 1-bit optimizer's, the last one, of the steps that are not exact."""
    text = call("partita", "explain", *plan, *options)
    table = re.findall(r"Bytes that each of 2 nodes of 2 ranks sends in train_step(?: .*)?, over rings\n.*\n((?:  .*\n)+)", text)[-1]
    rows = {}
    for line in table.splitlines():
        title, within, between = re.match(r"  (.*?) +([\d,]+) +([\d,]+)$", line).groups()
        rows[re.sub(" +", " ", title)] = int(within.replace(",", "")), int(between.replace(",", ""))
    return rows


def total(rows, axis="", direction="", level=1):
    return sum(sent[level] for row, sent in rows.items() if "over " + axis in row and row.startswith(direction) and "all_reduce" not in row)


# The bytes of the model, of what the backward pass gathers, and of the matrices that are rounded, with their blocks' scales.
call("partita", "compile", *PLAN, "--no-build", "-o", folder + "/p")
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
# ZeRO++ in bfloat16, of P = 2 bytes per element: P/2 and scales forward, nothing for the backward pass, P/4 and scales of gradients, rounded once more
# between nodes; from each of a node's ranks. Vectors are exact.
zeropp = levels("--zero-hpz-partition-size", str(H), "--zero-quantized-weights", "--zero-quantized-gradients", "--precision", "bfloat16")


def divided(n, by):
    return -(-n // by)


shards = [divided(math.prod(shape), N) for shape in matrices.values()]
assert all(4 * (divided(n, GRADIENT_BLOCK) + divided(n, 8)) < 2 * n for n in shards)  # else it stays exact
assert zeropp["forward all_gather over dp of int8"][1] == far * elements and zeropp["forward all_gather over dp"][1] == far * 4 * scales
assert zeropp["backward all_to_all over dp of int4"][1] == H * M * 4 * sum(divided(n, GRADIENT_BLOCK) + divided(n, 8) for n in shards)
assert total(zeropp, "dp", "backward all_gather") == 0 and total(zeropp, "fsdp") == 0
rest = [zeropp[f"{row} over dp of bfloat16"][1] - far * vectors / 2 for row in ("forward all_gather", "backward reduce_scatter")]
assert all(0 <= each <= padding for each in rest), rest
parts = [total(zeropp, "dp", kind) / far / (P / 2) for kind in ("forward", "backward all_gather", "backward all_to_all", "backward reduce_scatter")]
exact = [zeropp["forward all_gather over dp of int8"][1], 0, H * M * 4 * sum(divided(n, 8) for n in shards)]
print("ZeRO++:", " + ".join(f"{each / far / (2 * elements):.2f}" for each in exact), "P of numbers,",
      f"{parts[0]:.2f} + {parts[1]:.0f} + {parts[2] + parts[3]:.2f} P with scales and vectors")

# 1-bit Adam: a block to each rank of the other node, and one to each of its own; then each block once around the ring.
bits = levels("--optimizer", "onebit-adam", "--freeze-step", "3", "--ranks-per-node", str(H), plan=RANKS)
block = sum(4 + divided(divided(math.prod(shape), N), 8) for shape in shapes.values())
assert bits["backward all_to_all over dp of bits"] == (H * (H - 1) * block, H * (N - H) * block), (bits, block)
assert bits["backward all_gather over dp of bits"] == ((N - 1) * (H - 1) * block, (N - 1) * block), (bits, block)
print("1-bit Adam: blocks of", block, "bytes")
print(f"between nodes: {total(both) / P:.2f} P, {total(hpz) / P:.2f} P with exact weights, ZeRO-3 {total(flat) / P:.2f} P")
