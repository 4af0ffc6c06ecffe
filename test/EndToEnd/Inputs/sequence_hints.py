# sequence_hints.py MODEL ... -- FOLDER OPTION ...: the all-reduces that --sequence-parallel replaces, according to `partita explain`, are
# those that it does replace.
import json
import subprocess
import sys

split = sys.argv.index("--")
models, (folder, *options) = sys.argv[1:split], sys.argv[split + 1:]


def sums(model, *more):
    command = ["partita", "explain", f"{folder}/{model}.onnx", *options, *more, "--json"]
    explained = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["explained"]
    return {(e["name"], e["op"], e["letter"]): e for e in explained
            if e["function"] == "train_step" and e["kind"] == "all_reduce" and e["role"] != "parameter"}


total = 0
for model in models:
    plain, sequence = sums(model), sums(model, "--sequence-parallel")
    told = {key for key, entry in plain.items() if "--sequence-parallel replaces" in entry["removed_by"]}
    assert told == plain.keys() - sequence.keys(), (model, told ^ (plain.keys() - sequence.keys()))
    assert {plain[key]["direction"] for key in told} == {"forward", "backward"}, model
    total += len(told)
print(len(models), "models,", total, "sums that --sequence-parallel replaces")
