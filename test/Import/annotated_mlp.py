"""y = relu(x up) down, with sharding annotations, for device-configurations.test."""
from onnx_writer import *


def save_mlp(path, *annotations, configurations=(("pair", 2),)):
    """annotations: (node's number, configuration, shardings..., pipeline stage if it is a number)"""
    nodes = [node("MatMul", ["x", "up"], ["h"], "up_proj"), node("Relu", ["h"], ["a"], "act"),
             node("MatMul", ["a", "down"], ["y"], "down_proj")]
    for at, configuration, *rest in annotations:
        stage = rest.pop() if isinstance(rest[-1], int) else None
        nodes[at] = annotated(nodes[at], configuration, *rest, stage=stage)
    weights = [tensor("up", FLOAT, [4, 6], floats([0.1] * 24)), tensor("down", FLOAT, [6, 4], floats([0.2] * 24))]
    save(path, configured(model(graph(nodes, [value("x", FLOAT, [2, 4])], [value("y", FLOAT, [2, 4])], weights)),
                          *configurations))
