#!/usr/bin/env python3
"""Tries what Partita does with the models of test/Data/families: each is imported, verified (two
virtual ranks against one, in double precision), trained for three steps and compared with PyTorch's
losses, logits and every element of every gradient (test/Golden/families.json, families/), and
exported; the exported model is compiled for inference and must give the trained program's logits.
With --onnxruntime that model also runs in onnxruntime, whose logits must be those of both programs.
Needs numpy and partita in the PATH, and for --onnxruntime the environment of make_venv.

    try_goldens.py [--meshes dp=1,dp=2] [--onnxruntime] [--work DIR] [--table docs/families.md] [FAMILY_EXPORTER...]

One line per model; --table replaces the table between the markers of a Markdown file, with the error
of the worst element of a gradient, of all meshes, beside that of PyTorch's float32 (family_files.py
says how it is measured). Exit code 1 when any step of a model fails.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import numpy

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MODELS = os.path.join(ROOT, "test", "Data", "families")
sys.path.insert(0, os.path.join(ROOT, "test", "Golden"))
import family_files  # noqa: E402

STEPS = ["imports", "verifies", "trains", "exports"]
WITH_ONNXRUNTIME = "onnxruntime agrees"
GRADIENTS, PEER = "worst gradient", "PyTorch's own"
LOGITS = 1e-5  # after the round trip through the file, relative to the max


class Failed(Exception):
    pass


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no message"]
        raise Failed(f"{' '.join(command[:2])}: {lines[-1]}")
    return done.stdout


class Attempt:
    def __init__(self, name, work, meshes):
        self.family, self.exporter = name.rsplit("_", 1)
        self.model = os.path.join(MODELS, name + ".onnx")
        self.folder, self.meshes = os.path.join(work, name), meshes
        self.golden, self.gradient_errors = family_files.load(self.family), []
        family_files.make(self.golden, self.folder)
        with open(self.path("options")) as file:
            self.options = file.read().split()
        with open(self.path("dims")) as file:
            self.dims = file.read().split()

    def path(self, name):
        return os.path.join(self.folder, name)

    def imports(self):
        run("partita", "import", self.model, *self.dims, "-o", self.path("model.mlir"))

    def verifies(self):
        run("partita", "verify", self.model, *self.dims, *self.options, "--mesh", "dp=2")

    def start(self, program, mesh, *options):
        run("partita", "run", self.path(program), "-n", mesh.removeprefix("dp="), "--data",
            self.path("data.safetensors"), *options)

    def trains(self):
        for mesh in self.meshes:
            run("partita", "compile", self.model, *self.dims, *self.options, "--mesh", mesh, "-o",
                self.path("program"))
            weights = ["--init", self.path("weights.safetensors")]
            self.start("program", mesh, *weights, "--forward", self.path("logits"))
            self.start("program", mesh, *weights, "--steps", "3", "--log", self.path("log.csv"),
                       "--grads", self.path("grads"), "--checkpoint", self.path("checkpoint"), "--overwrite",
                       "--forward", self.path("trained"))
            losses = family_files.check_losses(self.path("log.csv"), self.golden)
            gradients = family_files.check_gradients(self.path("grads"), self.golden)
            logits = family_files.check_logits(self.path("logits"), self.golden)
            self.gradient_errors.append(gradients)
            if not all(error <= family_files.TOLERANCE for error in (losses, gradients, logits)):
                raise Failed("not what PyTorch computes")

    def exports(self):
        run("partita", "export", self.path("program"), "--checkpoint", self.path("checkpoint"),
            "-o", self.path("trained.onnx"))
        run("partita", "compile", self.path("trained.onnx"), *self.dims, "--objective", "none",
            "--mesh", "dp=1", "-o", self.path("inference"))
        self.start("inference", "dp=1", "--forward", self.path("again"))
        before, after = (family_files.read_safetensors(self.path(name))["logits"]
                         for name in ("trained", "again"))
        error = abs(after - before).max() / abs(before).max()
        print(f"exported: logits differ by {error:.2e}")
        if not error <= LOGITS:
            raise Failed(f"the exported model's logits differ by {error:.2e}")

    def onnxruntime_agrees(self):
        checker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "check_onnxruntime.py")
        for logits in ("trained", "again"):
            print(f"{logits}:", run(sys.executable, checker, self.path("trained.onnx"), self.path(logits),
                                    "--data", self.path("data.safetensors"), "--tolerance",
                                    str(LOGITS)), end="")

    def result(self, steps):
        """Returns {step: "yes" or "no"}, and the max error of a gradient on any mesh; steps after a
        failure are not tried."""
        result = {}
        for step in steps:
            try:
                getattr(self, step.replace(" ", "_"))()
                result[step] = "yes"
            except (Failed, family_files.Differs) as failure:
                print(failure)
                result[step] = "no"
                break
        if self.gradient_errors:
            result[GRADIENTS] = f"{numpy.max(self.gradient_errors):.1e}"
            result[PEER] = f"{self.golden['gradient_error_float32']:.1e}"
        return result


def table(results, steps):
    lines = ["| family | exporter | " + " | ".join(steps) + " |", "|---" * (2 + len(steps)) + "|"]
    for name, result in results.items():
        family, exporter = name.rsplit("_", 1)
        lines.append(f"| {family} | {exporter} | " +
                     " | ".join(result.get(step, "-") for step in steps) + " |")
    return "\n".join(lines) + "\n"


def replace_table(path, text):
    with open(path) as file:
        page = file.read()
    begin, end = "<!-- families -->\n", "<!-- /families -->"
    if begin not in page or end not in page:
        sys.exit(f"{path}: has no place between {begin.strip()} and {end}")
    page = page[:page.index(begin) + len(begin)] + text + page[page.index(end):]
    with open(path, "w") as file:
        file.write(page)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="FAMILY_EXPORTER")
    parser.add_argument("--meshes", default="dp=1,dp=2")
    parser.add_argument("--onnxruntime", action="store_true")
    parser.add_argument("--work", metavar="DIR")
    parser.add_argument("--table", metavar="FILE.md")
    args = parser.parse_args()
    known = sorted(re.sub(r"\.onnx$", "", name) for name in os.listdir(MODELS)
                   if name.endswith(".onnx"))
    for name in args.models:
        if name not in known:
            parser.error(f"no model '{name}', there are {', '.join(known)}")
    results, steps = {}, STEPS + [WITH_ONNXRUNTIME] * args.onnxruntime
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.models or known:
            print(f"== {name}", flush=True)
            results[name] = Attempt(name, args.work or scratch, args.meshes.split(",")).result(steps)
            print(f"{name}: " + ", ".join(f"{step} {word}" for step, word in results[name].items()),
                  flush=True)
    if args.table:
        replace_table(args.table, table(results, [*steps, GRADIENTS, PEER]))
    if any(result.get(step) != "yes" for result in results.values() for step in steps):
        sys.exit(1)


if __name__ == "__main__":
    main()
