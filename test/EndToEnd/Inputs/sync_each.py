"""sync_each.py MICRO_BATCHES EACH ONCE TWO: programs of stages 3, 3 with --sync-each step, and 2 with it.

The census of each pipeline stage has what docs/parallelism.md says of its parameters: gathered and reduced for every micro-batch, or once."""
import collections
import json
import math
import sys


def census(folder):
    """Of each pipeline stage: bytes of its full parameters, bytes per kind of collective over dp, bytes of the arena."""
    with open(f"{folder}/manifest.json") as file:
        manifest = json.load(file)
    sent = collections.Counter()
    for entry in manifest["collectives"]:
        if entry["axis"] == "dp" and entry["function"] == "train_step":
            sent[entry["stage"], entry["kind"]] += entry["bytes"]
    for number, stage in enumerate(manifest["stages"]):
        full = sum(4 * math.prod(each["shape"]) for each in manifest["parameters"] if number in each["stages"])
        yield full, sent[number, "all_gather"], sent[number, "reduce_scatter"], stage["memory"]["arena"]


count, *folders = sys.argv[1:]
each, once, two = (list(census(folder)) for folder in folders)
for full, gathered, reduced, _ in each:
    assert reduced == int(count) * full, f"{reduced} bytes reduced, of {full} for each of {count} micro-batches"
    assert int(count) * full < gathered <= 2 * int(count) * full, f"{gathered} bytes gathered, of {full}"
for full, gathered, reduced, _ in once + two:
    assert gathered == reduced == full, f"{gathered} bytes gathered and {reduced} reduced, of {full} once"
for (full, _, _, less), (_, _, _, more) in zip(each, once):
    assert full / 2 < more - less < 2 * full, f"an arena of {more} in place of {less} bytes, of {full} bytes of parameters"
