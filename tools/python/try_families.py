#!/usr/bin/env python3
"""Tries families of models as users export them: those of family_models.py, with two versions of PyTorch and
Transformers, in four ways, or six. Each export is compiled for one rank and trained for three SGD steps, verified on two
virtual ranks (partita verify), and compiled and trained again on two. Losses, the logits of the trained model and every
parameter that kept its name must equal those of PyTorch in double precision. A cell is

    equal       they are, on one rank and on two
    equal with OPTION   they are with --freeze, --trainable or --tie as a warning of the compiler proposes it
    refused     the compiler reports why it does not compile the file
    no export   the library or PyTorch's exporter fails
    exporter    only the logits differ, and onnxruntime computes ours from the file: the exporter changed the model
    warned      training differs; warnings of the compiler name every tensor that differs after one step and say how to
                export it, compile --warnings-as-errors refuses the file, and the model's unfolded export is equal
    different   training differs otherwise, or something crashes or hangs

    try_families.py --cache DIR [-j N] [--python LABEL=PYTHON]... [--ways WAY,...] [--table docs/families.md] [FAMILY...]

The cache keeps exports and results; a cell is tried again only when the compiler or the export changed. Exporting needs
both environments of make_venv; trying needs numpy, and partita in the PATH. Prints a line per cell; exit code 1 when one
is different.
"""

import argparse
import concurrent.futures
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import numpy

import family_notes
import family_table
from family_models import MATRIX
from family_table import OPSETS, WAYS

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(ROOT, "test", "Golden"))
from family_files import read_safetensors  # noqa: E402

UNFOLDED = {"torchscript_folded": "torchscript", "dynamo": "dynamo_unoptimized"}
MESHES = {"dp=1": "1", "dp=2": "2"}
TOLERANCE = 1e-5  # of the max; or ten times the error of PyTorch in single precision
DIFFERS = 2  # exit code of partita verify
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1",
                   TF_CPP_MIN_LOG_LEVEL="3")


class Stopped(Exception):
    """Ends the trial of a cell, with its outcome and the reason."""

    def __init__(self, outcome, reason):
        super().__init__(reason)
        self.outcome, self.reason = outcome, reason


class Differs(Stopped):
    """Results differ from PyTorch's, but not from the first step on."""

    def __init__(self, reason):
        super().__init__("different", reason)


def python_of(label):
    variable, folder = {"pinned": ("PARTITA_VENV", ".venv"), "newest": ("PARTITA_VENV_NEWEST", ".venv-newest")}[label]
    return os.path.join(os.environ.get(variable, os.path.join(ROOT, folder)), "bin", "python")


# ---- Exports --------------------------------------------------------------------------------------


def missing(folder, family, ways):
    at = os.path.join(folder, family)
    has = set(os.listdir(at)) if os.path.isdir(at) else set()
    if "reference.error" in has:
        return False
    return "case.json" not in has or any(not {way + ".onnx", way + ".error"} & has for way in ways)


def export(folder, python, families, ways, seconds):
    """Makes one version's files that the cache lacks. One process makes all files, as loading PyTorch costs more than an
    export. If it crashes or hangs, that is the result for the file it was making; a new process makes the rest."""
    while todo := [family for family in families if missing(folder, family, ways)]:
        worker = subprocess.Popen(
            [python, os.path.join(HERE, "family_cases.py"), "--out", folder, "--ways", ",".join(ways), *todo],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=ENVIRONMENT)
        at, timer, late = None, None, threading.Event()

        def stop(process=worker, flag=late):
            flag.set()
            process.kill()

        for line in worker.stdout:
            if timer:
                timer.cancel()
            at = line.split()
            print("exporting", os.path.basename(folder), *at, flush=True)
            timer = threading.Timer(seconds, stop)
            timer.start()
        if timer:
            timer.cancel()
        if worker.wait() == 0:
            return
        if at is None:
            sys.exit(f"{python} {HERE}/family_cases.py: exit code {worker.returncode}; tools/python/make_venv makes "
                     "the environment, --no-export does without")
        why = f"takes more than {seconds} s" if late.is_set() else f"dies with exit code {worker.returncode}"
        with open(os.path.join(folder, at[0], at[1] + ".error"), "w") as file:
            file.write(f"the exporter {why}\n")


# ---- Trials ---------------------------------------------------------------------------------------


