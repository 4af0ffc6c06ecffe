"""kernels.py FOLDER PYTORCH.json: the kernel of every optimizer, as the program of FOLDER/NAME has it, against its
formula in double precision over 1,000 steps, and against PyTorch's parameters after 100; a gradient of NaN makes its elements NaN, and no others. Every
optimizer that `partita compile` knows is among them.

The kernels are compiled alone, with the runtime's headers and the program's flags; the formulas below are written anew
from the papers and PyTorch's documentation."""

import ctypes
import json
import os
import re
import subprocess
import sys

import numpy
import trajectories


def find_kernel(folder, first):
    """(name, the names of its arguments, its text) of the kernel whose first argument this is"""
    text = open(os.path.join(folder, "model.cpp")).read()
    for match in re.finditer(r"^static void (\w+)\(((?:float|double) \*" + first + r",[^)]*)\) \{\n.*?^\}\n", text, re.M | re.S):
        return match[1], [word.split()[-1].lstrip("*") for word in match[2].split(",")], match[0]
    sys.exit(f"{folder}: no kernel of an optimizer")


def compile_kernel(folder, source, first="p"):
    name, arguments, text = find_kernel(folder, first)
    path = os.path.join(folder, name + ".cpp")
    kinds = {"n": "int64_t ", "sums": "double *", "largest": "double *"}
    pointers = ", ".join(kinds.get(a, "float *") + a for a in arguments[: arguments.index("n") + 1])
    scalars = "".join(f", double {a}" for a in arguments[arguments.index("n") + 1 :])
    with open(path, "w") as file:
        file.write('#include <partita_rt/partita_rt.h>\nusing namespace partita_rt;\n' + text)
        file.write(f'extern "C" void kernel({pointers}{scalars}) {{ ::{name}({", ".join(arguments)}); }}\n')
    subprocess.check_call(["g++", "-std=c++17", "-O3", "-fno-math-errno", "-ffp-contract=off", "-march=native", "-shared", "-fPIC",
                           "-I" + os.path.join(source, "runtime/include"), path, "-o", path + ".so"])
    return ctypes.CDLL(os.path.abspath(path + ".so")).kernel, arguments


class FrozenRatio:
    """1-bit LAMB's ratio: LAMB's in the warm-up, and then the mean of these times a factor."""

    def __init__(self):
        self.mean, self.factor = 0.0, 1.0

    def step(self, t, squares, largest):
        if not numpy.isfinite(sum(squares) + largest):
            return 1.0
        value, update, plain = numpy.sqrt(squares)
        if t <= trajectories.FREEZE:
            ratio = min(max(value / update, 0.1), 0.5)
            self.mean = 0.9 * self.mean + 0.1 * ratio
            return ratio
        share = min(1.0, plain / update)
        factor = min(max(largest * share + 1 - share, 0.5), 4.0)
        self.factor = min(max(factor, 0.9 * self.factor), 1.1 * self.factor)
        return self.mean * self.factor


def variance_steps():
    """Those in which 0/1 Adam updates the variance, by DeepSpeed's counters."""
    interval, counter, steps = 1, 0, set()
    for t in range(1, trajectories.FREEZE + 1):
        if t % interval == 0:
            steps.add(t)
            counter += 1
            interval, counter = (2 * interval, 0) if counter == 16 else (interval, counter)
    return steps


