"""Functions at the points where they have several gradients, and what PyTorch's is there.

    kinks.py make DIR           DIR/kinks.onnx, whose loss is the mean of all of them, and DIR/data.safetensors
    kinks.py check GRADIENTS    a file of --grads against the expected ones

The expected gradients are what torch.autograd gives for the functions named; padding_idx is that of torch.nn.Embedding.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "Import"), os.path.join(HERE, "..", "..", "Golden")]
import numpy  # noqa: E402
from family_files import read_safetensors, write_safetensors  # noqa: E402
from onnx_writer import FLOAT, INT64, constant, floats, graph, int64s, model, node, save, tensor, traced, value  # noqa: E402

# name: operator, its inputs (a number is a constant), the operation that the exporter recorded, the point, the gradient
FUNCTIONS = {
    "clamp": ("Clip", ["w", -1, 1], None, [-1, 1, 0, 2], [1, 1, 1, 0]),
    "clamp_min": ("Max", ["w", 0.5], "aten.clamp_min.default", [0.5, 0], [1, 0]),
    "hardtanh": ("Clip", ["w", -1, 1], "aten.hardtanh.default", [-1, 1, 0, 2], [0, 0, 1, 0]),
    "relu6": ("Clip", ["w", 0, 6], None, [0, 6, 3], [0, 0, 1]),
    "clamp_0_6": ("Clip", ["w", 0, 6], "aten.clamp.default", [0, 6, 3], [1, 1, 1]),
    "relu": ("Relu", ["w"], None, [0, 1], [0, 1]),
    "leaky_relu": ("LeakyRelu", ["w"], None, [0, 1], [0.01, 1]),
    "prelu": ("PRelu", ["w", 0.25], None, [0, 1], [0.25, 1]),
    "elu": ("Elu", ["w"], None, [0, 1], [1, 1]),
    "hardswish": ("HardSwish", ["w"], None, [-3, 3, 0], [0, 1, 0.5]),
    "abs": ("Abs", ["w"], None, [0, -1], [0, -1]),
    "maximum": ("Max", ["w", "v"], "aten.maximum.default", [1, 2, 3], [0.5, 1, 0]),
    "minimum": ("Min", ["w", "v"], None, [1, 2, 3], [0.5, 0, 1]),
}
OTHER = {"maximum": ([1, 1, 5], [0.5, 0, 1]), "minimum": ([1, 1, 5], [0.5, 1, 0])}  # v and its gradient
# name: operator, its attributes, the call that the exporter recorded, the point, the gradient, whether the operator's second input
# is how many of the largest it takes; along the last dimension, which stays
REDUCTIONS = {
    "norm": ("ReduceL2", dict(axes=[1]), None, [0, 0], [0, 0], None),
    "norm_3_4": ("ReduceL2", dict(axes=[1]), None, [3, 4], [0.6, 0.8], None),
    "amax": ("ReduceMax", dict(axes=[1]), ("aten.amax.default", "%x, [1]"), [1, 2, 2], [0, 0.5, 0.5], None),
    "max_dim": ("ReduceMax", dict(axes=[1]), ("aten.max.dim", "%x, 1"), [1, 2, 2], [0, 1, 0], None),
    "min_dim": ("ReduceMin", dict(axes=[1]), ("aten.min.dim", "%x, 1, True"), [1, 2, 1], [1, 0, 0], None),
    "max_all": ("ReduceMax", dict(axes=[1]), ("aten.max.default", "%x"), [2, 2, 1], [0.5, 0.5, 0], None),
    "topk": ("TopK", dict(axis=1), None, [2, 2, 1, 2], [1, 3, 0, 0], 2),
}
IDS, PADDING, ROWS, WIDTH = [[0, 2, 2], [1, 0, 3]], 2, 4, 2


def make(folder):
    nodes, tensors, parts = [], [tensor("zero_axis", INT64, [1], bytes(8))], []
    for name, (op, inputs, operation, at, _) in FUNCTIONS.items():
        names = []
        for i, each in enumerate(inputs):
            if isinstance(each, str):  # a parameter, as an activation: added to the input, which is zero
                at_each = at if each == "w" else OTHER[name][0]
                tensors.append(tensor(f"{name}.{each}", FLOAT, [len(at_each)], floats(at_each)))
                names.append(f"{name}_{i}")
                nodes.append(node("Add", ["x", f"{name}.{each}"], [names[-1]]))
            else:
                names.append(f"{name}_bound{i}")
                tensors.append(tensor(names[-1], FLOAT, [], floats([each])))
        made = node(op, names, [name])
        nodes.append(traced(made, operation) if operation else made)
        parts.append(name)
    for name, (op, attributes, call, at, _, taken) in REDUCTIONS.items():
        tensors.append(tensor(f"{name}.w", FLOAT, [len(at)], floats(at)))
        nodes.append(node("Add", ["x", f"{name}.w"], [f"{name}_0"]))
        if taken:  # the second is worth three times the first
            tensors.append(tensor(f"{name}_k", INT64, [1], int64s([taken])))
            nodes += [constant(f"{name}_worth", FLOAT, [taken], floats([1, 3])),
                      node(op, [f"{name}_0", f"{name}_k"], [f"{name}_found", f"{name}_places"], **attributes),
                      node("Mul", [f"{name}_found", f"{name}_worth"], [name])]
        else:
            made = node(op, [f"{name}_0"], [name], **attributes)
            nodes.append(traced(made, *call) if call else made)
        parts.append(name)
    tensors.append(tensor("embedding.weight", FLOAT, [ROWS, WIDTH], floats(range(ROWS * WIDTH))))
    nodes.append(traced(node("Gather", ["embedding.weight", "ids"], ["rows"]), "aten.embedding.default", f"%p_weight, %ids, {PADDING}"))
    nodes.append(node("Flatten", ["rows"], ["flat"], axis=1))
    tensors.append(tensor("padding.weight", FLOAT, [ROWS, WIDTH], floats(range(ROWS * WIDTH))))
    nodes += [constant("padding_id", INT64, [1], int64s([PADDING])),
              traced(node("Gather", ["padding.weight", "padding_id"], ["row"]), "aten.embedding.default", f"%p_weight, %ids, {PADDING}"),
              node("Add", ["x", "row"], ["padding"])]
    nodes.append(node("Concat", parts + ["flat", "padding"], ["all"], axis=1))
    nodes.append(node("ReduceMean", ["all"], ["loss"], keepdims=0))
    save(os.path.join(folder, "kinks.onnx"), model(graph(nodes, [value("x", FLOAT, [2, 1]), value("ids", INT64, [2, 3])],
                                                         [value("loss", FLOAT, [])], tensors)))
    write_safetensors(os.path.join(folder, "data.safetensors"),
                      {"x": numpy.zeros((2, 1), numpy.float32), "ids": numpy.array(IDS, numpy.int64)})


def expected():
    """By parameter, times the number of elements of which the loss is the mean, over the samples."""
    columns = sum(len(at) for _, _, _, at, _ in FUNCTIONS.values()) + len(IDS[0]) * WIDTH + WIDTH
    columns += sum(taken or 1 for *_, taken in REDUCTIONS.values())
    gradients = {f"{name}.w": numpy.array(row[4]) / columns for name, row in FUNCTIONS.items()}
    gradients.update({f"{name}.w": numpy.array(row[4]) / columns for name, row in REDUCTIONS.items()})
    gradients.update({f"{name}.v": numpy.array(other[1]) / columns for name, other in OTHER.items()})
    table = numpy.zeros((ROWS, WIDTH))
    for row in sum(IDS, []):
        table[row] += row != PADDING
    gradients["padding.weight"] = numpy.zeros((ROWS, WIDTH))
    gradients["embedding.weight"] = table / (columns * len(IDS))
    return gradients


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    found, wanted = read_safetensors(sys.argv[2]), expected()
    wrong = [name for name, gradient in wanted.items() if not numpy.allclose(found[name], gradient, rtol=1e-6, atol=1e-9)]
    for name in wrong:
        print(f"{name}: {found[name].tolist()} instead of {wanted[name].tolist()}")
    if wrong or set(found) != set(wanted):
        sys.exit(f"gradients of {len(wrong)} parameters differ; found {sorted(found)}")
    print(f"{len(wanted)} gradients are PyTorch's")
