"""The manifest's bytes of both phases of 1-bit Adam are the formulas'; writes tokens to train on, PROGRAM.bin. usage: one_bit_census.py PROGRAM RANKS_OF_DP LAST_EXACT"""
import json
import sys

import numpy

program, ranks, last = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
numpy.random.default_rng(0).integers(0, 64, 4000).astype("uint16").tofile(program + ".bin")
with open(program + "/manifest.json", encoding="utf-8") as file:
    manifest = json.load(file)
sizes = []
for parameter in manifest["parameters"]:
    count = 1
    for size in parameter["local"]:
        count *= size
    sizes.append(count)
block = sum(4 + -(-(-(-n // ranks)) // 8) for n in sizes)  # a scale, and the bits of a chunk
rows = {(row["kind"], row["steps"], row["until"]): row["bytes"] for row in manifest["collectives"] if row["function"] == "train_step" and "steps" in row}
expected = {("all_reduce", "exact", last): 4 * sum(sizes), ("all_to_all", "others", last): ranks * block, ("all_gather", "others", last): ranks * block}
assert rows == expected, (rows, expected)
