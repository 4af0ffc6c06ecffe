"""Lookups by indices that are positions along dimensions: each must be what numpy computes, and none may stay a
lookup. Others, which only look alike, must stay right.

usage: grids.py PARTITA PARTITA_INTERP FOLDER
"""
import os
import subprocess
import sys

import numpy

import node_batch
from onnx_writer import FLOAT, INT32, INT64, graph, ints, int64s, model, node, save, tensor, value

A = numpy.arange


def tuples(*columns):
    """Columns that broadcast as numpy's, as the last dimension."""
    return numpy.stack(numpy.broadcast_arrays(*columns), -1)


# name: operator, attributes, shape of the data, indices. Of a scatter the updates follow from these.
BOXES = {
    "itself": ("GatherND", {}, (3, 5), tuples(A(3)[:, None], A(5))),
    "as-a-mask": ("GatherND", {}, (3, 5), tuples(A(3)[:, None, None, None], A(5))),
    "turned": ("GatherND", {}, (3, 5), tuples(A(3), A(5)[:, None])),
    "repeated": ("GatherND", {}, (3, 5), tuples(A(3)[:, None, None], numpy.zeros((1, 4, 1), int), A(5))[..., [0, 2]]),
    "part": ("GatherND", {}, (3, 5, 2), tuples(A(1, 3)[:, None], A(1, 4))),
    "first-of-each": ("GatherND", {}, (3, 5, 2), tuples(A(3), 0 * A(3))),
    "last-of-each": ("GatherND", {}, (3, 5, 2), tuples(A(3), 0 * A(3) - 1)),
    "from-the-end": ("GatherND", {}, (3, 5), tuples(A(3)[:, None], A(5) - 5)),
    "in-one-row": ("GatherND", {}, (3, 5), tuples(A(3)[:, None], A(5)).reshape(-1, 2)),
    "every-second": ("GatherND", {}, (3, 6), tuples(A(3)[:, None], A(0, 6, 2))),
    "batched": ("GatherND", {"batch_dims": 1}, (3, 5, 2), numpy.broadcast_to(A(1, 4)[:, None], (3, 3, 1))),
    "flat": ("Gather", {"axis": 0}, (15,), A(3)[:, None, None, None] * 5 + A(5)),
    "flat-part": ("Gather", {"axis": 0}, (15, 2), A(3)[:, None] * 5 + A(1, 3)),
    "flat-turned": ("Gather", {"axis": 0}, (15,), A(5)[:, None] + A(3) * 5),
    "axis": ("Gather", {"axis": 1}, (2, 6, 3), A(2)[:, None] * 3 + A(3)),
    "strided": ("Gather", {"axis": 1}, (2, 7, 3), A(1, 7, 2)),
    "pairs": ("Gather", {"axis": 0}, (4, 3), A(8) // 2),
    "elements": ("GatherElements", {"axis": 1}, (3, 5), numpy.broadcast_to(A(5), (3, 5))),
    "elements-part": ("GatherElements", {"axis": 1}, (3, 5, 2), numpy.broadcast_to(A(1, 4)[:, None], (2, 3, 2))),
    "elements-first": ("GatherElements", {"axis": 0}, (3, 5), numpy.broadcast_to(A(3)[:, None], (3, 4))),
    "write": ("ScatterND", {}, (3, 5), tuples(A(3)[:, None], A(1, 4))),
    "write-turned": ("ScatterND", {}, (3, 5, 2), tuples(A(3), A(1, 4)[:, None])),
    "write-all": ("ScatterND", {}, (3, 5), tuples(A(3)[:, None], A(5))),
    "write-row": ("ScatterND", {}, (3, 5), tuples(A(2, 3))),
    "add": ("ScatterND", {"reduction": "add"}, (3, 5), tuples(A(1, 3)[:, None], A(5))),
    "write-elements": ("ScatterElements", {"axis": 1}, (3, 5), numpy.broadcast_to(A(1, 4), (3, 3))),
    "multiply-elements": ("ScatterElements", {"axis": 0, "reduction": "mul"}, (4, 3), numpy.broadcast_to(A(2)[:, None] - 2, (2, 3))),
}
LOOKUPS = {
    "diagonal": ("GatherND", {}, (4, 4), tuples(A(4), A(4))),
    "backwards": ("Gather", {"axis": 0}, (5, 2), A(4, -1, -1)),
    "both-ends": ("Gather", {"axis": 0}, (6,), A(4) - 2),
    "crossing": ("Gather", {"axis": 0}, (15,), A(2)[:, None] * 5 + A(3, 6)),
    "overlapping": ("Gather", {"axis": 0}, (9,), A(4)[:, None] * 2 + A(3)),
    "unordered": ("Gather", {"axis": 1}, (2, 4), numpy.array([0, 2, 1, 3])),
    "write-diagonal": ("ScatterND", {}, (4, 4), tuples(A(4), A(4))),
    "write-strided": ("ScatterElements", {"axis": 1}, (2, 6), numpy.broadcast_to(A(0, 6, 2), (2, 3))),
    "add-twice": ("ScatterND", {"reduction": "add"}, (3, 2), numpy.array([[1], [1]])),
}


def expected(op, attributes, data, indices, updates):
    if op == "Gather":
        return numpy.take(data, indices, attributes["axis"])
    if op == "GatherND":
        batch = attributes.get("batch_dims", 0)
        lead = tuple(A(n).reshape([-1 if i == d else 1 for i in range(indices.ndim - 1)])
                     for d, n in enumerate(data.shape[:batch]))
        return data[lead + tuple(numpy.moveaxis(indices, -1, 0))]
    if op == "GatherElements":
        at = list(numpy.indices(indices.shape))
        at[attributes["axis"]] = indices
        return data[tuple(at)]
    at = tuple(numpy.moveaxis(indices, -1, 0))
    if op == "ScatterElements":
        at = list(numpy.indices(indices.shape))
        at[attributes["axis"]] = indices
        at = tuple(at)
    result = data.copy()
    {"none": result.__setitem__, "add": lambda i, u: numpy.add.at(result, i, u),
     "mul": lambda i, u: numpy.multiply.at(result, i, u)}[attributes.get("reduction", "none")](at, updates)
    return result


def build(cases, path):
    """The model of all cases; its inputs and what it must yield."""
    random, nodes, inputs, outputs, known, values, results = numpy.random.RandomState(1), [], [], [], [], {}, {}
    for number, (name, (op, attributes, shape, indices)) in enumerate(cases.items()):
        data = random.standard_normal(shape)
        names = [f"{name}.x", f"{name}.i"]
        values[names[0]] = data
        inputs.append(value(names[0], FLOAT, shape))
        kind, raw = (INT32, numpy.asarray(indices, "<i4")) if number % 2 else (INT64, numpy.asarray(indices, "<i8"))
        if op == "ScatterND":
            kind, raw = INT64, numpy.asarray(indices, "<i8")
        known.append(tensor(names[1], kind, indices.shape, raw.tobytes()))
        updates = None
        if op.startswith("Scatter"):
            width = data.shape[indices.shape[-1]:] if op == "ScatterND" else ()
            updates = random.standard_normal((indices.shape[:-1] if op == "ScatterND" else indices.shape) + width)
            values[f"{name}.u"] = updates
            inputs.append(value(f"{name}.u", FLOAT, updates.shape))
            names.append(f"{name}.u")
        nodes.append(node(op, names, [f"{name}.y"], f"/{name}", **attributes))
        results[f"{name}.y"] = expected(op, attributes, data, indices, updates)
        outputs.append(value(f"{name}.y", FLOAT, results[f"{name}.y"].shape))
    save(path, model(graph(nodes, inputs, outputs, known), 18))
    return values, results


def build_large(path, b=8, s=3000):
    """Indices of too many elements to be computed by the importer, in the spellings of both of PyTorch's exporters."""
    known = [tensor("0", INT64, [], int64s([0])), tensor("1", INT64, [], int64s([1])), tensor("b", INT64, [], int64s([b])),
             tensor("s", INT64, [], int64s([s])), ints("rows", [b, 1, 1, 1]), ints("keys", [1, 1, 1, s]), ints("last", [-1]),
             ints("apart", [b, 1, 1, s])]
    nodes = [node("Range", ["0", "b", "1"], ["batch"]), node("Range", ["0", "s", "1"], ["key"]),
             node("Reshape", ["batch", "rows"], ["row"]), node("Reshape", ["key", "keys"], ["column"]),
             node("Expand", ["row", "apart"], ["all rows"]), node("Expand", ["column", "apart"], ["all columns"]),
             node("Unsqueeze", ["all rows", "last"], ["first"]), node("Unsqueeze", ["all columns", "last"], ["second"]),
             node("Concat", ["first", "second"], ["at"], axis=-1), node("GatherND", ["x", "at"], ["nd"]),
             node("Flatten", ["x"], ["flat"], axis=2), node("Mul", ["row", "s"], ["start"]),
             node("Add", ["start", "column"], ["position"]), node("Less", ["position", "0"], ["below"]),
             node("Mul", ["b", "s"], ["size"]), node("Add", ["position", "size"], ["wrapped"]),
             node("Where", ["below", "wrapped", "position"], ["safe"]), node("Reshape", ["flat", "last"], ["row of all"]),
             node("Gather", ["row of all", "safe"], ["flattened"])]
    shape = [b, 1, 1, s]
    save(path, model(graph(nodes, [value("x", FLOAT, [b, s])], [value("nd", FLOAT, shape), value("flattened", FLOAT, shape)],
                           known), 18))
    x = numpy.random.RandomState(2).standard_normal((b, s))
    return {"x": x}, {"nd": x.reshape(shape), "flattened": x.reshape(shape)}


def main():
    partita, interp, folder = sys.argv[1:]
    tools, wrong = node_batch.Tools(partita, interp, folder), []
    for name, make in (("boxes", lambda path: build(BOXES, path)), ("lookups", lambda path: build(LOOKUPS, path)),
                       ("large", build_large)):
        path = os.path.join(folder, name + ".onnx")
        values, results = make(path)
        tools.load(path)
        found = tools.interpreted(values)
        for key, result in results.items():
            if found[key].shape != result.shape or not numpy.allclose(found[key], result, 1e-12, 1e-12):
                wrong.append(f"{key} is not what numpy computes")
        text = subprocess.run([partita, "import", path], capture_output=True, text=True, check=True).stdout
        for lookup in ("tx.embedding", "tx.take", "tx.equal"):
            if name != "lookups" and lookup in text:
                wrong.append(f"{name}: " + next(line for line in text.splitlines() if lookup in line).strip())
    sys.exit("\n".join(wrong) or 0)


if __name__ == "__main__":
    main()
