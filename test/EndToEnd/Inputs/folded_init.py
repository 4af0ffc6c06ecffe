"""Models as exporters fold them, and files of the weights that they were folded from.

    folded_init.py DIR

    product.onnx   'mul', the product of g and v (weight_norm), recorded
    layer.onnx     a Conv that a BatchNorm was folded into: under the Conv's name, but not its values
    script.onnx    TorchScript's: a folded transpose, and 1 + scale
    *.safetensors  the model's own; script-own has the sum by its name in script.onnx, script-turned
                   the matrix as it stands there, too
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "..", "Import"), os.path.join(HERE, "..", "..", "Golden")]
from family_files import write_safetensors  # noqa: E402
import numpy  # noqa: E402
from onnx_writer import FLOAT, exported, floats, graph, model, node, save, tensor, traced, value  # noqa: E402

os.chdir(sys.argv[1])


def numbers(*dims):
    count = int(numpy.prod(dims))
    return (numpy.arange(count, dtype=numpy.float32).reshape(dims) - count / 2) / count


def holds(name, values):
    return tensor(name, FLOAT, values.shape, floats(values.ravel()))


v, scale = numbers(4, 6), numbers(6)
product = v / numpy.linalg.norm(v, axis=0)
save("product.onnx", model(exported(
    graph([traced(node("MatMul", ["x", "mul"], ["y"]), "aten.matmul.default", "%x, %mul")], [value("x", FLOAT, [2, 4])],
          [value("y", FLOAT, [2, 6])], [holds("mul", product)]),
    [("PARAMETER", "fc.weight_v"), ("PARAMETER", "fc.weight_g")], {"mul": ["fc.weight_v", "fc.weight_g"]})))
write_safetensors("product.safetensors", {"fc.weight_v": v})

conv = numbers(4, 3, 2)
save("layer.onnx", model(exported(
    graph([traced(node("Conv", ["x", "conv.weight", "conv.weight_bias"], ["y"]), "aten.conv1d.default", "%x, %p_conv_weight")],
          [value("x", FLOAT, [2, 3, 5])], [value("y", FLOAT, [2, 4, 4])],
          [holds("conv.weight", 2 * conv), holds("conv.weight_bias", numbers(4))]),
    [("PARAMETER", "conv.weight"), ("PARAMETER", "bn.weight")])))
write_safetensors("layer.safetensors", {"conv.weight": conv, "bn.weight": numbers(4)})

save("script.onnx", model(
    graph([node("MatMul", ["x", "onnx::MatMul_5"], ["a"]), node("Mul", ["a", "onnx::Mul_6"], ["y"])], [value("x", FLOAT, [2, 4])],
          [value("y", FLOAT, [2, 6])], [holds("onnx::MatMul_5", v), holds("onnx::Mul_6", 1 + scale)]), producer="pytorch"))
write_safetensors("script.safetensors", {"fc.weight": v.T, "scale": scale})
write_safetensors("script-own.safetensors", {"fc.weight": v.T, "onnx::Mul_6": 1 + scale})
write_safetensors("script-turned.safetensors", {"fc.weight": v, "onnx::Mul_6": 1 + scale})
