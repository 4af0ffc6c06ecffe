"""slow_files.py PARTITA FOLDER: imports files that are made to take long, or much memory, and are told of or done soon."""
import os
import random
import subprocess
import sys

from onnx_writer import *

partita, folder = sys.argv[1:]
SECONDS = 60  # each takes some seconds, and minutes where work grows with the square


def imports(name, written, *dims):
    path = os.path.join(folder, name + ".onnx")
    save(path, written)
    done = subprocess.run([partita, "import", name + ".onnx", *dims, "-o", os.devnull], cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    print(f"{name}: {done.returncode} {done.stderr.strip()}", flush=True)


def many_slices(count=200, size=256, batch=1, ends=()):
    """Parts of one weight without a common element: each might overlap each."""
    numbers, last, nodes, tensors, folded = random.Random(0), "x", [], [], {}
    for i in range(count):
        name = f"slice_{i + 1}"
        tensors.append(tensor(name, FLOAT, [size, size], numbers.randbytes(4 * size * size)))
        nodes.append(node("MatMul", [last, name], [f"h{i}"], f"/m{i}"))
        folded[name], last = ["w"], f"h{i}"
    nodes += [node("Reshape", [last, "sizes"], ["y"])] if ends else []
    tensors += [tensor("sizes", INT64, [len(ends)], int64s(ends))] if ends else []
    g = graph(nodes, [value("x", FLOAT, [batch, size])], [value("y" if ends else last, FLOAT, [*(ends or [batch, size])])], tensors)
    return model(exported(g, [("PARAMETER", "w")], folded))


def part_of_zeros(rows=60000, width=64):
    """A part that differs from each place of the whole in its last row alone."""
    full, part = bytearray(4 * rows * width), bytearray(2 * rows * width)
    full[-3:], part[-1:] = b"\x01\x02\x03", b"\x7f"
    nodes = [node("Gather", ["w", "x"], ["a"]), node("Gather", ["slice_1", "x"], ["b"]), node("Add", ["a", "b"], ["y"])]
    g = graph(nodes, [value("x", INT64, [2])], [value("y", FLOAT, [2, width])],
              [tensor("w", FLOAT, [rows, width], bytes(full)), tensor("slice_1", FLOAT, [rows // 2, width], bytes(part))])
    return model(exported(g, [("PARAMETER", "w")], {"slice_1": ["w"]}))


def long_sequence(count=20000):
    """Each node makes a list, one longer than the last."""
    nodes = [node("SequenceEmpty", [], ["s0"])]
    nodes += [node("SequenceInsert", [f"s{i}", "x"], [f"s{i + 1}"], f"/insert{i}") for i in range(count)]
    nodes.append(node("ConcatFromSequence", [f"s{count}"], ["y"], axis=0))
    return model(graph(nodes, [value("x", FLOAT, [1])], [value("y", FLOAT, [count])]))


imports("slices", many_slices())
imports("part", part_of_zeros())
imports("sequence", long_sequence())
# The size that the export has fixed is found by importing again and again; what is trained is the same each time.
imports("fixed", many_slices(batch="n", ends=[720, 256]), "--dim", "n=7")