def identity(*paths):
    """Returns sizes and times of files, which change when the files do."""
    stats = [os.stat(os.path.realpath(path)) for path in paths]
    return [[stat.st_size, stat.st_mtime_ns] for stat in stats]


def last_error(done):
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or ["no message"]
    return next((line for line in lines if "error:" in line), lines[-1])


class Trial:
    def __init__(self, folder, way, work, seconds, python, decisions=()):
        self.folder, self.way, self.seconds, self.decisions = folder, way, seconds, list(decisions)
        self.model, self.work = os.path.join(folder, way + ".onnx"), work
        self.data, self.python = os.path.join(folder, "data.safetensors"), python
        with open(os.path.join(folder, "case.json")) as file:
            self.case = json.load(file)
        self.expected = read_safetensors(os.path.join(folder, "expected.safetensors"))
        self.warnings, self.error = [], 0.0

    def path(self, name):
        return os.path.join(self.work, name)

    def run(self, *command):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.seconds, env=ENVIRONMENT)
        except subprocess.TimeoutExpired:
            raise Stopped("different", f"{' '.join(command[:2])} takes more than {self.seconds} s") from None
        self.warnings += [line for line in done.stderr.splitlines()
                          if "warning:" in line and line not in self.warnings]
        if done.returncode == 0:
            return
        reason = last_error(done)
        if done.returncode == DIFFERS and command[1] == "verify":
            raise Stopped("different", reason)
        if done.returncode != 1:
            raise Stopped("different", f"{' '.join(command[:2])}: exit code {done.returncode}: {reason}")
        if command[1] == "run":
            raise Stopped("different", reason)
        raise Stopped("refused", reason)

    def options(self):
        dims = [text for name, size in self.case["dims"].items() for text in ("--dim", f"{name}={size}")]
        return [*dims, "--objective", self.case["objective"], "--optimizer", "sgd", "--lr", str(self.case["lr"]),
                *self.decisions]

    def note(self, what, found, expected, scale=None):
        error = float(numpy.max(numpy.abs(found - expected), initial=0)) / (scale or float(numpy.abs(expected).max()))
        self.error = max(self.error, error)
        if not error <= max(TOLERANCE, 10 * self.case["single"]):  # also true for NaN
            raise Differs(f"{what} off by {error:.1e}")

    def compare(self, mesh):
        with open(self.path("log.csv"), newline="") as file:
            losses = numpy.array([float(row["loss"]) for row in csv.DictReader(file)])
        if len(losses) != len(self.case["losses"]):
            raise Stopped("different", f"{mesh}: {len(losses)} steps in the log, not {len(self.case['losses'])}")
        for step, (found, expected) in enumerate(zip(losses, self.case["losses"])):
            try:
                self.note(f"{mesh}: loss of step {step + 1}", found, expected, abs(expected))
            except Differs as stop:
                if step == 0:  # nothing is trained yet
                    raise Stopped("different", stop.reason) from None
                raise
        # Measure small parameters against 0.1: some only carry rounding errors, as a key's bias does.
        for name, value in read_safetensors(self.path("parameters")).items():
            expected = self.expected.get("parameter:" + name)
            if expected is not None and expected.shape == value.shape:
                self.note(f"{mesh}: {name}", value, expected, max(float(numpy.abs(expected).max()), 0.1))
        self.compare_logits(f"{mesh}: logits after {len(losses)} steps")

    def compare_logits(self, what):
        found, expected = read_safetensors(self.path("logits")).get("logits"), self.expected["logits"]
        if found is None or found.shape != expected.shape:
            raise Stopped("different", f"{what} are {None if found is None else found.shape}, "
                          f"PyTorch's {expected.shape}")
        try:
            self.note(what, found, expected)
        except Differs as stop:
            if self.equals_onnxruntime():
                raise Stopped("exporter", f"{stop}, losses and parameters equal; onnxruntime computes from the file "
                              "what the program does") from None
            raise

    def equals_onnxruntime(self):
        """Does onnxruntime compute the same logits from the trained model that partita export writes?"""
        if not (self.python and os.path.exists(self.python)):
            return False
        self.run("partita", "export", self.path("program"), "--checkpoint", self.path("trained"), "-o",
                 self.path("trained.onnx"))
        check = [self.python, os.path.join(HERE, "check_onnxruntime.py"), self.path("trained.onnx"),
                 self.path("logits"), "--data", self.data, "--tolerance", str(TOLERANCE)]
        return subprocess.run(check, capture_output=True, env=ENVIRONMENT, timeout=self.seconds).returncode == 0

    def train(self, mesh):
        self.run("partita", "compile", self.model, *self.options(), "--mesh", mesh, "-o", self.path("program"))
        self.run("partita", "run", self.path("program"), "-n", MESHES[mesh], "--data", self.data, "--steps",
                 str(len(self.case["losses"])), "--log", self.path("log.csv"), "--forward", self.path("logits"),
                 "--dump-parameters", self.path("parameters"), "--checkpoint", self.path("trained"),
                 "--overwrite")
        self.compare(mesh)

    def is_refused_strictly(self):
        """Does the compiler refuse the program if warnings are errors?"""
        try:
            self.run("partita", "compile", self.model, *self.options(), "--mesh", "dp=1", "--warnings-as-errors",
                     "-o", self.path("strict"))
        except Stopped as stop:
            return stop.outcome == "refused"
        return False

    def after_one_step(self, model):
        self.run("partita", "compile", model, *self.options(), "--mesh", "dp=1", "-o", self.path("program"))
        self.run("partita", "run", self.path("program"), "--data", self.data, "--steps", "1", "--dump-parameters",
                 self.path("parameters"))
        return read_safetensors(self.path("parameters"))

    def unexplained(self):
        """Returns why no warning explains a difference, or "". (check_unfolded needs an unfolded export.)"""
        unfolded = os.path.join(self.folder, f"{UNFOLDED.get(self.way)}.onnx")
        if not os.path.exists(unfolded):
            return ""
        try:
            parameters, right = self.after_one_step(self.model), self.after_one_step(unfolded)
            self.run("partita", "compile", self.model, *self.options(), "--compile-to", "import", "-o",
                     self.path("import.mlir"))
        except Stopped as stop:
            return f"of one step: {stop.reason}"
        with open(self.path("import.mlir")) as file:
            return family_notes.unexplained(parameters, right, file.read(), TOLERANCE)

    def result(self):
        done = []
        try:
            self.train("dp=1")
            done.append("one rank is equal")
            self.run("partita", "verify", self.model, *self.options(), "--mesh", "dp=2", "--init", "file")
            done.append("verify passes")
            self.train("dp=2")
            outcome, reason = ("equal with " + self.decisions[0] if self.decisions else "equal"), ""
        except Stopped as stop:
            outcome, reason = stop.outcome, stop.reason
            warnings = [line for line in self.warnings if re.search(family_notes.DECIDING, line)]
            if isinstance(stop, Differs) and warnings and self.is_refused_strictly():
                outcome, reason = "warned", f"{reason}; {warnings[0]}"
        return {"outcome": outcome, "reason": family_table.readable(reason), "done": done, "error": self.error,
                "warnings": [family_table.readable(line) for line in self.warnings], "decisions": self.decisions,
                "command": " ".join(["partita compile", self.model, *self.options(), "--mesh", "dp=1"])}


