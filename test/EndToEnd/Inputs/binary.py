"""A model with one number for each token (ELECTRA's discriminator in small), its data, and what training it gives.

    binary.py make FOLDER                        model.onnx, data.safetensors, wrong.safetensors
    binary.py check FOLDER LOG.csv GRADIENTS     losses of the steps and first gradients are those of
                                                 PyTorch's binary_cross_entropy_with_logits, written out
"""
import csv
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Golden"))
import family_files  # noqa: E402
import checkpoints  # noqa: E402
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

TOKENS, WIDTH, BATCH, SEQUENCE, RATE, IGNORED = 7, 5, 4, 6, 0.5, -1
random = np.random.default_rng(1)
table, head = random.normal(size=(TOKENS, WIDTH)).astype("f4"), random.normal(size=(WIDTH, 1)).astype("f4")
ids = random.integers(0, TOKENS, (BATCH, SEQUENCE))
labels = random.integers(0, 2, (BATCH, SEQUENCE))
labels[0, 2:] = labels[1, 5:] = labels[3] = IGNORED  # padding, and a sample without labels


def make(folder):
    axes = ["batch", "sequence"]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["x"]), helper.make_node("MatMul", ["x", "head"], ["y"]),
             helper.make_node("Squeeze", ["y", "last"], ["logits"])]
    graph = helper.make_graph(
        nodes, "electra", [helper.make_tensor_value_info("input_ids", TensorProto.INT64, axes)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, axes)],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(head, "head"),
         numpy_helper.from_array(np.array([-1]), "last")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)]), folder + "/model.onnx")
    family_files.write_safetensors(folder + "/data.safetensors", {"input_ids": ids, "labels": labels})
    family_files.write_safetensors(folder + "/wrong.safetensors", {"input_ids": ids, "labels": np.where(labels == 1, 2, labels)})


def step(table, head):
    """The mean over the labels that count, and its gradients."""
    x = table[ids] @ head[:, 0]
    counts = labels != IGNORED
    loss = np.maximum(x, 0) - x * labels + np.log1p(np.exp(-np.abs(x)))
    slope = np.where(counts, 1 / (1 + np.exp(-x)) - labels, 0) / counts.sum()
    d_table = np.zeros_like(table)
    np.add.at(d_table, ids, slope[..., None] * head[:, 0])
    return loss[counts].mean(), d_table, np.einsum("bs,bsw->w", slope, table[ids])[:, None]


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    _, log, path = sys.argv[2:]
    found, _ = checkpoints.read(path)
    values = [table.astype("f8"), head.astype("f8")]
    for number, row in enumerate(csv.DictReader(open(log))):
        loss, *gradients = step(*values)
        assert abs(float(row["loss"]) - loss) < 1e-6 * loss, (number, row["loss"], loss)
        if number == 0:
            for name, gradient in zip(("table", "head"), gradients):
                np.testing.assert_allclose(found[name], gradient, rtol=1e-5, atol=1e-7)
        values = [value - RATE * gradient for value, gradient in zip(values, gradients)]
    print(f"equal: {number + 1} losses")
