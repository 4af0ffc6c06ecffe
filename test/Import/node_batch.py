"""Runs a batch of ONNX's node tests: one model of many independent nodes, and what each must yield.

A batch is NAME.onnx and NAME.npz, made by tools/python/onnx_node_tests.py. The archive holds `cases`,
JSON: for every case the element types and shapes of its inputs (float64 or int64) and of its outputs, and the
tolerances of ONNX's own runner; and `numbers`, all their elements in that order, in double precision. A case's
values are named CASE/VALUE in the model. It is executed in two ways: by the interpreter, in double
precision, and as one compiled program.

usage: node_batch.py PARTITA PARTITA_INTERP FOLDER BATCH.onnx...    (numpy is all it needs)
"""
import json
import os
import subprocess
import sys

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Support"))  # also for tools/python
from tensor_files import read_tensors, write_tensors  # noqa: E402


class Refused(Exception):
    """The compiler said that it does not do this."""


class Crashed(Exception):
    """A program died, hung, or failed without saying why."""


def call(command, seconds=120, may_refuse=True):
    """Runs a program; Refused when it may say no and exits with 1 and a message."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Crashed(f"no end after {seconds} s")
    text = done.stderr.decode(errors="backslashreplace").strip()
    if done.returncode == 1 and text and may_refuse:
        raise Refused(text)
    if done.returncode != 0:
        raise Crashed(f"exit code {done.returncode}: {text[-300:]}")


def rounded(array, dtype):
    """Numbers in double precision as the nearest of an element type, in double precision again."""
    if dtype == "bfloat16":
        bits = numpy.asarray(array, numpy.float32).view(numpy.uint32).astype(numpy.uint64)
        nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
        kept = numpy.isfinite(array)
        return numpy.where(kept, nearest.astype(numpy.uint32).view(numpy.float32), array)
    with numpy.errstate(over="ignore"):
        return numpy.asarray(array).astype(dtype).astype(numpy.float64 if "float" in dtype else numpy.int64)


def difference(found, expected, dtype, rtol, atol):
    """What is wrong with a result, or None."""
    if found is None:
        return "no such result"
    if tuple(found.shape) != tuple(expected.shape):
        return f"shape {list(found.shape)}, expected {list(expected.shape)}"
    found = rounded(found, dtype)
    try:
        numpy.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    except AssertionError:
        with numpy.errstate(invalid="ignore"):
            return f"differs by up to {numpy.nanmax(numpy.abs(found - expected)):.3g}"
    return None


class Tools:
    """Imports a model once and executes it, from a folder of its own: results by name."""

    def __init__(self, partita, interp, folder):
        self.partita, self.interp, self.folder = partita, interp, folder
        os.makedirs(folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def load(self, model):
        call([self.partita, "import", model, "-o", self.path("model.mlir")])

    def interpreted(self, inputs):
        with open(self.path("numbers"), "w") as file:
            for array in inputs.values():
                file.write(" ".join(repr(n) for n in array.reshape(-1).tolist()) + "\n")
        call([self.interp, self.path("model.mlir"), "--entry", "forward", "--init", "file",
              "--inputs", self.path("numbers"), "--results", self.path("interpreted")])
        return read_tensors(self.path("interpreted"))[0]

    def compiled(self, inputs):
        program = self.path("program")
        call([self.partita, "compile", self.path("model.mlir"), "--objective", "none", "--no-build", "-o", program])
        call(["make", "-s", "-C", program], 600, may_refuse=False)
        write_tensors(self.path("data.safetensors"), inputs)
        data = ["--data", self.path("data.safetensors")] if inputs else []
        call([self.partita, "run", program, *data, "--forward", self.path("compiled")], may_refuse=False)
        return read_tensors(self.path("compiled"))[0]


WAYS = {"interpreted": Tools.interpreted, "compiled": Tools.compiled}


def read_archive(path):
    """The cases, and the values of all inputs and outputs by name."""
    archive, values, at = numpy.load(path), {}, 0
    cases, numbers = json.loads(str(archive["cases"])), archive["numbers"]
    for case in cases:
        for name, (dtype, shape) in list(case["inputs"].items()) + list(case["outputs"].items()):
            size = int(numpy.prod(shape))
            values[name] = numbers[at:at + size].reshape(shape).astype("int64" if dtype == "int64" else "float64")
            at += size
    return cases, values


def judge(cases, expected, results):
    """{case: what is wrong with it, or None}"""
    verdicts = {}
    for case in cases:
        wrong = [difference(results.get(name), expected[name], dtype, case["rtol"], case["atol"])
                 for name, (dtype, _) in case["outputs"].items()]
        verdicts[case["name"]] = next((w for w in wrong if w), None)
    return verdicts


def run_batch(tools, model):
    """Prints what is wrong; whether anything is."""
    cases, values = read_archive(model[:-5] + ".npz")
    name, wrong = os.path.basename(model), not cases
    inputs = {key: values[key] for case in cases for key in case["inputs"]}
    tools.load(model)
    for way, execute in WAYS.items():
        verdicts = judge(cases, values, execute(tools, inputs))
        bad = {case: verdict for case, verdict in verdicts.items() if verdict}
        for case, verdict in bad.items():
            print(f"{case}: {verdict}")
        print(f"{name}: {len(cases) - len(bad)} of {len(cases)} cases {way}")
        wrong = wrong or bool(bad)
    return wrong


def main():
    partita, interp, folder, *models = sys.argv[1:]
    failed = not models
    for model in models:
        try:
            failed = run_batch(Tools(partita, interp, folder), model) or failed
        except (Refused, Crashed) as problem:
            sys.exit(f"{os.path.basename(model)}: {problem}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
