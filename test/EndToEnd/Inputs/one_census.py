# one_census.py manifest.json: prints the rows of the census, which must be the records that explain has, added up by name.
import json
import sys
from collections import Counter

manifest = json.load(open(sys.argv[1]))


def by_name(entries, of_one_call):
    result = Counter()
    for entry in entries:
        key = entry["function"], entry["kind"], entry["axis"], entry["name"]
        result[key, "calls"] += entry["calls"]
        result[key, "bytes"] += entry["bytes"] * (entry["calls"] if of_one_call else 1)
    return result


told, counted = by_name(manifest["explained"], True), by_name(manifest["collectives"], False)
assert told == counted, (told - counted, counted - told)
for (function, kind, axis, name), what in counted:
    if what == "calls" and function == "train_step":
        print(f"{kind} over {axis}: {name}")
