#!/usr/bin/env python3
"""Compiled programs of the models of test/Data/families and test/Data/further on several ranks against one rank, in float32.

    try_meshes.py [--meshes "tp=2 tp=4 dp=2,tp=2"] [--work DIR] [FAMILY...]

Each family (PyTorch's newer exporter) trains three steps of SGD on one rank, and on every mesh with and without sequence
parallelism: its losses, every gradient of the first step and every parameter afterwards must be those of one rank to
1e-5, and the ranks as processes of MPI must give the threads' bits. The error is max|a-b| / max(max|b|, 1e-3 x the
largest of its kind); a gradient that is zero in mathematics (a key bias's) is rounding alone, and as such compared with
the largest of all: one below 2^-23 of it. A mesh that a model cannot have is told with the compiler's reason. Needs numpy, MPI and partita
in the PATH; prints a table, exit code 1 when anything differs.
"""
import argparse
import csv
import os
import subprocess
import sys
import tempfile

import numpy
from family_models import inputs, objective, training_options
from try_goldens import MODELS, ROOT, Failed, family_files, run

sys.path.insert(0, os.path.join(ROOT, "test", "EndToEnd", "Inputs"))
import checkpoints  # noqa: E402

TOLERANCE = 1e-5
ROUNDING = 2.0 ** -23  # of float32
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np"]


def models(folder):
    """Returns the models that PyTorch's newer exporter has written there."""
    return sorted(name.removesuffix("_dynamo.onnx") for name in os.listdir(folder) if name.endswith("_dynamo.onnx"))


def worst(found, expected):
    if found.keys() != expected.keys():
        raise Failed(f"other tensors: {sorted(found.keys() ^ expected.keys())[:3]}")
    size = {name: numpy.abs(value).max(initial=0) for name, value in expected.items()}
    largest = max(size.values())
    return max(numpy.abs(found[name] - value).max(initial=0) /
               (largest if size[name] < ROUNDING * largest else max(size[name], 1e-3 * largest))
               for name, value in expected.items())


def ranks(mesh):
    return str(numpy.prod([int(part.split("=")[1]) for part in mesh.split(",")]))


FURTHER = os.path.join(os.path.dirname(MODELS), "further")
BATCH, SEQUENCE, HIDDEN, LABELS = 4, 8, 32, 5


def further_data(name):
    """Makes three batches for a model of `further`, which has no goldens."""
    generator = numpy.random.default_rng(11)
    rows = 3 * BATCH
    columns = {"input_ids": generator.integers(2, 64, (rows, SEQUENCE))}
    if "attention_mask" in inputs(name):
        columns["attention_mask"] = numpy.ones((rows, SEQUENCE), numpy.int64)
    kind = objective(name)
    if kind == "classification":
        columns["labels"] = generator.integers(0, LABELS, (rows,))
    if kind == "masked":
        columns["labels"] = generator.integers(0, 64, (rows, SEQUENCE))
    if kind == "mse":
        columns["labels"] = generator.normal(size=(rows, HIDDEN)).astype(numpy.float32)
    return columns


class Family:
    def __init__(self, name, folder):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)
        if name in models(MODELS):
            self.model, self.init = os.path.join(MODELS, f"{name}_dynamo.onnx"), self.path("weights.safetensors")
            family_files.make(family_files.load(name), folder)
            self.options = [word for file in ("dims", "options") for word in open(self.path(file)).read().split()]
        else:
            self.model, self.init = os.path.join(FURTHER, f"{name}_dynamo.onnx"), "seed:3"
            family_files.write_safetensors(self.path("data.safetensors"), further_data(name))
            self.options = [*training_options(name, batch=BATCH, sequence=SEQUENCE), "--optimizer", "sgd", "--lr", "0.1"]
        self.train("dp=1", "one", [])
        self.expected = self.results("one")

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, mesh, name, options, launcher=()):
        if not launcher:
            run("partita", "compile", self.model, *self.options, "--mesh", mesh, *options,
                "-o", self.path(name))
        run(*launcher, "partita", "run", self.path(name), *([] if launcher else ["-n", ranks(mesh)]), "--data",
            self.path("data.safetensors"), "--init", self.init, "--steps", "3", "--lr", "0.1",
            "--log", self.path(name + ".csv"), "--grads", self.path(name + ".grads"),
            "--checkpoint", self.path(name + ".checkpoint"), "--overwrite")

    def results(self, name):
        with open(self.path(name + ".csv"), newline="") as file:
            losses = {row["step"]: numpy.array(float(row["loss"])) for row in csv.DictReader(file)}
        checkpoint, _ = checkpoints.read(self.path(name + ".checkpoint"))
        return losses, family_files.read_safetensors(self.path(name + ".grads")), checkpoint

    def same_bits(self, name):
        with open(self.path(name + ".grads"), "rb") as threads, open(self.path(name + ".mpi.grads"), "rb") as processes:
            if threads.read() != processes.read():
                raise Failed("gradients: processes and threads differ")
        difference = checkpoints.same(*(checkpoints.read(self.path(name + end)) for end in (".checkpoint", ".mpi.checkpoint")))
        if difference:
            raise Failed(f"checkpoints: processes and threads differ in {difference}")

    def compare(self, mesh, options):
        """Returns the max error, or why the model cannot be split this way."""
        try:
            self.train(mesh, "several", options)
        except Failed as failure:
            if "compile" not in str(failure):
                raise
            return str(failure)
        subprocess.run(["ln", "-sfn", self.path("several"), self.path("several.mpi")], check=True)
        self.train(mesh, "several.mpi", options, MPIRUN + [ranks(mesh)])
        self.same_bits("several")
        return max(worst(a, b) for a, b in zip(self.results("several"), self.expected))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--meshes", default="tp=2 tp=4 dp=2,tp=2")
    parser.add_argument("--work", metavar="DIR")
    args = parser.parse_args()
    known = models(MODELS) + models(FURTHER)
    for name in args.families:
        if name not in known:
            parser.error(f"no family '{name}', there are {', '.join(known)}")
    columns = [(mesh, options) for mesh in args.meshes.split() for options in ([], ["--sequence-parallel"])]
    print("| family | " + " | ".join(" ".join([mesh, *options]) for mesh, options in columns) + " |")
    print("|---" * (1 + len(columns)) + "|", flush=True)
    differs, notes = False, []
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.families or known:
            family, cells = Family(name, os.path.join(args.work or scratch, name)), []
            for mesh, options in columns:
                try:
                    result = family.compare(mesh, options)
                except Failed as failure:
                    result, differs = "wrong", True
                    notes.append(f"{name} {mesh} {' '.join(options)}: {failure}")
                if isinstance(result, str) and result != "wrong":
                    notes.append(f"{name} {mesh} {' '.join(options)}: {result}")
                    result = "refused"
                elif not isinstance(result, str):
                    differs |= not result <= TOLERANCE
                    result = f"{result:.1e}"
                cells.append(result)
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
    for note in notes:
        print(note)
    sys.exit(differs)


if __name__ == "__main__":
    main()
