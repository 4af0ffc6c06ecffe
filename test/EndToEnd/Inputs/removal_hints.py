# removal_hints.py MODEL ... -- FOLDER OPTION ...: what `partita explain` says would remove a collective does remove it, with and
# without sequence parallelism: the weights that it says to keep full, and the option that it says to leave out.
import json
import re
import subprocess
import sys
from collections import Counter

split = sys.argv.index("--")
models, (folder, *options) = sys.argv[1:split], sys.argv[split + 1:]


def explain(model, *more):
    command = ["partita", "explain", f"{folder}/{model}.onnx", *options, *more, "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return None, done.stderr
    return [e for e in json.loads(done.stdout)["explained"] if e["function"] == "train_step"], ""


def count(entries, key):
    return Counter((e["kind"], e["name"], e["role"], e["op"], e["letter"]) for e in entries)[key]


def key_of(entry):
    return entry["kind"], entry["name"], entry["role"], entry["op"], entry["letter"]


checked = 0
for model in models:
    plain, why = explain(model)
    assert plain is not None, (model, why)
    sequence, _ = explain(model, "--sequence-parallel")
    for entries, mode in ((plain, []), (sequence or [], ["--sequence-parallel"])):
        tried = {}
        for entry in entries:
            told, key = entry["removed_by"], key_of(entry)
            if "--sequence-parallel replaces" in told:
                assert not mode and sequence is not None, (model, mode, key, "cannot have sequence parallelism")
                assert not count(sequence, key), (model, key, "remains with --sequence-parallel")
                checked += 1
            if "without --sequence-parallel" in told:
                assert mode and not count(plain, key), (model, mode, key, "remains without --sequence-parallel")
                checked += 1
            for request in re.findall("--shard '([^']*)'", told):
                if request not in tried:
                    tried[request] = explain(model, *mode, "--shard", request)
                without, why = tried[request]
                assert without is not None or "nothing" in why, (model, mode, key, request, why)
                assert without is None or not count(without, key), (model, mode, key, request, "remains")
                checked += 1
print(len(models), "models,", checked, "ways to remove a collective that do")
