"""A small language model whose attention has a constant mask, for sparse_attention.py and model_masks.py: its file, and what numpy computes
of it."""
import os
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Import"))
import onnx_writer as ow  # noqa: E402


def weights(random, vocabulary, width, layers, scale):
    sizes = {"table": (vocabulary, width), "head": (width, vocabulary)}
    sizes.update({f"{name}{i}": (width, width) for i in range(layers) for name in ("q", "k", "v")})
    sizes.update({f"o{i}.weight": (width, width) for i in range(layers)})
    return {name: (random.standard_normal(size) * scale).astype(numpy.float32) for name, size in sizes.items()}


def layers_of(values):
    return len([name for name in values if name.endswith(".weight")])


def write(path, values, mask, heads):
    """A model that hides the scores where mask [heads or 1, queries, keys] is false."""
    nodes, layers = [ow.node("Gather", ["table", "input_ids"], ["x0"])], layers_of(values)
    vocabulary, width = values["table"].shape
    for i in range(layers):
        for name in "qkv":
            nodes += [ow.node("MatMul", [f"x{i}", f"{name}{i}"], [f"{name}{i}.flat"]), ow.node("Reshape", [f"{name}{i}.flat", "heads"], [f"{name}{i}.heads"]),
                      ow.node("Transpose", [f"{name}{i}.heads"], [f"{name}{i}.turned"], perm=[0, 2, 3, 1] if name == "k" else [0, 2, 1, 3])]
        nodes += [ow.node("MatMul", [f"q{i}.turned", f"k{i}.turned"], [f"s{i}"]), ow.node("Mul", [f"s{i}", "scale"], [f"scaled{i}"]),
                  ow.node("Where", ["seen", f"scaled{i}", "low"], [f"masked{i}"]), ow.node("Softmax", [f"masked{i}"], [f"p{i}"], axis=-1),
                  ow.node("MatMul", [f"p{i}", f"v{i}.turned"], [f"o{i}"]), ow.node("Transpose", [f"o{i}"], [f"o{i}.turned"], perm=[0, 2, 1, 3]),
                  ow.node("Reshape", [f"o{i}.turned", "flat"], [f"o{i}.flat"]), ow.node("MatMul", [f"o{i}.flat", f"o{i}.weight"], [f"y{i}"]),
                  ow.node("Add", [f"x{i}", f"y{i}"], [f"x{i + 1}"])]
    nodes.append(ow.node("MatMul", [f"x{layers}", "head"], ["logits"]))
    tensors = [ow.tensor(name, ow.FLOAT, value.shape, value.tobytes()) for name, value in values.items()]
    tensors += [ow.ints("heads", [0, 0, heads, width // heads]), ow.ints("flat", [0, 0, width]),
                ow.tensor("seen", ow.BOOL, [1, *mask.shape], mask.tobytes()), ow.tensor("low", ow.FLOAT, [], ow.floats([-3.4028235e38])),
                ow.tensor("scale", ow.FLOAT, [], ow.floats([(width // heads) ** -0.5]))]
    ow.save(path, ow.model(ow.graph(nodes, [ow.value("input_ids", ow.INT64, ["batch", "sequence"])],
                                    [ow.value("logits", ow.FLOAT, ["batch", "sequence", vocabulary])], tensors), opset=17))


def loss(values, mask, heads, tokens, labels):
    """The mean cross-entropy of labels [batch, length], in double precision."""
    values = {name: value.astype(float) for name, value in values.items()}
    x = values["table"][tokens]
    batch, length, width = x.shape
    split = lambda y: y.reshape(batch, length, heads, width // heads).transpose(0, 2, 1, 3)  # noqa: E731
    for i in range(layers_of(values)):
        q, k, v = (split(x @ values[f"{name}{i}"]) for name in "qkv")
        scores = numpy.where(mask, q @ k.transpose(0, 1, 3, 2) * (width // heads) ** -0.5, -numpy.inf)
        p = numpy.exp(scores - scores.max(-1, keepdims=True))
        out = p / p.sum(-1, keepdims=True) @ v
        x = x + out.transpose(0, 2, 1, 3).reshape(batch, length, width) @ values[f"o{i}.weight"]
    logits = x @ values["head"]
    logits -= logits.max(-1, keepdims=True)
    each = numpy.log(numpy.exp(logits).sum(-1)) - numpy.take_along_axis(logits, labels[..., None], -1)[..., 0]
    return each.mean()
