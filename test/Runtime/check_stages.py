# Checks the steps of the program of stages (stages.cpp), given its parameters before them.
import csv, sys
import numpy
from tensor_files import read_doubles

before, gradients, after, log, steps = sys.argv[1:]
values = read_doubles(before)
sent = read_doubles(gradients)
assert sorted(sent) == sorted(values) == ["columns", "first", "shared"], (sorted(sent), sorted(values))
targets = {"first": [1], "columns": [2], "shared": [1, 3]}
moments, losses = 0, []
for step in range(int(steps)):
    slopes = {name: sum(values[name] - target for target in targets[name]) for name in values}
    losses.append(sum(0.5 * numpy.sum((values[name] - target) ** 2) for name in values for target in targets[name]))
    if step == 0:
        for name in values:
            assert numpy.allclose(sent[name], slopes[name], atol=1e-6), name
    moments = 0.5 * moments + slopes["columns"]
    for name in values:
        values[name] = values[name] - 0.125 * (moments if name == "columns" else slopes[name])
for name, value in read_doubles(after).items():
    assert numpy.allclose(value, values[name], atol=1e-5), name
found = [float(row["loss"]) for row in csv.DictReader(open(log))]
assert numpy.allclose(found, losses, rtol=1e-5), (found, losses)
