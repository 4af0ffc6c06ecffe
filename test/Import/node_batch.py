"""Runs a batch of ONNX's node tests: one model of many independent nodes, and what each must yield.

A batch is NAME.onnx and NAME.npz, made by tools/python/onnx_node_tests.py. The archive holds `cases`,
JSON: for every case the shapes of its inputs, element types and shapes of its outputs, and the tolerances
of ONNX's own runner; and `numbers`, all their elements in that order, in double precision. A case's
values are named CASE/VALUE in the model.

usage: node_batch.py PARTITA PARTITA_INTERP BATCH.onnx FOLDER    (numpy is all it needs)
"""
import json
import os
import subprocess
import sys

import numpy


class Refused(Exception):
    """The compiler said that it does not do this."""


class Crashed(Exception):
    """A program died, hung, or failed without saying why."""


def call(command, seconds=120):
    """Standard error; Refused when the program exits with 1 and says why."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Crashed(f"no end after {seconds} s")
    text = done.stderr.decode(errors="backslashreplace").strip()
    if done.returncode == 1 and text:
        raise Refused(text)
    if done.returncode != 0:
        raise Crashed(f"exit code {done.returncode}: {text[-300:]}")
    return text


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    types = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "BOOL": "?"}
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        array = numpy.frombuffer(data[8 + size + begin:8 + size + end], types[entry["dtype"]])
        tensors[name] = array.reshape(entry["shape"])
    return tensors


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


def interpret(partita, interp, model, values, inputs, folder):
    """Imports and executes a model: its results by name."""
    module, numbers, results = (os.path.join(folder, name) for name in ("model.mlir", "numbers", "results"))
    call([partita, "import", model, "-o", module])
    with open(numbers, "w") as file:
        for name in inputs:
            file.write(" ".join(repr(n) for n in values[name].reshape(-1).tolist()) + "\n")
    call([interp, module, "--entry", "forward", "--init", "file", "--inputs", numbers, "--results", results])
    return read_safetensors(results)


def read_archive(path):
    """The cases, and the values of all inputs and outputs by name."""
    archive, values, at = numpy.load(path), {}, 0
    cases, numbers = json.loads(str(archive["cases"])), archive["numbers"]
    for case in cases:
        for name, shape in list(case["inputs"].items()) + [(n, s) for n, (_, s) in case["outputs"].items()]:
            size = int(numpy.prod(shape))
            values[name] = numbers[at:at + size].reshape(shape)
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


def main():
    partita, interp, model, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    cases, values = read_archive(model[:-5] + ".npz")
    inputs = [name for case in cases for name in case["inputs"]]
    try:
        verdicts = judge(cases, values, interpret(partita, interp, model, values, inputs, folder))
    except (Refused, Crashed) as problem:
        sys.exit(f"{os.path.basename(model)}: {problem}")
    wrong = {case: verdict for case, verdict in verdicts.items() if verdict}
    for case, verdict in wrong.items():
        print(f"{case}: {verdict}")
    print(f"{os.path.basename(model)}: {len(cases) - len(wrong)} of {len(cases)} cases passed")
    sys.exit(1 if wrong or not cases else 0)


if __name__ == "__main__":
    main()
