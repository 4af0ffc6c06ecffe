"""Compares --stages auto with all other cuts by the time that `partita explain` shows: all_cuts.py STAGES,... LAYERS MODEL OPTION..."""
import itertools
import json
import subprocess
import sys


def slowest(model, stages, assign, options):
    done = subprocess.run(["partita", "explain", model, "--mesh", f"pp={stages}", "--stages", assign, "--json", *options],
                          capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return max(stage["work"] for stage in json.loads(done.stdout)["schedule"]["stages"])


counts, layers, model, *options = sys.argv[1:]
for stages in map(int, counts.split(",")):
    own = slowest(model, stages, "auto", options)
    for cuts in itertools.combinations(range(1, int(layers)), stages - 1):
        other = slowest(model, stages, "cuts:" + ",".join(map(str, cuts)), options)
        if other < own:
            sys.exit(f"{stages} stages: the slowest takes {own} with auto, {other} with cuts {cuts}")
