"""Fifty steps of the program that `optimize` and `compress-momenta` make, on virtual ranks in double precision, against the published
algorithm in numpy (test/Golden/make_onebit_adam.py, make_onebit_lamb.py, make_zero_one_adam.py), from the same start and with the same gradients. If a norm is given, gradients are clipped in exact steps, and multiplied in all others by the root of the factors' mean square.

    one_bit_adam.py FOLDER RANKS [CLIP [ZERO [zero-one|lamb] [corrected]]]

corrected: the moments are divided by the sum of their weights, as Adam's are.
"""
import os
import sys

import numpy

sys.path[:0] = [os.path.join(os.environ["PARTITA_SOURCE"], "test", folder) for folder in ("Golden", "Support", "EndToEnd/Inputs")]
import checkpoints  # noqa: E402
from commands import call  # noqa: E402
import make_onebit_adam as golden  # noqa: E402
import make_onebit_lamb as onebit_lamb  # noqa: E402
import make_zero_one_adam as zero_one  # noqa: E402

folder, ranks, clip, zero = sys.argv[1], int(sys.argv[2]), float((sys.argv[3:] or [0])[0]), int((sys.argv[4:] or [0])[0])
isZeroOne, isLamb, isCorrected = "zero-one" in sys.argv, "lamb" in sys.argv, "corrected" in sys.argv
exact = zero_one.variance_steps() if isZeroOne else set(range(1, golden.FREEZE + 1))
kind = f"zero-one-adam var-freeze-step={zero_one.VAR_FREEZE} var-update-scaler={zero_one.VAR_UPDATE_SCALER}" if isZeroOne else f"onebit-{'lamb' if isLamb else 'adam'} freeze-step={golden.FREEZE}"
if isCorrected:
    kind += " bias-correction=true"
SHAPES = {"w": (5, 7), "b": (9,), "s": (2,)}
compressed_mean = golden.compressed_mean


def mean_of(values, worker, server):
    """Of few elements gradients are summed exactly, so momenta are as well."""
    return numpy.mean(values, axis=0) if len(values[0]) < 3 else compressed_mean(values, worker, server)


for each in (golden, onebit_lamb, zero_one):
    each.compressed_mean = mean_of
os.makedirs(folder, exist_ok=True)


def module():
    lines, arguments, init, step = [], [], [], []
    for name, shape in SHAPES.items():
        sizes = "x".join(map(str, shape))
        full, dims = f"tensor<{sizes}xf32>", ", ".join(map(str, shape))
        local = f"tensor<1x{sizes}xf32, #par.place<[{ranks} @dp, {dims}]>>"
        partial = f"tensor<{sizes}xf32, #par.place<[{dims}], partial [dp]>>"
        lines += [f"train.parameter @{name} : {full}"]
        init += [f"%{name} = train.initial_value @{name} : {full}", f"train.write @{name}, %{name} : {full}"]
        arguments.append(f"%g{name}: {local}")
        step += [f"%s{name} = tx.reduce_sum %g{name} [0] : {local} -> {partial}",
                 f'%t{name} = par.all_reduce %s{name} over "dp" because "gradient" : {partial} -> {full}',
                 f"%{name} = train.read @{name} : {full}"]
    for name, shape in SHAPES.items():
        full = f"tensor<{'x'.join(map(str, shape))}xf32>"
        step.append(f"train.update @{name}, %{name} by %t{name} : {full}, {full}")
    return "\n".join([f"module attributes {{par.mesh = #par.mesh<dp = {ranks}>}} {{", *lines, "func.func @init() attributes {train.entry_point = #train.entry_point<init>} {", *init, "return", "}",
                      f"func.func @train_step({', '.join(arguments)}) attributes {{par.no_cotangents, train.entry_point = #train.entry_point<train_step>}} {{",
                      *step, "return", "}", "}"])


def write(name, text):
    with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
        file.write(text)
    return f"{folder}/{name}"


gradients = {name: [[golden.numbers(step, rank, index, numpy.prod(shape)) for rank in range(ranks)] for step in range(1, golden.STEPS + 1)]
             for index, (name, shape) in enumerate(SHAPES.items())}
numbers = write("numbers", "\n".join(" ".join("%.17g" % (number / ranks) for row in gradients[name][step] for number in row)
                                     for step in range(golden.STEPS) for name in SHAPES))