def try_with_decisions(make_trial):
    """Returns the result; if warnings name options and training is equal with one of them, that option's result. If it is
    equal with none, the warnings must explain the difference."""
    result, warnings = (trial := make_trial()).result(), trial.warnings
    if result["outcome"] != "warned":
        return result
    options = dict.fromkeys(option for line in warnings for option in re.findall(family_notes.DECIDING, line))
    for option in options:
        name, pattern = option.split(" ", 1)
        other = make_trial((name, pattern.strip("'"))).result()
        if other["outcome"].startswith("equal"):
            return other
    if reason := trial.unexplained():
        result.update(outcome="different", reason=f"{result['reason']}; {reason}")
    return result


def check_unfolded(results):
    """A warning excuses a cell only if importing the same model without folding is right."""
    for (family, label, way), result in results.items():
        unfolded = results.get((family, label, UNFOLDED.get(way)), {"outcome": "not tried"})["outcome"]
        if result["outcome"] == "warned" and unfolded != "equal":
            result.update(outcome="different", reason=f"{result['reason']}; the unfolded export: {unfolded}")


def try_cell(folder, way, compiler, python, args):
    """Returns the result of one cell, from the cache if the compiler and the export have not changed."""
    kept = os.path.join(folder, way + ".result.json")
    for what in ("reference", way):
        if os.path.exists(os.path.join(folder, what + ".error")):
            with open(os.path.join(folder, what + ".error")) as file:
                return {"outcome": "no export", "reason": file.read().strip()}
    if not os.path.exists(os.path.join(folder, way + ".onnx")):
        return {"outcome": "not tried", "reason": ""}
    key = [*compiler, *identity(*[os.path.join(folder, name) for name in (way + ".onnx", "case.json")])]
    if os.path.exists(kept):
        with open(kept) as file:
            result = json.load(file)
        if result["key"] == key or args.as_it_is:
            return result
    if args.as_it_is:
        return {"outcome": "not tried", "reason": ""}
    with tempfile.TemporaryDirectory(dir=args.work) as work:
        result = {"key": key, "eager": os.path.exists(os.path.join(folder, way + ".eager")),
                  **try_with_decisions(lambda decisions=(): Trial(folder, way, work, args.timeout, python, decisions))}
    with open(kept + ".partial", "w") as file:
        json.dump(result, file)
    os.replace(kept + ".partial", kept)
    return result


