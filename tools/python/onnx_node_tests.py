#!/usr/bin/env python3
"""Sends ONNX's own backend node tests, and cases of onnxruntime's operators (onnxruntime_cases.py),
through the importer, the interpreter and the compiled program and says, operator by operator, how many
pass, how many are refused and why. Needs an environment of make_venv, or, for --data with --interpret-only, the
packages python3-onnx and python3-numpy.

    onnx_node_tests.py --build build --table lib/Import/OPERATORS.md     the published table
    onnx_node_tests.py --build build --filter softmax -v                 some cases, each named
    onnx_node_tests.py --build build --subset test/Import/Nodes          what ./check runs, compiled too
    onnx_node_tests.py --build build --data DIR --interpret-only         all cases of another version of ONNX

Inputs that determine shapes are bound as initializers. Every case is imported alone, so that a refusal
is its own; those that import are joined, by opset, into models of many independent nodes, which are
interpreted, compiled and run as one; what goes wrong with many is narrowed down by halving. Exit code 1
when a case fails that is not refused: a wrong result, a crash, a hang.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import sys
import tempfile
import zipfile

import numpy
import onnx
import onnx.backend.test
from onnx import helper, numpy_helper

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "..", "test", "Import"))
import node_batch
from node_batch import Crashed, Refused

DATA = os.path.join(os.path.dirname(onnx.backend.test.__file__), "data", "node")

# Inputs that determine the result's shape, or where elements go: known when a model is exported.
REST = 99
SHAPES = {
    "Reshape": [1], "Expand": [1], "Tile": [1], "ConstantOfShape": [0], "Range": [0, 1, 2], "Slice": [1, 2, 3, 4],
    "Split": [1], "Squeeze": [1], "Unsqueeze": [1], "Pad": [1, 3], "CumSum": [1], "Trilu": [1], "TopK": [1],
    "OneHot": [1], "Dropout": [1, 2], "CenterCropPad": [1], "Resize": [1, 2, 3], "Upsample": [1], "DFT": [1, 2],
    "If": [0], "Loop": [0, 1], "BlackmanWindow": [0], "HannWindow": [0], "HammingWindow": [0], "AffineGrid": [1],
    "MelWeightMatrix": [0, 1, 2, 3, 4], "NonMaxSuppression": [2, 3, 4], "STFT": [1, 3], "SplitToSequence": [1],
    **{"Reduce" + kind: [1] for kind in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()},
}
DTYPES = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.DOUBLE: "float64", onnx.TensorProto.FLOAT16: "float16",
          onnx.TensorProto.BFLOAT16: "bfloat16", onnx.TensorProto.INT32: "int32", onnx.TensorProto.INT64: "int64",
          onnx.TensorProto.BOOL: "bool", onnx.TensorProto.INT8: "int8", onnx.TensorProto.INT16: "int16",
          onnx.TensorProto.UINT8: "uint8", onnx.TensorProto.UINT16: "uint16", onnx.TensorProto.UINT32: "uint32",
          onnx.TensorProto.UINT64: "uint64"}


class Case:
    """One test: its model with the shapes bound, its inputs' values, the expected outputs."""

    def __init__(self, name, model):
        self.name, self.model = name, model
        self.rtol, self.atol = 1e-3, 1e-7  # ONNX's own
        self.verdict = None  # "passed", "refused", "failed", "crashed"
        self.reason = ""
        self.passed = set()  # of node_batch.WAYS
        self.values, self.outputs, self.dtypes = {}, {}, {}

    @staticmethod
    def of_onnx(folder):
        case = Case(os.path.basename(folder)[len("test_"):], onnx.load(os.path.join(folder, "model.onnx")))
        settings = os.path.join(folder, "data.json")
        if os.path.exists(settings):
            with open(settings) as file:
                data = json.load(file)
            case.rtol, case.atol = data.get("rtol", case.rtol), data.get("atol", case.atol)
        if case.has_tensors():
            read = lambda name: onnx.load_tensor(os.path.join(folder, "test_data_set_0", name))  # noqa: E731
            case.bind(lambda i: read(f"input_{i}.pb"), lambda i: read(f"output_{i}.pb"))
        return case

    @staticmethod
    def of_test(test):
        """Newer versions of onnx (1.23) make the tests on request, and install no files."""
        case = Case(test.name[len("test_"):], onnx.ModelProto())
        case.model.CopyFrom(test.model)
        case.rtol, case.atol = test.rtol, test.atol
        if case.has_tensors():
            inputs, outputs = test.data_sets[0]
            case.bind(lambda i: tensor_of(inputs[i]), lambda i: tensor_of(outputs[i]))
        return case

    @staticmethod
    def of_onnxruntime(name, model, inputs, results):
        case = Case(name, model)
        case.rtol, case.atol = 1e-4, 1e-5  # onnxruntime computes in single precision
        case.values = {key: wide(numpy_helper.from_array(value)) for key, value in inputs.items()}
        for key, value in results.items():
            tensor = numpy_helper.from_array(value)
            case.outputs[key], case.dtypes[key] = wide(tensor), DTYPES[tensor.data_type]
        return case

    def has_tensors(self):
        graph = self.model.graph
        return all(v.type.HasField("tensor_type") and v.type.tensor_type.elem_type in DTYPES
                   for v in list(graph.input) + list(graph.output))

    def bind(self, input_at, output_at):
        graph = self.model.graph
        bound = {node.input[i] for node in graph.node for i in SHAPES.get(node.op_type, [])
                 if i < len(node.input)}
        for i, value in reversed(list(enumerate(graph.input))):
            tensor = input_at(i)
            if value.name in bound:
                tensor.name = value.name
                graph.initializer.append(tensor)
                del graph.input[i]
            else:
                self.values[value.name] = wide(tensor)
        for i, value in enumerate(graph.output):
            if not value.name:
                continue
            tensor = output_at(i)
            self.outputs[value.name] = wide(tensor)
            self.dtypes[value.name] = DTYPES[tensor.data_type]

    def inputs(self):
        return [value.name for value in self.model.graph.input]

    def opsets(self):
        return tuple(sorted((each.domain, each.version) for each in self.model.opset_import))

    def prefixed(self, values):
        return {f"{self.name}/{name}": value for name, value in values.items()}

    def entry(self):
        inputs = {name: [str(self.values[name].dtype), list(self.values[name].shape)] for name in self.inputs()}
        outputs = {name: [dtype, list(self.outputs[name].shape)] for name, dtype in self.dtypes.items()}
        rtol = max(self.rtol, 2**-6) if "bfloat16" in self.dtypes.values() else self.rtol  # as onnx 1.23's own runner
        return {"name": self.name, "inputs": self.prefixed(inputs), "outputs": self.prefixed(outputs),
                "rtol": rtol, "atol": self.atol}


