"""Compares what `partita import --report` recognizes in each export at --dim batch=1 and batch=2.

    batch_of_one.py DATA

DATA is test/Data. Prints a line for each export that differs, and how many there are. Needs partita in the PATH.
"""
import json
import pathlib
import subprocess
import sys

# A model takes the first of these that it has.
DIMS = [["--dim", "sequence=32"], ["--dim", "sequence=32", "--dim", "decoder_sequence=16"], []]


def raised(path, batch):
    """What was recognized, by composite; the message if the model could not be imported."""
    for dims in DIMS:
        done = subprocess.run(["partita", "import", str(path), "--dim", f"batch={batch}", *dims, "--report", "--json"], capture_output=True, text=True)
        report = json.loads(done.stdout).get("program", {}) if done.returncode == 0 else {}
        if "raised" in report:
            return report["raised"]
    return done.stderr.strip() or "its dimensions are not bound"


def main(data):
    paths = sorted(path for folder in ("families", "further", "losses", "newest", "folded") for path in (data / folder).glob("*.onnx"))
    differ = 0
    for path in paths:
        one, two = raised(path, 1), raised(path, 2)
        if one != two or not isinstance(one, dict):
            differ += 1
            print(f"{path.name}: {one} at batch=1, {two} at batch=2")
    print(f"{len(paths)} exports: {differ} differ")


main(pathlib.Path(sys.argv[1]))
