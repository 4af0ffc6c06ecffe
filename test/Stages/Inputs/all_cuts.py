"""Compares --stages auto with all other cuts by the time that `partita explain` shows: all_cuts.py STAGES,... LAYERS MODEL OPTION...

The options may have a --mesh of the other axes. Exit code 1 if some cuts have a faster slowest stage than auto's, or if the costs by
which auto cuts (train.spans) do not add up to what any of these stages costs (partita/Stages/Spans.h).
"""
import itertools
import json
import re
import subprocess
import sys


def run(command, model, stages, assign, options):
    options = [f"pp={stages},{each}" if before == "--mesh" else each for before, each in zip([""] + options, options)]
    mesh = [] if "--mesh" in options else ["--mesh", f"pp={stages}"]
    done = subprocess.run(["partita", command[0], model, "--stages", assign, *command[1:], *mesh, *options], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return done.stdout


def spans_of(model, stages, options):
    """Returns what spans of one and of two layers cost, by whether they split, first and last layer."""
    text = run(["compile", "--compile-to", "stages", "-o", "-"], model, stages, "auto", options)
    found = re.findall(r"#train.span<first = (\d+), last = (\d+), costs = \[([\d, ]+)\](, splits = true)?>", text)
    return {(bool(splits), int(first), int(last)): sum(map(int, costs.split(","))) for first, last, costs, splits in found}


def estimate(spans, stage, first, last):
    splits = stage > 0 and any(key[0] for key in spans)
    if last - first < 2:
        return spans[splits, first, last]
    return sum(spans[splits, i, i + 1] for i in range(first, last)) - sum(spans[splits, i, i] for i in range(first + 1, last))


def slowest(model, stages, assign, options, spans):
    report = json.loads(run(["explain", "--json"], model, stages, assign, options))
    costs = []
    for stage in report["stages"]:
        (chunk,) = stage["chunks"]
        first, last = chunk["first_layer"], chunk["first_layer"] + chunk["layers"] - 1
        costs.append(sum(cost for (cost,) in stage["schedule"]["costs"].values()))
        expected = estimate(spans, stage["stage"], first, last)
        if costs[-1] != expected:
            sys.exit(f"--stages {assign}: stage {stage['stage']}, of layers {first} to {last}, costs {costs[-1]}, not {expected}")
    return max(costs)


counts, layers, model, *options = sys.argv[1:]
for stages in map(int, counts.split(",")):
    spans = spans_of(model, stages, options)
    own = slowest(model, stages, "auto", options, spans)
    for cuts in itertools.combinations(range(1, int(layers)), stages - 1):
        other = slowest(model, stages, "cuts:" + ",".join(map(str, cuts)), options, spans)
        if other < own:
            sys.exit(f"{stages} stages: the slowest takes {own} with auto, {other} with cuts {cuts}")
