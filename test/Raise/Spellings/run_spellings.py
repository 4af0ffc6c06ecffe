"""Runs the cases of a test file: sections `//--- NAME` of Python that write a tiny ONNX model in one of
the spellings that exporters have.

    //--- silu
    # RAISED: 1 tx.silu
    x = input(2, 8)
    result(x * Sigmoid(x))

An ONNX operator is a function of its name; attributes are keywords, numbers become constants, and + - * /
and ** are Add, Sub, Mul, Div and Pow. `input(*shape)` and `weight(*shape)` make an input and an initializer
with values, `table(nested list)` a constant. RAISED is what `partita import --report` must count, NEAR (any number of
them) what it must tell of a near miss. In any case the raised program must compute what the imported one does, in double
precision to float32 rounding; `# TOLERANCE:` is for models of 16 bits, which the composite computes better.

usage: run_spellings.py FILE FOLDER, with partita, partita-opt and partita-interp in the PATH
"""
import functools
import os
import random
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Import"))
import onnx_writer as onnx

RAISE = ("builtin.module(canonicalize,cse,func.func(raise-layer-norm,raise-rms-norm,raise-activation,"
         "raise-rotate-half,raise-attention,raise-documents),canonicalize,cse)")
FORMATS = {onnx.FLOAT: "f", onnx.FLOAT16: "e", onnx.INT64: "q", onnx.BOOL: "?", onnx.DOUBLE: "d"}


class Value:
    def __init__(self, graph, name):
        self.graph, self.name = graph, name


def arithmetic(op):
    return (lambda a, b: a.graph.node(op, a, b)), (lambda a, b: a.graph.node(op, b, a))


for symbol, operator in dict(add="Add", sub="Sub", mul="Mul", truediv="Div", pow="Pow").items():
    forward, backward = arithmetic(operator)
    setattr(Value, f"__{symbol}__", forward)
    setattr(Value, f"__r{symbol}__", backward)
Value.__neg__ = lambda a: a.graph.node("Neg", a)


class Graph:
    """Collects one model; the cases' functions are its methods."""

    def __init__(self):
        self.nodes, self.inputs, self.outputs, self.initializers = [], [], [], []
        self.type, self.opset, self.random, self.count = onnx.FLOAT, 17, random.Random(1), 0

    def settings(self, type=onnx.FLOAT, opset=17):
        """The element type of what follows, and the file's opset."""
        self.type, self.opset = type, opset

    def name(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def input(self, *shape, type=None):
        name = self.name("x")
        self.inputs.append(onnx.value(name, type or self.type, shape))
        return Value(self, name)

    def raw(self, numbers, type):
        return struct.pack(f"<{len(numbers)}{FORMATS[type]}", *numbers)

    def weight(self, *shape, mean=0.0):
        elements, name = 1, self.name("w")
        for extent in shape:
            elements *= extent
        numbers = [self.random.gauss(mean, 1) for _ in range(elements)]
        self.initializers.append(onnx.tensor(name, self.type, shape, self.raw(numbers, self.type)))
        return Value(self, name)

    def table(self, nested, type=None):
        """A constant; integers unless its elements or `type` say otherwise."""
        shape, numbers, name = [], nested, self.name("c")
        while isinstance(numbers, list):
            shape.append(len(numbers))
            numbers = numbers[0]
        flat = [nested]
        for _ in shape:
            flat = [item for part in flat for item in part]
        if type is None:
            type = self.type if isinstance(flat[0], float) else onnx.BOOL if isinstance(flat[0], bool) else onnx.INT64
        self.nodes.append(onnx.constant(name, type, shape, self.raw(flat, type)))
        return Value(self, name)

    def node(self, op, *operands, outputs="y", domain=None, **attributes):
        """A number beside tensors has their element type; a list is a tensor of integers. `outputs` has a
        letter for each output, a dash for one that is left out."""
        names = []
        for operand in operands:
            if operand is None:
                names.append("")
            elif isinstance(operand, Value):
                names.append(operand.name)
            else:
                names.append(self.table(operand).name if isinstance(operand, list) else
                             self.table(float(operand), self.type).name)
        made = ["" if output == "-" else self.name("v") for output in outputs]
        self.nodes.append(onnx.node(op, names, made, f"/{op}_{self.count}", domain, **attributes))
        values = [Value(self, name) for name in made if name]
        return values[0] if len(values) == 1 else values

    def result(self, *values):
        """Outputs declare no shape: the importer computes it."""
        self.outputs += [[(1, v.name), (2, [(1, [(1, self.type)])])] for v in values]

    def save(self, path):
        onnx.save(path, onnx.model(onnx.graph(self.nodes, self.inputs, self.outputs, self.initializers), self.opset,
                                   opsets=[("com.microsoft", 1)]))


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise ValueError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def compare(path, tolerance):
    """The imported program and the raised one as two functions of one module."""
    imported, raised, both = (f"{path}.{part}.mlir" for part in ("imported", "raised", "both"))
    run("partita", "import", f"{path}.onnx", "-o", imported)
    text = run("partita-opt", imported)
    after = run("partita-opt", imported, f"--pass-pipeline={RAISE}")
    function = re.search(r"  func\.func @forward.*?\n  }\n", after, re.S).group(0)
    with open(both, "w") as file:
        file.write(text.rstrip().removesuffix("}") + function.replace("@forward", "@after") + "}\n")
    run("partita-interp", both, "--equal", "forward,after", "--init", "file", "--tolerance", tolerance)


def run_case(name, text, folder):
    path = os.path.join(folder, name)
    graph = Graph()
    scope = {key: getattr(graph, key) for key in ("settings", "input", "weight", "table", "node", "result")}
    scope.update({key: getattr(onnx, key) for key in ("FLOAT", "FLOAT16", "INT64", "BOOL", "DOUBLE")})
    for op in re.findall(r"\b([A-Z]\w+)\(", text):
        scope[op] = functools.partial(graph.node, op)
    exec(compile(text, name, "exec"), scope)
    graph.save(path + ".onnx")
    report = run("partita", "import", path + ".onnx", "--report")
    found = re.search(r"^raised: (.*)$", report, re.M).group(1)
    wanted = re.findall(r"^# RAISED: (.*)$", text, re.M)
    if [found] != wanted:
        raise ValueError(f"expected to raise {wanted}, got\n{report}")
    near, told = re.findall(r"^# NEAR: (.*)$", text, re.M), re.findall(r"^  '.*': (.*)$", report, re.M)
    if len(near) != len(told) or any(part not in line for part, line in zip(near, told)):
        raise ValueError(f"expected to be told {near}, got\n{report}")
    tolerance = re.findall(r"^# TOLERANCE: (.*)$", text, re.M)
    if tolerance != ["none"]:
        compare(path, tolerance[0] if tolerance else "3e-7")


def main():
    file, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    with open(file) as opened:
        sections = re.split(r"^//--- (\S+)\n", opened.read(), flags=re.M)[1:]
    failed = 0
    for name, text in zip(sections[::2], sections[1::2]):
        try:
            run_case(name, text, folder)
        except (ValueError, AttributeError) as error:
            failed += 1
            print(f"{name}: {error}")
    print(f"{len(sections) // 2} spellings, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
