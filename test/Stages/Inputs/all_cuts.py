"""Compares --stages auto with all other cuts by the time that `partita explain` shows: all_cuts.py STAGES,... LAYERS MODEL OPTION...

The options may have a --mesh of the other axes. Exit code 1 if some cuts have a faster slowest stage than auto's (with several chunks per
stage: a shorter step), or if the costs by which auto cuts (train.spans) do not add up to what any of these stages costs
(partita/Stages/Spans.h).
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


def estimate(spans, first, last):
    splits = first > 0 and any(key[0] for key in spans)
    if last - first < 2:
        return spans[splits, first, last]
    return sum(spans[splits, i, i + 1] for i in range(first, last)) - sum(spans[splits, i, i] for i in range(first + 1, last))


def measure(model, stages, assign, options, spans):
    """Returns the time that auto minimizes, and the number of ranges of layers."""
    report = json.loads(run(["explain", "--json"], model, stages, assign, options))
    ranges = 0
    for stage in report["stages"]:
        for number, chunk in enumerate(stage["chunks"]):
            first, last = chunk["first_layer"], chunk["first_layer"] + chunk["layers"] - 1
            cost = sum(costs[number] for costs in stage["schedule"]["costs"].values())
            expected = estimate(spans, first, last)
            if cost != expected:
                sys.exit(f"--stages {assign}: layers {first} to {last} on stage {stage['stage']} cost {cost}, not {expected}")
            ranges += 1
    schedule = report["schedule"]
    return max(stage["work"] for stage in schedule["stages"]) if ranges == stages else schedule["time"], ranges


counts, layers, model, *options = sys.argv[1:]
for stages in map(int, counts.split(",")):
    spans = spans_of(model, stages, options)
    own, ranges = measure(model, stages, "auto", options, spans)
    for cuts in itertools.combinations(range(1, int(layers)), ranges - 1):
        other, _ = measure(model, stages, "cuts:" + ",".join(map(str, cuts)), options, spans)
        if other < own:
            sys.exit(f"{stages} stages: {own} with auto, {other} with cuts {cuts}")
