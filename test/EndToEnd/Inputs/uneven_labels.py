"""Micro-batches of two samples in which unequal numbers of labels count.

    uneven_labels.py make DATA.safetensors OUT.safetensors     16 labels count in the first, 3 in the second
    uneven_labels.py check FOLDER                              the losses of both, apart and in one step: LOG.csv of each
"""
import csv
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Golden"))
import family_files  # noqa: E402
import numpy  # noqa: E402


def make(data, out):
    columns = {name: column.astype(numpy.int64) for name, column in family_files.read_safetensors(data).items()}
    labels = columns["labels"]
    assert labels.shape == (4, 8)
    labels[:] = columns["input_ids"]
    labels[2, 1:] = labels[3, 2:] = -100
    family_files.write_safetensors(out, columns)


def check(folder):
    def losses(name):
        with open(f"{folder}/{name}.csv") as file:
            return [float(row["loss"]) for row in csv.DictReader(file)]

    (full,), (own,), (added,), (first, second) = map(losses, ("own_full", "own_accumulated", "added_accumulated", "own_micro"))
    close = lambda a, b: abs(a - b) < 1e-5
    assert close(full, (16 * first + 3 * second) / 19) and close(added, full), (first, second, full, added)
    assert close(own, (first + second) / 2) and not close(own, full), (first, second, full, own)
    print("of the model's own loss the mean over micro-batches, of one that the compiler adds the mean over labels")


{"make": make, "check": check}[sys.argv[1]](*sys.argv[2:])
