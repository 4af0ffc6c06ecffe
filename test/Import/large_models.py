"""large_models.py PARTITA FOLDER: imports models with large weights and says what that took."""
import os
import re
import resource
import subprocess
import sys

from onnx_writer import *

partita, folder = sys.argv[1:]


def imports(name, *options):
    done = subprocess.run([partita, "import", name + ".onnx", *options], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    sizes = [int(size) for size in re.findall(r"train\.parameter .* bytes = (\d+)", done.stdout)]
    kilobytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(f"{name}: {len(sizes)} parameters, {sum(sizes)} bytes, under 500 MB: {kilobytes < 500_000}", flush=True)


def external_model(rows=4096, columns=8192, count=40):
    size = rows * columns * 4
    with open(f"{folder}/weights.bin", "wb") as file:
        file.truncate(count * size)
    nodes, weights, last = [], [], "x"
    for i in range(count):
        shape = [rows, columns] if i % 2 == 0 else [columns, rows]
        weights.append(external(f"w{i}", FLOAT, shape, "weights.bin", i * size, size))
        nodes.append(node("MatMul", [last, f"w{i}"], [f"h{i}"], f"/m{i}"))
        last = f"h{i}"
    save(f"{folder}/external.onnx", model(graph(nodes, [value("x", FLOAT, ["n", rows])], [value(last, FLOAT, ["n", rows])], weights)))


def inline_model(elements=375_000_000):
    """The model's bytes are written around a hole of zeros, its weight."""
    before = encode([(1, node("Add", ["x", "w"], ["y"]))])
    after = encode([(11, value("x", FLOAT, [elements])), (12, value("y", FLOAT, [elements]))])
    head = encode([(1, elements), (2, FLOAT), (8, "w")]) + b"\x4a" + varint(4 * elements)
    tensor_head = b"\x2a" + varint(len(head) + 4 * elements) + head
    length = len(before) + len(tensor_head) + 4 * elements + len(after)
    with open(f"{folder}/inline.onnx", "wb") as file:
        file.write(encode([(8, [(1, ""), (2, 17)])]) + b"\x3a" + varint(length) + before + tensor_head)
        file.seek(4 * elements, os.SEEK_CUR)
        file.write(after)


def tied_model(rows=40000, columns=4000):
    """A matrix and its transpose, beside the model."""
    size = rows * columns * 4
    with open(f"{folder}/tied.bin", "wb") as file:
        file.truncate(2 * size)
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("MatMul", ["a", "t"], ["y"])]
    weights = [external("w", FLOAT, [rows, columns], "tied.bin", 0, size), external("t", FLOAT, [columns, rows], "tied.bin", size, size)]
    save(f"{folder}/tied.onnx", model(graph(nodes, [value("x", FLOAT, [2, rows])], [value("y", FLOAT, [2, rows])], weights)))


external_model()
imports("external", "--dim", "n=4")
inline_model()
imports("inline")
tied_model()
imports("tied", "--tie", "w=t")