def tensor_of(value):
    return value if isinstance(value, onnx.TensorProto) else numpy_helper.from_array(value)


def has_bfloat16(case):
    graph = case.model.graph
    return any(value.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16
               for value in list(graph.input) + list(graph.output))


def is_random(case):
    """Are its outputs random numbers, which differ in every implementation?"""
    dropouts = [node for node in case.model.graph.node if node.op_type == "Dropout" and case.values]
    return any(not numpy.array_equal(case.values[node.input[0]], case.outputs[node.output[0]]) for node in dropouts)


def wide(tensor):
    array = numpy_helper.to_array(tensor)
    return array.astype(numpy.float64 if DTYPES[tensor.data_type].endswith(("16", "32", "64"))
                        and "int" not in DTYPES[tensor.data_type] else numpy.int64)


def prefixed(graph, prefix, outer=()):
    """Returns the graph with every value's name prefixed by `prefix`."""
    def rename(name):
        return prefix + name if name else name
    for node in graph.node:
        node.name = prefix + (node.name or node.op_type)
        for names in (node.input, node.output):
            names[:] = [rename(name) for name in names]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                prefixed(attribute.g, prefix)
    for value in list(graph.input) + list(graph.output) + list(graph.initializer):
        value.name = rename(value.name)
    del graph.value_info[:]
    return graph