class Formula:
    """One optimizer in double precision."""

    def __init__(self, kind, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.0, momentum=0.0, nesterov=False, correct=True):
        self.__dict__.update(locals())
        self.p = trajectories.start().astype(float)
        self.first, self.second, self.fresh = (numpy.zeros_like(self.p) for _ in range(3))
        self.exact = variance_steps() if kind == "zero_one_adam" else set(range(1, trajectories.FREEZE + 1))
        self.ratio, self.is_one_bit = FrozenRatio(), kind in ("onebit_adam", "onebit_lamb", "zero_one_adam")

    def one_bit_step(self, g, t):
        """On one rank. An element that has no variance moves by its decay."""
        self.first += (1 - self.beta1) * (g - self.first)
        self.fresh += (1 - self.beta2) * (g**2 - self.fresh)
        if t in self.exact:
            self.second = self.fresh.copy() if self.kind == "onebit_lamb" else self.second + (1 - self.beta2) * (g**2 - self.second)
        updates = len([each for each in self.exact if each <= t])
        by1, by2 = (1 - self.beta1**t, 1 - self.beta2**updates) if self.correct else (1, 1)
        known = self.second > 0
        plain = numpy.where(known, (self.first / by1) / (numpy.sqrt(self.second / by2) + self.eps), 0)
        update, ratio = plain + self.decay * self.p, 1
        if self.kind == "onebit_lamb":
            growth = (numpy.sqrt(self.second) + self.eps) / (numpy.sqrt(self.fresh) + self.eps)
            ratio = self.ratio.step(t, [numpy.sum(each**2) for each in (self.p, update, plain)], growth[known].max())
        self.p = self.p - trajectories.RATE * ratio * update

    def step(self, g, t):
        rate = trajectories.RATE
        if self.is_one_bit:
            return self.one_bit_step(g, t)
        if self.kind in ("adam", "sgd", "adagrad"):
            g = g + self.decay * self.p
        if self.kind in ("adam", "adamw", "lamb"):
            self.first += (1 - self.beta1) * (g - self.first)
            self.second += (1 - self.beta2) * (g**2 - self.second)
            by1, by2 = (1 - self.beta1**t, 1 - self.beta2**t) if self.correct else (1, 1)
            if self.kind == "lamb":
                u = (self.first / by1) / (numpy.sqrt(self.second / by2) + self.eps) + self.decay * self.p
                ratio = numpy.clip(numpy.linalg.norm(self.p) / numpy.linalg.norm(u), 0.1, 0.5)
                self.p = self.p - rate * ratio * u
            elif self.kind == "adamw":
                self.p = self.p * (1 - rate * self.decay) - rate * (self.first / by1) / (numpy.sqrt(self.second / by2) + self.eps)
            else:
                self.p = self.p - rate * (self.first / by1) / (numpy.sqrt(self.second / by2) + self.eps)
        elif self.kind == "sgd":
            self.first = self.momentum * self.first + g
            self.p = self.p - rate * (g + self.momentum * self.first if self.nesterov else self.first)
        elif self.kind == "lion":
            direction = numpy.sign(self.beta1 * self.first + (1 - self.beta1) * g)
            self.first = self.beta2 * self.first + (1 - self.beta2) * g
            self.p = self.p - rate * (direction + self.decay * self.p)
        else:
            self.second = self.second + g**2
            self.p = self.p - rate * g / (numpy.sqrt(self.second) + self.eps)


FORMULAS = {
    "adamw": dict(kind="adamw", beta2=0.95, decay=0.1),
    "adam": dict(kind="adam", eps=1e-6, decay=0.01),
    "adam_plain": dict(kind="adam", correct=False),
    "sgd": dict(kind="sgd", decay=0.01),
    "momentum": dict(kind="sgd", momentum=0.9, decay=0.01),
    "nesterov": dict(kind="sgd", momentum=0.8, nesterov=True),
    "lion": dict(kind="lion", beta2=0.99, decay=0.1),
    "lamb": dict(kind="lamb", decay=0.1),
    "adagrad": dict(kind="adagrad", eps=1e-10, decay=0.01),
    "onebit_adam": dict(kind="onebit_adam", decay=0.1, correct=False),
    "onebit_lamb": dict(kind="onebit_lamb", decay=0.1, correct=False),
    "zero_one_adam": dict(kind="zero_one_adam", decay=0.1),
}
LATE = 5  # an element whose gradient is 0 until the variance stays
SPOILT = [2, 3, LATE]  # those that become NaN


def distance(ours, right):
    return float(numpy.linalg.norm(ours - right) / numpy.linalg.norm(right))


