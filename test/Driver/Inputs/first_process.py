"""first_process.py BUILD: the exit statuses of first processes of a namespace of their own that get SIGTERM."""
import os
import pathlib
import signal
import subprocess
import sys
import time

BIN = pathlib.Path(sys.argv[1]) / "bin"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "Support"))
from supervised import TEXT, children  # noqa: E402

PROGRAM = """#!/bin/bash
touch ready.$RANK
while :; do sleep 0.02; done
"""


def ends(what, words, is_ready):
    process = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not is_ready():
        assert process.poll() is None and time.monotonic() < end, what
        time.sleep(0.02)
    os.kill(children(process.pid)[0], signal.SIGTERM)
    try:
        print(f"{what}: {process.wait(20)}", flush=True)
    finally:
        process.kill()


def has_steps(log):
    return os.path.exists(log) and len(pathlib.Path(log).read_text().splitlines()) > 3


words = [BIN / "partita_rt_example_dp2", "--data", TEXT, "--init", "seed:1", "--steps", 100000000, "--print-every", 100000000]
ends("a program that saves", [*words, "--log", "a.csv", "--checkpoint", "saved"], lambda: has_steps("a.csv"))
assert os.listdir("saved")
ends("a program without a checkpoint", [*words, "--log", "b.csv"], lambda: has_steps("b.csv"))
folder = pathlib.Path("two")
folder.mkdir()
(folder / "manifest.json").write_text('{"program": "program", "target": "cuda", "ranks": 2}')
(folder / "program").write_text(PROGRAM)
(folder / "program").chmod(0o755)
ends("a supervisor", [BIN / "partita", "run", folder], lambda: os.path.exists("ready.0") and os.path.exists("ready.1"))
