"""folded.onnx and plain.onnx: one model, its weights folded by an exporter that records it, and as they are in the model.
With arguments CHECKPOINT TRAINED.onnx: does each tensor of the file hold its part of the trained parameters?"""
import os
import struct
import sys

import numpy

from checkpoints import read

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Import"))
from onnx_writer import *  # noqa: E402


def make(folder):
    random = numpy.random.default_rng(7)
    table, linear, rest = (random.standard_normal(shape).astype("<f4") / 2 for shape in ((16, 8), (8, 8), (8, 8)))
    gate, product = random.standard_normal(8).astype("<f4"), random.standard_normal((8, 8)).astype("<f4") / 2

    def parameter(name, values):
        return tensor(name, FLOAT, values.shape, numpy.ascontiguousarray(values).tobytes())

    def nodes(linear, gate, part, head):
        return [node("Gather", ["table", "x"], ["a"]), node("MatMul", ["a", linear], ["b"]),
                traced(node("Mul", ["b", gate], ["c"]), "aten.group_norm.default"), node("Tanh", ["c"], ["d"]), node("MatMul", ["d", "mul"], ["e"]), node("Add", ["e", part], ["f"]),
                node("MatMul", ["f", "rest"], ["g"]), node("Add", ["g", "a"], ["h"]), node("MatMul", ["h", head], ["y"])]

    ends = [value("x", INT64, ["batch", 6])], [value("y", FLOAT, ["batch", 6, 16])]
    folded = graph(nodes("val_0", "val_1", "slice_1", "val_9"), *ends,
                   [parameter("table", table), parameter("val_0", linear.T), parameter("val_1", gate[None, None]), parameter("mul", product),
                    parameter("rest", rest), parameter("slice_1", rest[3]), parameter("val_9", table.T)])
    names = ["table", "l.weight", "n.weight", "g", "v", "rest"]
    save(f"{folder}/folded.onnx", model(exported(folded, [("PARAMETER", name) for name in names], {
        "val_0": ["l.weight"], "val_1": ["n.weight", "val_8"], "slice_1": ["rest", "val_2"], "val_9": ["table"], "mul": ["div", "g", "v"]})))
    unfolded = [node("Transpose", ["l.weight"], ["l"], perm=[1, 0]), node("Transpose", ["table"], ["head"], perm=[1, 0]),
                node("Gather", ["rest", "three"], ["part"], axis=0)]
    save(f"{folder}/plain.onnx", model(graph(unfolded + nodes("l", "n.weight", "part", "head"), *ends, [
        parameter("table", table), parameter("l.weight", linear), parameter("n.weight", gate), parameter("mul", product), parameter("rest", rest),
        tensor("three", INT64, [], int64s([3]))])))
    tokens = random.integers(0, 16, (4, 6)).astype("<i8")
    header = f'{{"x":{{"dtype":"I64","shape":[4,6],"data_offsets":[0,{tokens.nbytes}]}}}}'
    with open(f"{folder}/data.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode() + tokens.tobytes())


def check(checkpoint, trained):
    import onnx
    from onnx import numpy_helper
    weights = read(checkpoint)[0]
    stored = {each.name: numpy_helper.to_array(each) for each in onnx.load(trained).graph.initializer}
    expected = {"table": weights["table"], "val_0": weights["l.weight"].T, "val_1": weights["n.weight"][None, None], "mul": weights["mul"],
                "rest": weights["rest"], "slice_1": weights["rest"][3], "val_9": weights["table"].T}
    for name, values in expected.items():
        assert stored[name].shape == values.shape and (stored[name] == values).all(), name
    print("all tensors hold what was trained")


if __name__ == "__main__":
    make(sys.argv[1]) if len(sys.argv) == 2 else check(*sys.argv[1:])