def join(cases):
    """Joins all the cases, which have the same opsets, into one model."""
    graph = onnx.GraphProto(name="nodes")
    for case in cases:
        part = onnx.GraphProto()
        part.CopyFrom(case.model.graph)
        prefixed(part, case.name + "/")
        del part.output[:]
        part.output.extend(value for value in case.model.graph.output if value.name)
        for value in part.output:
            value.name = f"{case.name}/{value.name}"
        graph.node.extend(part.node)
        graph.input.extend(part.input)
        graph.output.extend(part.output)
        graph.initializer.extend(part.initializer)
    opsets = [helper.make_opsetid(*each) for each in cases[0].opsets()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="onnx_node_tests")


def values_of(cases):
    return {key: value for case in cases for key, value in case.prefixed({**case.values, **case.outputs}).items()}


def archive(cases):
    """Makes the archive that node_batch.read_archive reads."""
    entries, values = [case.entry() for case in cases], values_of(cases)
    names = [name for entry in entries for name in list(entry["inputs"]) + list(entry["outputs"])]
    numbers = [numpy.asarray(values[name], numpy.float64).reshape(-1) for name in names]
    return {"cases": json.dumps(entries, separators=(",", ":")), "numbers": numpy.concatenate(numbers)}


class Runner:
    def __init__(self, build, folder, ways=tuple(node_batch.WAYS)):
        self.ways = ways
        self.partita = os.path.join(build, "bin", "partita")
        self.interp = os.path.join(build, "bin", "partita-interp")
        self.folder = folder

    def import_alone(self, case):
        path = os.path.join(self.folder, case.name + ".onnx")
        onnx.save(case.model, path)
        try:
            node_batch.call([self.partita, "import", path, "-o", path + ".mlir"], 60)
        except Refused as refusal:
            case.verdict, case.reason = "refused", str(refusal)
        except Crashed as crash:
            case.verdict, case.reason = "crashed", str(crash)

    def run_together(self, cases, ways=None):
        """Runs the cases as one model; finds one that cannot be run by halving."""
        ways = ways or self.ways
        name = "_".join(("batch", cases[0].name, str(len(cases)), ways[0]))
        tools = node_batch.Tools(self.partita, self.interp, os.path.join(self.folder, name))
        model = os.path.join(self.folder, name + ".onnx")
        onnx.save(join(cases), model)
        values = values_of(cases)
        inputs = {key: values[key] for case in cases for key in case.entry()["inputs"]}
        done = 0
        try:
            tools.load(model)
            for way in ways:
                self.judge(cases, values, way, node_batch.WAYS[way](tools, inputs))
                done += 1
        except (Refused, Crashed) as problem:
            rest = ways[done:]
            if len(cases) > 1:
                self.run_together(cases[:len(cases) // 2], rest)
                self.run_together(cases[len(cases) // 2:], rest)
            elif not cases[0].reason:
                kind = "crashed" if isinstance(problem, Crashed) else "refused" if rest == ("compiled",) else "failed"
                cases[0].verdict, cases[0].reason = kind, str(problem)

    @staticmethod
    def judge(cases, values, way, results):
        verdicts = node_batch.judge([case.entry() for case in cases], values, results)
        for case in cases:
            if verdicts[case.name] is None:
                case.passed.add(way)
            elif not case.reason:
                case.verdict, case.reason = "failed", f"{way}: {verdicts[case.name]}"

    def run(self, cases):
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(self.import_alone, cases))
            groups = collections.defaultdict(list)
            for case in cases:
                if case.verdict is None:
                    groups[case.opsets()].append(case)
            batches = [group[i:i + 64] for group in groups.values() for i in range(0, len(group), 64)]
            list(pool.map(self.run_together, batches))
        for case in cases:
            if case.verdict is None and case.passed == set(self.ways):
                case.verdict = "passed"


def operators(cases):
    """Returns {case name: the operator it tests}. A test's `_expanded` variant defines the operator through other
    operators: it counts for the operator, on a separate line."""
    own = {}
    for case in cases:
        ops = [(node.domain + "." if node.domain else "") + node.op_type for node in case.model.graph.node]
        own[case.name] = ops[0] if len(set(ops)) == 1 else None
    result = {}
    for case in cases:
        base, expanded, _ = case.name.partition("_expanded")
        op = own.get(base) if expanded else own[case.name]
        if op is None:
            op = next((own[name] for name in own if own[name] and name.startswith(base.split("_")[0])), base)
        result[case.name] = op + (" (as a function's body)" if expanded else "")
    return result


def plain_reason(text):
    """Returns a refusal without the parts that differ from case to case."""
    text = re.sub(r"^.*?error: ", "", text.splitlines()[-1] if text else "")
    text = re.sub(r"^node '.*?' \((\w+)\): ", r"\1: ", text)
    text = re.sub(r"\b(scalar|\d+(x\d+)*) of (\w+)", r"\3", text)
    text = re.sub(r"(?<=\(domain )(\S+), opset (\d+), node '.*?'", r"\1", text)
    text = re.sub(r"^\d+ operators? (is|are) not supported: ", "not supported: ", text)
    text = re.sub(r"; '\w+' comes from .*", "", text)  # what to write instead
    return re.sub(r"'[^']*/([^'/]*)'", r"'\1'", text)


def split_reasons(why):
    """Returns the element types that are refused, and the other reasons, each with its number of cases."""
    types, others = collections.Counter(), collections.Counter()
    for text, count in why.items():
        match = re.search(r"has element type (\w+)|^Cast: to (\w+) is not", text)
        if match:
            types[match[1] or match[2]] += count
        else:
            others[text] += count
    return types, others


def reasons(why):
    """Returns the most frequent reasons, with those that name element types combined."""
    types, others = split_reasons(why)
    texts = [f"{text} ({count})" for text, count in others.most_common(4)]
    if types:
        texts.insert(0, f"element types {', '.join(sorted(types))} ({sum(types.values())})")
    return "; ".join(texts).replace("|", "\\|")


def write_table(path, cases):
    named = operators(cases)
    rows = collections.defaultdict(lambda: {**dict.fromkeys(("passed", "refused", "failed", "crashed"), 0),
                                            "ways": collections.Counter(), "why": collections.Counter()})
    for case in cases:
        row = rows[named[case.name]]
        row[case.verdict] += 1
        row["ways"].update(case.passed)
        if case.verdict != "passed":
            row["why"][plain_reason(case.reason)] += 1
    total = collections.Counter(case.verdict for case in cases)
    with open(path, "w") as file:
        file.write(f"""# ONNX's node tests

Written by `tools/python/onnx_node_tests.py --table` in the environment of `tools/python/make_venv newest` (from PyPI, 4 GB of disk). The cases are the
node tests of onnx {onnx.__version__} and cases of onnxruntime's fused operators, {len(cases)} in all. Each is imported (inputs that
determine shapes as initializers), interpreted in double precision and compiled for the CPU; both outputs are compared with
ONNX's, by ONNX's own tolerances. {total['passed']} pass in both ways, {total['refused']} are refused with a located message, {total['failed']} fail,
{total['crashed']} crash or hang. Cases with random outputs are left out. Operators of which no case passes
are listed at the end. Inputs and outputs that are sequences or optional are refused: those of a
program are tensors, each of one shape. (For sequences inside a model see test/Import/sequences.test.)

`./check` runs all node tests that Debian has (onnx 1.12, opsets up to 17) in the interpreter, and up to four cases of each
operator of this table as compiled programs too.

An operator of the table is supported except for the element types in its last column. One marked *in part* is also not
supported in the other cases that this column names.

| operator | cases | interpreted | compiled | refused | failed | refused because |
|---|---|---|---|---|---|---|
""")
        for op, row in sorted(rows.items()):
            if not row["ways"] and row["failed"] + row["crashed"] == 0:
                continue
            count = sum(row[key] for key in ("passed", "refused", "failed", "crashed"))
            partly = ", *in part*" if split_reasons(row["why"])[1] else ""
            file.write(f"| {op}{partly} | {count} | {row['ways']['interpreted']} | {row['ways']['compiled']} | {row['refused']} "
                       f"| {row['failed'] + row['crashed']} | {reasons(row['why'])} |\n")
        none = [f"{op} ({row['refused']})" for op, row in sorted(rows.items()) if not row["ways"] and row["refused"]]
        file.write("\nRefused in every case: " + ", ".join(none) + ".\n")


def write_subset(folder, cases):
    """Writes, for every operator that passes, up to four small cases, those with different types and options first:
    one model per opset with its data, and all models separately as seeds for the fuzzer."""
    named, chosen, sizes = operators(cases), [], collections.Counter()
    def unlike(case):
        return (tuple(sorted(case.dtypes.values())), len(case.values), tuple(
            sorted((a.name, a.SerializeToString()) for node in case.model.graph.node for a in node.attribute)))
    seen = set()
    for fresh in (True, False):
        for case in sorted(cases, key=lambda each: each.name):
            op = named[case.name]
            numbers = sum(value.size for value in list(case.values.values()) + list(case.outputs.values()))
            if case.verdict != "passed" or "body" in op or numbers > 800 or sizes[op] >= 4 or case in chosen:
                continue
            if fresh == ((op, unlike(case)) not in seen):
                seen.add((op, unlike(case)))
                sizes[op] += 1
                chosen.append(case)
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(os.path.join(folder, "opset*")):
        os.remove(old)
    groups = collections.defaultdict(list)
    for case in chosen:
        groups[case.opsets()].append(case)
    for opsets, group in groups.items():
        name = "opset" + "_".join(f"{domain.split('.')[-1]}{version}" for domain, version in opsets)
        onnx.save(join(group), os.path.join(folder, name + ".onnx"))
        numpy.savez_compressed(os.path.join(folder, name + ".npz"), **archive(group))
    with zipfile.ZipFile(os.path.join(folder, "models.zip"), "w", zipfile.ZIP_DEFLATED, compresslevel=9) as seeds:
        for case in chosen:
            entry = zipfile.ZipInfo(case.name + ".onnx")  # without a date, so that the bytes are the same every time
            entry.compress_type = zipfile.ZIP_DEFLATED
            seeds.writestr(entry, case.model.SerializeToString())
    print(f"{len(chosen)} cases of {len(sizes)} operators in {len(groups)} batches")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build")
    parser.add_argument("--filter", default="", help="a regular expression that the names of cases match")
    parser.add_argument("--table", help="write the table here")
    parser.add_argument("--subset", help="write batches for test/Import/node-tests.test to this folder")
    parser.add_argument("--data", help="folder of ONNX's node tests, and of no others; default: the installed onnx's")
    parser.add_argument("--interpret-only", action="store_true", help="do not compile them")
    parser.add_argument("-v", action="store_true", help="every case that does not pass, and why")
    parser.add_argument("--keep", help="folder for the models")
    args = parser.parse_args()
    folders = sorted(glob.glob(os.path.join(args.data or DATA, "test_*")))
    cases = [Case.of_onnx(folder) for folder in folders if re.search(args.filter, os.path.basename(folder)[5:])]
    if not folders and not args.data:
        from onnx.backend.test.loader import load_model_tests
        tests = sorted(load_model_tests(kind="node"), key=lambda test: test.name)
        cases = [Case.of_test(test) for test in tests if re.search(args.filter, test.name[5:])]
    if not args.data:
        import onnxruntime_cases
        cases += [Case.of_onnxruntime(*each) for each in onnxruntime_cases.all_cases()
                  if re.search(args.filter, each[0])]
    cases = [case for case in cases if not is_random(case)]
    if onnx.__version__.startswith("1.12."):  # it truncates them, and stores their bits as uint16
        cases = [case for case in cases if not has_bfloat16(case)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or scratch
        os.makedirs(folder, exist_ok=True)
        Runner(args.build, folder, ("interpreted",) if args.interpret_only else tuple(node_batch.WAYS)).run(cases)
    if args.v:
        for case in cases:
            if case.verdict != "passed":
                print(f"{case.verdict}: {case.name}: {case.reason[-400:]}")
    if args.subset:
        write_subset(args.subset, cases)
    if args.table:
        write_table(args.table, cases)
    counts = collections.Counter(case.verdict for case in cases)
    print(", ".join(f"{counts[key]} {key}" for key in ("passed", "refused", "failed", "crashed")))
    sys.exit(1 if counts["failed"] + counts["crashed"] else 0)


if __name__ == "__main__":
    main()