program = f"{folder}/program.mlir"
call("partita-opt", write("model.mlir", module()), f"--optimize=kind={kind} weight-decay={golden.DECAY} clip={clip}", f"--compress-momenta=stage={zero}",
     f"--zero-shard-states=stage={zero}", "--expand-norms",
     "-o", program)


def interpret(times, rate):
    call("partita-interp", program, "--entry", "train_step", "--init", "perturbed", "--times", str(times), "--lr", str(rate), "--inputs", numbers,
         "--parameters", folder + "/parameters")
    return checkpoints.read(folder + "/parameters")[0]


class OneBit:
    def __init__(self, start):
        self.decay = golden.DECAY if start.ndim > 1 else 0
        self.p = start.astype(float).ravel()
        self.m, self.v = numpy.zeros(self.p.size), numpy.zeros(self.p.size)
        self.worker, self.server = [numpy.zeros(self.p.size)] * ranks, [0.0] * ranks

    def update(self, local, step, scale, correction):
        if step <= golden.FREEZE:
            g = scale * numpy.mean(local, axis=0)
            self.m, self.v = golden.BETA1 * self.m + (1 - golden.BETA1) * g, golden.BETA2 * self.v + (1 - golden.BETA2) * g * g
        else:
            self.m = golden.compressed_mean([golden.BETA1 * self.m + (1 - golden.BETA1) * g for g in local], self.worker, self.server)
        self.p = self.p - golden.RATE * (self.m * correction[0] / (numpy.sqrt(self.v * correction[1]) + golden.EPSILON) + self.decay * self.p)


class ZeroOne(zero_one.Tensor):
    def __init__(self, start):
        super().__init__(start.astype(float).ravel(), ranks, golden.DECAY if start.ndim > 1 else 0)


def tensor_of(start):
    if isLamb:
        return onebit_lamb.Tensor(start.astype(float).ravel(), ranks, golden.DECAY if start.ndim > 1 else 0)
    return ZeroOne(start) if isZeroOne else OneBit(start)


start, end = interpret(1, 0), interpret(golden.STEPS, golden.RATE)
assert [name for name in SHAPES if f"{name}.worker" in end] == ["w", "b"] and ("clip_factor" in end) == bool(clip), end.keys()
tensors, clipped = {name: tensor_of(start[name]) for name in SHAPES}, 0
squares = weights = 0  # of the factors of exact steps
for step in range(1, golden.STEPS + 1):
    local = {name: [rank.astype(float) for rank in gradients[name][step - 1]] for name in SHAPES}
    norm = numpy.sqrt(sum(numpy.square(numpy.mean(local[name], axis=0)).sum() for name in SHAPES))
    clipped += bool(clip and norm > clip and step in exact)
    factor = min(1, clip / (norm + 1e-6)) if clip else 1
    if step in exact:
        squares, weights = (golden.BETA2 * old + (1 - golden.BETA2) * new for old, new in ((squares, factor**2), (weights, 1)))
    else:
        local = {name: [(squares / weights)**0.5 * g for g in rows] for name, rows in local.items()}
    updates = len([each for each in exact if each <= step])
    correction = (1 / (1 - golden.BETA1**step), 1 / (1 - golden.BETA2**updates)) if isCorrected else (1, 1)
    for name in SHAPES:
        tensors[name].update(local[name], step, factor, *([] if isLamb else [correction]))
assert clipped in ((len(exact) - 1, len(exact)) if clip else (0,)), clipped
for name, tensor in tensors.items():
    error = numpy.abs(end[name].ravel() - tensor.p).max() / numpy.abs(tensor.p).max()
    moved = numpy.abs(tensor.p - start[name].ravel().astype(float)).max()
    assert error < 1e-6 and moved > 0.01, (name, error, moved)
    kept = {key: (float(end[f"{name}.{key}"]), getattr(tensor, key)) for key in ("coefficient", "factor") if isLamb}
    assert all(abs(got - right) < 1e-6 for got, right in kept.values()), (name, kept)
assert not clip or abs(float(end["clip_factor"]) - (squares / weights)**0.5) < 1e-7, (end["clip_factor"], squares / weights)
print("the published algorithm's parameters")
