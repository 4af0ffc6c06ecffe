"""tp_memory.py MODEL TP WHOLE OPTION ...: by the ledger a rank of TP has of every parameter, of its optimizer states and of its
gradient 1/TP, of those whose names match the regular expression WHOLE all."""
import json
import re
import subprocess
import sys

model, ranks, full, *options = sys.argv[1:]
ranks = int(ranks)


def ledger(mesh):
    plan = [option for option in options if mesh != "dp=1" or option != "--sequence-parallel"]
    command = ["partita", "explain", model, *plan, "--accumulate", "2", "--mesh", mesh, "--memory", "--json"]
    memory = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["memory"]
    kinds = {kind["kind"]: kind["bytes"] for kind in memory["kinds"]}
    parameters, states, gradients = {}, {}, []
    for entry in memory["ledger"]:
        if entry["kind"] == "parameter":
            parameters[entry["name"]] = entry["bytes"]
        elif entry["kind"] == "state":
            states[entry["name"]] = entry["bytes"]
        elif entry["kind"] == "gradient" and entry["name"].endswith("(sum of micro-batches)"):
            gradients.append(entry["bytes"])
    aligned = lambda sizes: sum((size + 15) // 16 * 16 for size in sizes)
    assert kinds["parameter"] == aligned(parameters.values())
    assert memory["persistent"] - kinds["parameter"] >= aligned(states.values())
    return parameters, states, gradients


(parameters, states, gradients), (part, part_states, part_gradients) = ledger("dp=1"), ledger(f"tp={ranks}")
assert parameters.keys() == part.keys() and states.keys() == part_states.keys()
split = [name for name in parameters if not re.search(full, name)]
assert split and len(split) < len(parameters)
for name, size in parameters.items():
    share = ranks if name in split else 1
    assert part[name] * share == size, (name, size, part[name], share)
    moments = {f"{name}.{moment}" for moment in "mv"}
    assert moments <= states.keys(), (name, list(states)[:9])
    for moment in moments:
        assert part_states[moment] * share == states[moment] == size, moment
# Between the passes there is one gradient for each parameter, of its size.
assert sorted(gradients) == sorted(parameters.values()), gradients
assert sorted(part_gradients) == sorted(part.values()), part_gradients
print(f"{len(split)} of {len(parameters)} parameters: {sum(parameters[n] for n in split)} bytes, on each of {ranks} ranks "
      f"{sum(part[n] for n in split)}, their gradients as much, their states twice that")