def try_all(args, families, ways):
    compiler = shutil.which("partita")
    if compiler is None:
        sys.exit("partita is not in the PATH; tools/setup builds it into build/bin")
    runtime = os.path.join(os.path.dirname(os.path.realpath(compiler)), "..", "lib", "libpartita_rt_cpu.a")
    known = identity(compiler, runtime)
    cells = [(family, label, way) for family in families for label in args.python for way in ways]
    results = {}

    def one(cell):
        family, label, way = cell
        result = try_cell(os.path.join(args.cache, label, family), way, known, args.python[label], args)
        results[cell] = result
        print(f"{family} {label} {way}: {result['outcome']}" + f": {result['reason']}" * bool(result["reason"]),
              flush=True)

    with concurrent.futures.ThreadPoolExecutor(args.j) as pool:
        list(pool.map(one, cells))
    return {cell: results[cell] for cell in cells}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(MATRIX))
    parser.add_argument("--cache", required=True, metavar="DIR")
    parser.add_argument("--python", action="append", default=[], metavar="LABEL=PYTHON",
                        help="a version's name and the Python interpreter that exports it [pinned and newest, of make_venv]")
    parser.add_argument("--ways", default=",".join(WAYS), metavar="WAY,...",
                        help=f"{', '.join(WAYS + OPSETS)} [all but the last two]")
    parser.add_argument("-j", type=int, default=2, metavar="N", help="cells at a time [2]")
    parser.add_argument("--timeout", type=int, default=300, metavar="SECONDS", help="of one command or export [300]")
    parser.add_argument("--no-export", action="store_true", help="try only what the cache has")
    parser.add_argument("--as-it-is", action="store_true", help="try nothing: show the results that the cache has")
    parser.add_argument("--work", metavar="DIR", help="where programs are built [the system's temporary folder]")
    parser.add_argument("--table", metavar="FILE.md",
                        help=f"replaces the table between its markers; {' and '.join(OPSETS)} without other ways have one of "
                             "their own")
    args = parser.parse_args()
    for family in args.families:
        if family not in MATRIX:
            parser.error(f"no family '{family}', there are {', '.join(MATRIX)}")
    for way in args.ways.split(","):
        if way not in WAYS + OPSETS:
            parser.error(f"no way '{way}', there are {', '.join(WAYS + OPSETS)}")
    try:
        args.python = dict(pair.split("=", 1) for pair in args.python) or \
            {label: python_of(label) for label in ("pinned", "newest")}
    except ValueError:
        parser.error("--python: LABEL=PYTHON, such as newest=.venv-newest/bin/python")
    return args


def main():
    args = parse()
    families, ways = args.families or list(MATRIX), args.ways.split(",")
    args.cache = os.path.abspath(args.cache)
    if not args.no_export and not args.as_it_is:
        with concurrent.futures.ThreadPoolExecutor(min(args.j, len(args.python))) as pool:
            list(pool.map(lambda item: export(os.path.join(args.cache, item[0]), item[1], families, ways,
                                              args.timeout), args.python.items()))
    results = try_all(args, families, ways)
    check_unfolded(results)
    print(family_table.summary(results))
    if args.table:
        family_table.replace(args.table, results, family_table.versions(args.cache, args.python))
    if any(result["outcome"] == "different" for result in results.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
