"""A model whose weights lie in three files: a table of float32 behind 3 GiB of nothing (a sparse
file), a matrix of float16, a vector of bfloat16, and in its own another matrix of float16 and a vector of
bfloat16, as numbers that are not raw bytes; written to FOLDER with the tokens that it is run on,
or, with the logits' file, compared with what numpy computes.

    external_weights.py FOLDER [LOGITS.safetensors]
"""
import os
import sys

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "Import"), os.path.join(HERE, "..", "..", "Golden")]
import family_files  # noqa: E402
from onnx_writer import *  # noqa: E402,F403

FAR = 3 << 30
folder = sys.argv[1]
random = numpy.random.default_rng(5)
table = random.standard_normal((16, 8)).astype(numpy.float32)
matrix = random.standard_normal((8, 16)).astype(numpy.float16)
bias = (random.standard_normal(16).astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
mix = random.standard_normal((16, 16)).astype(numpy.float16)
shift = (random.standard_normal(16).astype(numpy.float32).view(numpy.uint32) >> 16).astype(numpy.uint16)
shift[3] = 0  # a number of one byte among numbers of three
ids = random.integers(0, 16, (4, 6))


def widened(bits):
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32).astype(float)


def numbers(name, dtype, dims, bits):
    return tensor(name, dtype, dims, None, [(5, b"".join(varint(int(b)) for b in bits.ravel()))])


if len(sys.argv) > 2:
    expected = (table.astype(float)[ids] @ matrix.astype(float) + widened(bias)) @ mix.astype(float) + widened(shift)
    logits = family_files.read_safetensors(sys.argv[2])["logits"]
    rows = [numpy.abs(expected - row).max(axis=(1, 2)).min() for row in logits]
    print(f"largest difference {max(rows):.1e}")
    sys.exit(not max(rows) < 2e-5)

os.makedirs(os.path.join(folder, "data"))
with open(os.path.join(folder, "data", "table.bin"), "wb") as file:
    file.seek(FAR)
    file.write(table.tobytes())
matrix.tofile(os.path.join(folder, "matrix.bin"))
bias.tofile(os.path.join(folder, "bias.bin"))
save(os.path.join(folder, "model.onnx"), model(graph(
    [node("Gather", ["table", "ids"], ["rows"]), node("Cast", ["rows"], ["half"], to=FLOAT16),
     node("MatMul", ["half", "matrix"], ["products"]), node("Cast", ["bias"], ["b"], to=FLOAT16),
     node("Add", ["products", "b"], ["sum"]), node("MatMul", ["sum", "mix"], ["mixed"]),
     node("Cast", ["shift"], ["s"], to=FLOAT16), node("Add", ["mixed", "s"], ["last"]),
     node("Cast", ["last"], ["logits"], to=FLOAT)],
    [value("ids", INT64, ["batch", 6])], [value("logits", FLOAT, ["batch", 6, 16])],
    [external("table", FLOAT, [16, 8], "data/table.bin", FAR, table.nbytes),
     external("matrix", FLOAT16, [8, 16], "matrix.bin"),
     external("bias", BFLOAT16, [16], "bias.bin", 0, bias.nbytes),
     numbers("mix", FLOAT16, [16, 16], mix.view(numpy.uint16)), numbers("shift", BFLOAT16, [16], shift)])))
family_files.write_safetensors(os.path.join(folder, "data.safetensors"), {"ids": ids})
