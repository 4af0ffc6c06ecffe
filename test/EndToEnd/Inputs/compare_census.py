# compare_census.py EXPLAINED.json MODEL.json RUN.txt: what `partita explain DIR --json` lists one by one, what it says of the
# model with the same plan, its census, the compiler's totals, what `partita run --census` prints and what the runtime
# counted in a step: all the same, under the same names.
import json
import re
import sys
from collections import Counter

program, model = (json.load(open(path)) for path in sys.argv[1:3])
assert program["explained"] == model["explained"], "the program's collectives are not those of the model and its plan"
assert program["census"] == model["census"]


def totals(entries):
    calls, sizes = Counter(), Counter()
    for entry in entries:
        if entry["function"] == "train_step":
            key = entry["kind"], entry["axis"]
            calls[key] += entry["calls"]
            sizes[key] += entry["bytes"]
    return calls, sizes


one_by_one = [{**entry, "bytes": entry["calls"] * entry["bytes"]} for entry in program["explained"]]
assert all(entry["role"] and entry["why"] and entry["removed_by"] and entry["seed"]["kind"] for entry in one_by_one)
calls, sizes = totals(one_by_one)
assert (calls, sizes) == totals(program["collectives"])



def by_name(entries):
    result = Counter()
    for entry in entries:
        if entry["function"] == "train_step":
            for what in ("calls", "bytes"):
                result[entry["kind"], entry["axis"], entry["name"], what] += entry[what]
    return result


named = by_name(one_by_one)
assert named == by_name(program["collectives"]), "explain has two names for one collective"
printed = Counter()
for line in open(sys.argv[3]):
    if found := re.fullmatch(r"  ([\d,]+) (\w+) over (\w+), ([\d,]+) bytes: (.+)\n", line):
        for what, number in (("calls", found[1]), ("bytes", found[4])):
            printed[found[2], found[3], found[5], what] += int(number.replace(",", ""))
assert named == printed, "the program's census has names of its own"

counted_calls, counted_sizes = Counter(), Counter()
for line in open(sys.argv[3]):
    found = re.search(r"([\d,]+) (\w+) over (\w+) \(\d+ ranks\), ([\d,]+) bytes per step and rank", line)
    if found:
        key = found[2], found[3]
        counted_calls[key] += int(found[1].replace(",", ""))
        counted_sizes[key] += int(found[4].replace(",", ""))
assert (calls, sizes) == (counted_calls, counted_sizes), (calls, sizes, counted_calls, counted_sizes)

census = next(entry for entry in program["census"] if entry["function"] == "train_step")
added = Counter()
for place in census["places"]:
    for direction in ("forward", "backward"):
        for kind, count in place[direction].items():
            added[kind] += count["calls"] * (census["micro_batches"] if place["per"] == "micro-batch" else 1)
by_kind = Counter()
for (kind, axis), count in calls.items():
    by_kind[kind] += count
assert added == by_kind, (added, by_kind)
print("the census is what the runtime counts:", ", ".join(f"{n} {kind}" for kind, n in sorted(by_kind.items())))
