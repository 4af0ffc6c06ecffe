"""model.onnx: attention with one matrix for queries, keys and values, of four and two heads, so that its blocks of columns are
unequal; 16-bit floats, which the file holds as numbers of variable length. With LOGITS.safetensors: are they what numpy computes?

    varint_blocks.py FOLDER [LOGITS.safetensors]
"""
import os
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "Import"), os.path.join(HERE, "..", "..", "Golden")]
import family_files  # noqa: E402
from onnx_writer import *  # noqa: E402,F403

HEADS, GROUPS, WIDTH, LENGTH, VOCAB = 4, 2, 4, 6, 16
HIDDEN = HEADS * WIDTH
BLOCKS = [HIDDEN, GROUPS * WIDTH, GROUPS * WIDTH]
folder = sys.argv[1]
random = numpy.random.default_rng(5)
table = random.standard_normal((VOCAB, HIDDEN)).astype(numpy.float32)
joined = (random.standard_normal((HIDDEN, sum(BLOCKS))) / 4).astype(numpy.float16)
head = random.standard_normal((HIDDEN, VOCAB)).astype(numpy.float32)
ids = random.integers(0, VOCAB, (2, LENGTH))


def logits():
    rows = table[ids].astype(float) @ joined.astype(float)
    q, k, v = (part.reshape(2, LENGTH, -1, WIDTH).transpose(0, 2, 1, 3) for part in numpy.split(rows, numpy.cumsum(BLOCKS)[:2], axis=-1))
    k, v = (numpy.repeat(part, HEADS // GROUPS, axis=1) for part in (k, v))
    scores = numpy.exp(q @ k.transpose(0, 1, 3, 2) / WIDTH ** 0.5)
    mixed = scores / scores.sum(-1, keepdims=True) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(2, LENGTH, HIDDEN) @ head.astype(float)


if len(sys.argv) > 2:
    difference = numpy.abs(logits() - family_files.read_safetensors(sys.argv[2])["logits"]).max()
    print(f"largest difference {difference:.1e}")
    sys.exit(not difference < 1e-5)

bits = b"".join(varint(int(number)) for number in joined.view(numpy.uint16).ravel())
save(os.path.join(folder, "model.onnx"), model(graph(
    [node("Gather", ["table", "ids"], ["x"]), node("Cast", ["joined"], ["weight"], to=FLOAT), node("MatMul", ["x", "weight"], ["rows"]),
     node("Split", ["rows", "blocks"], ["q", "k", "v"], axis=-1), node("Attention", ["q", "k", "v"], ["mixed"], q_num_heads=HEADS, kv_num_heads=GROUPS),
     node("MatMul", ["mixed", "head"], ["logits"])],
    [value("ids", INT64, ["batch", LENGTH])], [value("logits", FLOAT, ["batch", LENGTH, VOCAB])],
    [tensor("table", FLOAT, table.shape, table.tobytes()), tensor("joined", FLOAT16, joined.shape, None, [(5, bits)]), ints("blocks", BLOCKS),
     tensor("head", FLOAT, head.shape, head.tobytes())]), 23))
family_files.write_safetensors(os.path.join(folder, "data.safetensors"), {"ids": ids})
