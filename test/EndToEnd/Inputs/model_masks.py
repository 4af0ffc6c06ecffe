"""model_masks.py FOLDER: what a model's own constant mask hides, in blocks, costs nothing: the blocks are recognized, FLOPs fall by the share
that they are of all, and losses are those that numpy computes with the mask."""
import csv
import re
import struct
import sys

import numpy

import masked_model  # noqa: E402
from commands import call  # noqa: E402
from tensor_files import write_tensors  # noqa: E402

folder = sys.argv[1]
random = numpy.random.default_rng(0)
BATCH, LENGTH, WIDTH, VOCABULARY, HEADS, LAYERS = 2, 128, 16, 32, 4, 2
row, column = numpy.indices((LENGTH, LENGTH))


def longformer():  # a window to both sides, two tokens that see all and are seen by all
    return (numpy.abs(row - column) <= 9) | (row < 2) | (column < 2)


def bigbird():  # in blocks of 16: a window, a global block, two random ones in each row
    blocks = numpy.abs(row - column)[:8, :8] <= 1
    blocks[0] = blocks[:, 0] = True
    for each in blocks:
        each[random.integers(0, 8, 2)] = True
    return numpy.kron(blocks, numpy.ones((16, 16), bool))


def documents():  # of 32, 64 and 32 positions
    starts = numpy.array([0] * 32 + [32] * 64 + [96] * 32)
    return starts[:, None] == starts


def per_head():  # causal windows, each of its own width
    return numpy.stack([(column <= row) & (row - column < 12 << head) for head in range(HEADS)])


# name: mask, the size of its blocks, whether they say all that the mask says
CASES = {"longformer": (longformer(), 16, False), "bigbird": (bigbird(), 16, True), "documents": (documents(), 32, True),
         "per head": (per_head(), 16, False)}

weights = masked_model.weights(random, VOCABULARY, WIDTH, LAYERS, 0.3)
data = f"{folder}/data.safetensors"
TOKENS, LABELS = random.integers(0, VOCABULARY, (2, BATCH, LENGTH))
write_tensors(data, {"input_ids": TOKENS, "labels": LABELS})


def matmuls(text):
    """Their FLOPs in the forward passes of all layers; some numbers are written as their bits."""
    numbers = re.findall(r"matmuls = (0x)?([0-9A-F.e+]+)", text)
    return sum(struct.unpack(">d", bytes.fromhex(number))[0] if bits else float(number) for bits, number in numbers)


def losses(program, model, options):
    call("partita", "compile", model, "--dim", f"batch={BATCH}", "--dim", f"sequence={LENGTH}", "--objective", "causal", "--optimizer", "sgd", "--lr", "0.1",
         *options, "-o", program)
    call("partita", "run", program, "--data", data, "--steps", "3", "--log", f"{program}.csv")
    with open(f"{program}.csv") as file:
        return [float(line["loss"]) for line in csv.DictReader(file)]


def compiled(name, mask):
    """The model's file, and the program with its objective."""
    path = f"{folder}/{name}.onnx"
    masked_model.write(path, weights, mask.reshape(-1, LENGTH, LENGTH), HEADS)
    return path, call("partita", "compile", path, "--dim", f"batch={BATCH}", "--dim", f"sequence={LENGTH}", "--objective", "causal", "--compile-to", "objective",
                      "-o", "-")


_, dense = compiled("dense", numpy.ones((LENGTH, LENGTH), bool))
assert " blocks <" not in dense
ATTENTION = 2 * 2 * LAYERS * BATCH * HEADS * LENGTH * LENGTH * (WIDTH // HEADS)
for name, (mask, size, exact) in CASES.items():
    model, text = compiled(name, mask)
    found = re.findall(r"tx.attention (.*?) blocks <(\d+), (.*?)> ", text)
    assert len(found) >= LAYERS and all(int(blocks) == size for _, blocks, _ in found), (name, found)
    assert all((" bias " not in head) == exact for head, _, _ in found), (name, found)
    n = LENGTH // size
    density = mask.reshape(-1, n, size, n, size).any((2, 4)).mean()
    assert density < 0.9 and matmuls(dense) - matmuls(text) == ATTENTION * (1 - density), (name, matmuls(dense), matmuls(text), density)
    program = f"{folder}/{name.replace(' ', '_')}"
    one = losses(program, model, [])
    expected = masked_model.loss(weights, mask, HEADS, TOKENS, LABELS)
    assert abs(one[0] - expected) < 1e-5 * expected, (name, one, expected)
    other = masked_model.loss(weights, numpy.ones_like(mask), HEADS, TOKENS, LABELS)
    assert abs(expected - other) > 1e-3, name  # the mask matters
    ring = losses(f"{program}_cp", model, ["--mesh", "cp=2", "--context-parallel", "ring"])
    assert numpy.allclose(ring, one, rtol=1e-6), (name, ring, one)
    print(f"{name}: {density:.1%} of the blocks of {size}{'' if exact else ', with a mask within them'}; losses agree", flush=True)