def run(folder, name, source):
    """The parameter after 100 steps and after 1,000, ours and the formula's."""
    kernel, arguments = compile_kernel(os.path.join(folder, name), source)
    squares = compile_kernel(os.path.join(folder, name), source, "sums") if "ratio" in arguments else None
    formula = Formula(**FORMULAS[name])
    arrays = {a: numpy.zeros(trajectories.ELEMENTS, numpy.float32) for a in arguments[: arguments.index("n")]}
    arrays["p"][:] = trajectories.start()
    arrays["sums"], arrays["largest"] = numpy.zeros(3 if formula.is_one_bit else 2), numpy.zeros(1)
    ratio = FrozenRatio()
    # What the command line would set is by name; what the program has as literals is what FORMULAS says.
    scalars = {"rate": trajectories.RATE, "beta1": formula.beta1, "beta2": formula.beta2, "epsilon": formula.eps,
               "decay": formula.decay, "momentum": formula.momentum, "nesterov": float(formula.nesterov),
               "bias_correction": float(formula.correct), "freeze": trajectories.FREEZE, "var_freeze": trajectories.FREEZE,
               "var_update_scaler": 16, "compressed": 0}

    def call(function, names):
        function(*[ctypes.c_void_p(arrays[a].ctypes.data) if a in arrays else
                   ctypes.c_int64(trajectories.ELEMENTS) if a == "n" else ctypes.c_double(scalars[a]) for a in names])

    def update(t, gradient):
        arrays["g"][:] = gradient
        scalars["t"] = float(t)
        if squares:
            call(*squares)
            lamb = numpy.sqrt(arrays["sums"][0] / arrays["sums"][1])
            scalars["ratio"] = (ratio.step(t, arrays["sums"], arrays["largest"][0]) if formula.is_one_bit else
                                min(max(lamb, 0.1), 0.5) if numpy.isfinite(lamb) else 1.0)
        call(kernel, arguments)

    kept = {}
    for t, gradient in enumerate(trajectories.gradients(1000), 1):
        if formula.is_one_bit and t <= trajectories.FREEZE:
            gradient[LATE] = 0
        update(t, gradient)
        formula.step(gradient.astype(float), t)
        if t in (100, 1000):
            kept[t] = arrays["p"].astype(float), formula.p.copy()
            before = {name: values.copy() for name, values in arrays.items()}
            gradient[SPOILT] = numpy.nan
            update(t + 1, gradient)
            assert numpy.flatnonzero(numpy.isnan(arrays["p"])).tolist() == SPOILT, (name, t, numpy.flatnonzero(numpy.isnan(arrays["p"])))
            for array, values in before.items():
                arrays[array][:] = values
    return kept


def main(folder, pytorch, source):
    theirs = json.load(open(pytorch))
    words = re.search(r"--optimizer ([\w|-]+)", subprocess.check_output(["partita", "compile", "--help"], text=True))[1].split("|")
    tried = {options.split()[1] for options, _, _ in trajectories.CONFIGURATIONS.values()}
    assert set(words) == tried, (words, tried)
    wrong = 0
    for name in trajectories.CONFIGURATIONS:
        kept = run(folder, name, source)
        errors = {"formula": distance(*kept[1000])}
        if name in theirs:
            right, single = (numpy.array(theirs[name][kind]) for kind in ("float64", "float32"))
            errors["PyTorch in double"] = distance(kept[100][0][: len(right)], right)
            print(f"{name}: PyTorch in single precision is {distance(single, right):.1e} from its own double")
        moved = distance(kept[1000][1], trajectories.start())
        print(f"{name}: moved by {moved:.2g},", ", ".join(f"{k} {v:.1e}" for k, v in errors.items()))
        wrong += any(not error < 1e-6 for error in errors.values()) or not moved > 1e-3
    sys.exit(f"{wrong} optimizers are wrong" if wrong else 0)


main(*sys.argv[1:])
