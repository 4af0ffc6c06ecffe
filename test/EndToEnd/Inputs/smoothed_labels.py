"""A loss with smoothed labels as PyTorch's dynamo exporter records it, and what it is by PyTorch's definition.

    smoothed_labels.py make DIR     DIR/smoothed.onnx, DIR/weighted.onnx (weights of classes) and DIR/data.safetensors
    smoothed_labels.py check WHICH GRADIENTS LOG

The label's class has 1 - s of the target and every class s / n; a class's weight multiplies its share. The mean is over the
weights of the labels that count. The expected gradient is the derivative by hand, in double precision.
"""
import csv
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "Import"), os.path.join(HERE, "..", "..", "Golden")]
import numpy  # noqa: E402
from family_files import read_safetensors, write_safetensors  # noqa: E402
from onnx_writer import FLOAT, INT64, exported, floats, graph, model, node, save, tensor, traced, value  # noqa: E402

ROWS, WIDTH, CLASSES, SMOOTHING, IGNORED = 6, 4, 8, 0.3, 5
RANDOM = numpy.random.default_rng(8)
X, W = RANDOM.standard_normal((ROWS, WIDTH)), RANDOM.standard_normal((WIDTH, CLASSES))
LABELS = numpy.array([0, IGNORED, 7, 3, 3, 1])
WEIGHTS = {"smoothed": numpy.ones(CLASSES), "weighted": numpy.arange(1, CLASSES + 1) / 4}


def make(folder):
    for name, weights in WEIGHTS.items():
        inputs, tensors, argument = ["scores", "labels"], [tensor("w", FLOAT, [WIDTH, CLASSES], floats(W.ravel()))], "None"
        if name == "weighted":
            inputs.append("weights")
            tensors.append(tensor("weights", FLOAT, [CLASSES], floats(weights)))
            argument = "%b_weights"
        nodes = [traced(node("MatMul", ["x", "w"], ["scores"]), "aten.matmul.default", "%x, %p_w"),
                 traced(node("SoftmaxCrossEntropyLoss", inputs, ["loss"], ignore_index=IGNORED, reduction="mean"),
                        "aten.cross_entropy_loss.default", f"%scores, %labels, {argument}, 1, {IGNORED}, {SMOOTHING}")]
        signature = [("PARAMETER", "w"), ("BUFFER", "weights")][:len(tensors)]
        save(os.path.join(folder, name + ".onnx"),
             model(exported(graph(nodes, [value("x", FLOAT, [ROWS, WIDTH]), value("labels", INT64, [ROWS])],
                                  [value("loss", FLOAT, [])], tensors), signature)))
    write_safetensors(os.path.join(folder, "data.safetensors"), {"x": X.astype(numpy.float32), "labels": LABELS.astype(numpy.int64)})


def check(which, gradients, log):
    weights, counts = WEIGHTS[which], LABELS != IGNORED
    scores = X @ W
    logs = scores - numpy.log(numpy.exp(scores).sum(1, keepdims=True))
    target = ((1 - SMOOTHING) * numpy.eye(CLASSES)[LABELS] + SMOOTHING / CLASSES) * weights * counts[:, None]
    total = (weights[LABELS] * counts).sum()
    loss = -(target * logs).sum() / total
    gradient = X.T @ (numpy.exp(logs) * target.sum(1, keepdims=True) - target) / total
    with open(log, newline="") as file:
        found = float(next(csv.DictReader(file))["loss"])
    assert abs(found - loss) < 1e-6 * abs(loss), (found, loss)
    error = numpy.abs(read_safetensors(gradients)["w"] - gradient).max() / numpy.abs(gradient).max()
    assert error < 1e-6, error
    print(f"{which}: loss and gradient are PyTorch's")


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    check(*sys.argv[2:])
