"""Fifty steps of the program that `optimize` and `compress-momenta` make, on virtual ranks in double precision, against the published
algorithm in numpy (test/Golden/make_onebit_adam.py), from the same start and with the same gradients.

    one_bit_adam.py FOLDER RANKS
"""
import os
import sys

import numpy

sys.path[:0] = [os.path.join(os.environ["PARTITA_SOURCE"], "test", folder) for folder in ("Golden", "Support", "EndToEnd/Inputs")]
import checkpoints  # noqa: E402
from commands import call  # noqa: E402
import make_onebit_adam as golden  # noqa: E402

folder, ranks = sys.argv[1], int(sys.argv[2])
SHAPES = {"w": (5, 7), "b": (3,)}
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
                      f"func.func @train_step({', '.join(arguments)}) attributes {{train.entry_point = #train.entry_point<train_step>}} {{",
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
call("partita-opt", write("model.mlir", module()), f"--optimize=kind=onebit-adam freeze-step={golden.FREEZE} weight-decay={golden.DECAY}", "--compress-momenta",
     "-o", program)


def interpret(times, rate):
    call("partita-interp", program, "--entry", "train_step", "--init", "perturbed", "--times", str(times), "--lr", str(rate), "--inputs", numbers,
         "--parameters", folder + "/parameters")
    return checkpoints.read(folder + "/parameters")[0]


start, end = interpret(1, 0), interpret(golden.STEPS, golden.RATE)
for name, shape in SHAPES.items():
    n, decay = numpy.prod(shape), golden.DECAY if len(shape) > 1 else 0
    p, m, v = start[name].astype(float).ravel(), numpy.zeros(n), numpy.zeros(n)
    worker, server = [numpy.zeros(n)] * ranks, [0.0] * ranks
    for step, local in enumerate(gradients[name], 1):
        local = [rank.astype(float) for rank in local]
        if step <= golden.FREEZE:
            g = numpy.mean(local, axis=0)
            m, v = golden.BETA1 * m + (1 - golden.BETA1) * g, golden.BETA2 * v + (1 - golden.BETA2) * g * g
        else:
            m = golden.compressed_mean([golden.BETA1 * m + (1 - golden.BETA1) * g for g in local], worker, server)
        p = p - golden.RATE * (m / (numpy.sqrt(v) + golden.EPSILON) + decay * p)
    error = numpy.abs(end[name].ravel() - p).max() / numpy.abs(p).max()
    moved = numpy.abs(p - start[name].ravel()).max()
    assert error < 1e-6 and moved > 0.01, (name, error, moved)
print("the published algorithm's parameters")
