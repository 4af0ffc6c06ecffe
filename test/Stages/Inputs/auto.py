"""Compares --stages auto with all other cuts by the time that reports simulate: auto.py FOLDER

Models have random layers, marked as such: matmuls of different widths, norms, a bias that several layers read (computed on each
of their stages) and the result of an encoder, which the layers after it read. Each is compiled with all cuts up to note-schedule,
which adds up what the ops of each stage's passes cost. Exit code 1 if some cuts have a faster slowest stage than auto's.
"""
import itertools
import pathlib
import random
import re
import subprocess
import sys

import stack

WIDTH, ROWS, TOKENS, LAYERS, MICRO_BATCHES = 8, 64, 16, 6, 4
VALUE, TABLE, VECTOR = f"tensor<{TOKENS}x{WIDTH}xf32>", f"tensor<{ROWS}x{WIDTH}xf32>", f"tensor<{WIDTH}xf32>"
IDS, LOGITS = f"tensor<{TOKENS}xi64>", f"tensor<{TOKENS}x{ROWS}xf32>"


def program(seed):
    rng = random.Random(seed)
    encoder = rng.choice([0, 0, 2, 3])  # layers whose result the later ones read
    biased = sorted(rng.sample(range(LAYERS), rng.choice([0, 2, 4])))
    parameters, body = {"table": TABLE, "bias": VECTOR}, []

    def op(layer, name, text, results=1):
        at = f"{{train.layer = #train.layer<{layer} of {LAYERS}>}}"
        body.append(f"%{name}{f':{results}' if results > 1 else ''} = " + text.replace("@", at))
        return f"%{name}" + "#0" * (results > 1)

    def matmul(layer, name, x, rows, columns):
        parameters[name] = f"tensor<{rows}x{columns}xf32>"
        of = [f"tensor<{TOKENS}x{size}xf32>" for size in (rows, columns)]
        return op(layer, f"m_{name}", f"tx.matmul {x}, %{name} @ : ({of[0]}, {parameters[name]}) -> {of[1]}")

    x = op(-1, "x", f"tx.embedding %table, %ids @ : ({TABLE}, {IDS}) -> {VALUE}")
    if biased:
        wide = op(-1, "wide", f"tx.broadcast %bias @ : {VECTOR} -> {VALUE}")
        bias = op(-1, "repeated", f"tx.tanh {wide} @ : ({VALUE}) -> {VALUE}")
    encoded = None
    for layer in range(LAYERS):
        parameters[f"g{layer}"] = VECTOR
        y = op(layer, f"n{layer}", f"tx.rms_norm {x}, %g{layer} eps 1.0e-2 @ : ({VALUE}, {VECTOR}) -> ({VALUE}, tensor<{TOKENS}xf32>)", 2)
        for i in range(rng.randint(1, 3)):
            hidden = rng.choice([4, 16, 48])
            of = f"tensor<{TOKENS}x{hidden}xf32>"
            up = matmul(layer, f"u{layer}_{i}", y, WIDTH, hidden)
            y = matmul(layer, f"d{layer}_{i}", op(layer, f"a{layer}_{i}", f"tx.gelu {up} @ : ({of}) -> {of}"), hidden, WIDTH)
        if layer in biased:
            y = op(layer, f"b{layer}", f"tx.mul {y}, {bias} @ : ({VALUE}, {VALUE}) -> {VALUE}")
        if encoded:
            crossed = matmul(layer, f"c{layer}", encoded, WIDTH, WIDTH)
            y = op(layer, f"e{layer}", f"tx.mul {y}, {crossed} @ : ({VALUE}, {VALUE}) -> {VALUE}")
        x = op(layer, f"x{layer}", f"tx.add {x}, {y} @ : ({VALUE}, {VALUE}) -> {VALUE}")
        if layer + 1 == encoder:
            encoded = x
    parameters["head"] = f"tensor<{WIDTH}x{ROWS}xf32>"
    op(-2, "logits", f"tx.matmul {x}, %head @ : ({VALUE}, {parameters['head']}) -> {LOGITS}")
    at = f"{{train.layer = #train.layer<-2 of {LAYERS}>}} "
    return "\n".join(stack.functions(parameters, body, IDS, LOGITS, MICRO_BATCHES, at))


def slowest(model, stages, schedule, assign):
    """Returns what a micro-batch costs on the slowest stage, and the cuts."""
    of_stages = ",".join(f"partita-{phase}" for phase in ("schedule", "fuse"))
    passes = ["note-flops", f"choose-schedule{{stages={stages} schedule={schedule}}}", "note-costs", f"pipe-place{{assign={assign}}}",
              "partita-partition", "partita-differentiate", "partita-optimize", "partita-states", "pipe-pass-back", "pipe-report",
              "pipe-agree", "pipe-cut", "builtin.module(canonicalize)", "builtin.module(cse)", "split-backward", "schedule-stages",
              f"builtin.module({of_stages})", "note-schedule"]
    done = subprocess.run(["partita-opt", model, f"--pass-pipeline=builtin.module({','.join(passes)})"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    costs = [sum(map(int, re.findall(r"pass_cost<pass = <\w+>, cost = (\d+)", line))) for line in done.stdout.splitlines()
             if "train.costs" in line]
    assert len(costs) == stages, done.stdout
    return max(costs), re.search(r"pipe.cuts = array<i64: ([\d, ]+)>", done.stdout).group(1)


def main():
    folder = pathlib.Path(sys.argv[1])
    failed = 0
    for seed, (stages, schedule) in enumerate([(2, "1f1b"), (3, "1f1b"), (3, "gpipe"), (2, "zb-h1"), (4, "1f1b"), (3, "zb-h2")] * 2):
        model = folder / f"{seed}.mlir"
        model.write_text(program(seed))
        own, cuts = slowest(model, stages, schedule, "auto")
        others = [slowest(model, stages, schedule, "cuts:" + ",".join(map(str, each)))
                  for each in itertools.combinations(range(1, LAYERS), stages - 1)]
        best, where = min(others)
        failed += own > best
        print(f"{seed}: {stages} stages, {schedule}: auto, {cuts}: {own}; best, {where}: {best}, of {len(others)}", flush=True)
    print(f"{failed} models have better cuts than auto's")
    sys.exit(failed > 0)


main()
