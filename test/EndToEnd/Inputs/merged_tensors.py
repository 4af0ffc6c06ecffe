"""merged.onnx and plain.onnx: one model of copied layers, as dynamo's exporter writes it, which merges their equal tensors,
and with a tensor for each parameter. With arguments CHECKPOINT TRAINED.onnx: does each tensor of the file hold its part of
the trained parameters, and read each node its own?"""
import os
import struct
import sys

import numpy

from checkpoints import read

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Import"))
from onnx_writer import *  # noqa: E402

LAYERS = ["first", "second"]


def parameter(name, values):
    return tensor(name, FLOAT, values.shape, numpy.ascontiguousarray(values).tobytes())


def nodes(stored):
    """Of a residual stream with two layers: a norm and a linear layer each; then a norm without weights, to which the
    exporter gives ones. `stored`: the tensor of a parameter."""
    result, last = [node("Gather", ["table", "x"], ["e"])], "e"
    for layer in LAYERS:
        norm, linear = ([f"%p_{layer}_{part}_{name}" for name in ("weight", "bias")] for part in ("norm", "linear"))
        result += [
            traced(node("LayerNormalization", [last, stored(f"{layer}.norm.weight"), stored(f"{layer}.norm.bias")], [layer + "n"]),
                   "aten.layer_norm.default", f"%{last}, [8], {norm[0]}, {norm[1]}, 1e-05, False"),
            traced(node("MatMul", [layer + "n", stored(f"{layer}.linear.weight")], [layer + "m"]), "aten.linear.default", f"%{layer}n, {linear[0]}, {linear[1]}"),
            traced(node("Add", [layer + "m", stored(f"{layer}.linear.bias")], [layer + "b"]), "aten.linear.default", f"%{layer}n, {linear[0]}, {linear[1]}"),
            node("Add", [last, layer + "b"], [layer])]
        last = layer
    return result + [traced(node("LayerNormalization", [last, stored("ones")], ["n"]), "aten.layer_norm.default", f"%{last}, [8], None, None, 1e-05, False"),
                     node("MatMul", ["n", "head"], ["y"])]


def make(folder):
    random = numpy.random.default_rng(7)
    table, linear, head = (random.standard_normal(shape).astype("<f4") / 2 for shape in ((16, 8), (8, 8), (8, 16)))
    ends = [value("x", INT64, ["batch", 6])], [value("y", FLOAT, ["batch", 6, 16])]
    one, zero = numpy.ones(8, "<f4"), numpy.zeros(8, "<f4")
    both = [parameter("table", table), parameter("head", head)]
    kept = {"norm.weight": "first.norm.weight", "norm.bias": "first.norm.bias", "linear.weight": "val_0", "linear.bias": "first.norm.bias"}
    merged = graph(nodes(lambda name: kept[name.split(".", 1)[1]] if "." in name else "first.norm.weight"), *ends,
                   both + [parameter("first.norm.weight", one), parameter("first.norm.bias", zero), parameter("val_0", linear.T)])
    names = ["table", "head"] + [f"{layer}.{name}" for layer in LAYERS for name in kept]
    save(f"{folder}/merged.onnx", model(exported(merged, [("PARAMETER", name) for name in names], {"val_0": ["first.linear.weight"]})))
    turned = [constant("ones", FLOAT, [8], one.tobytes())] + [node("Transpose", [f"{layer}.linear.weight"], [layer + "t"], perm=[1, 0]) for layer in LAYERS]
    values = {"norm.weight": one, "norm.bias": zero, "linear.weight": linear, "linear.bias": zero}
    plain = nodes(lambda name: name.split(".")[0] + "t" if name.endswith("linear.weight") else name)
    save(f"{folder}/plain.onnx", model(graph(turned + plain, *ends, both + [
        parameter(f"{layer}.{name}", values[name]) for layer in LAYERS for name in values])))
    tokens = random.integers(0, 16, (4, 6)).astype("<i8")
    header = f'{{"x":{{"dtype":"I64","shape":[4,6],"data_offsets":[0,{tokens.nbytes}]}}}}'
    with open(f"{folder}/data.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode() + tokens.tobytes())


def check(checkpoint, trained):
    import onnx
    from onnx import numpy_helper
    weights, graph = read(checkpoint)[0], onnx.load(trained).graph
    stored = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    onnx.checker.check_model(trained)
    for layer in LAYERS:
        norm, matmul, bias = (next(node for node in graph.node if node.output[0] == layer + end) for end in "nmb")
        assert list(norm.input[1:]) == [f"{layer}.norm.weight", f"{layer}.norm.bias"], norm.input
        read_names = {"norm.weight": norm.input[1], "norm.bias": norm.input[2], "linear.weight": matmul.input[1], "linear.bias": bias.input[1]}
        for name, tensor_name in read_names.items():
            expected = weights[f"{layer}.{name}"]
            expected = expected.T if name == "linear.weight" else expected
            assert (stored[tensor_name] == expected).all(), tensor_name
    print("all tensors hold what was trained")


if __name__ == "__main__":
    make(sys.argv[1]) if len(sys.argv) == 2 else check(*sys.argv[1:])
