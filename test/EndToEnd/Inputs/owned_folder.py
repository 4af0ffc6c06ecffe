#!/usr/bin/env python3
"""owned_folder.py FOLDER: supervised runs of FOLDER/two and others that want their folder for checkpoints or their log, or whose
checkpoints are there already."""
import re
import shutil
import subprocess
import sys

import supervised
from disturbed import MPIRUN, Runs, until
from supervised import TRAIN, steps

runs = Runs(sys.argv[1])
folder, run, losses, files = runs.folder, runs.run, runs.losses, runs.files

# While a supervisor waits for its next start, its folder and its log are its own, though no rank has them.
hosts, refused = folder / "hosts", []
hosts.write_text("localhost:2\n")
def intrude(line):
    if ": waits up to 10 minutes for hosts" not in line:
        return
    owned = ["--checkpoint", str(folder / "waiting"), "--resume", "auto"]
    try:
        for words in (["partita", "run", str(folder / "two"), *TRAIN, *owned], ["partita", "run", str(folder / "two"), *TRAIN, *owned, "--max-restarts", "1"],
                      ["partita", "run", str(folder / "two"), *TRAIN, "--log", str(folder / "waiting.csv")], [str(folder / "two/two"), *TRAIN, *owned],
                      [str(folder / "two/two"), *TRAIN[:-2], "--log", str(folder / "waiting.csv")]):
            second = subprocess.run(words, capture_output=True, text=True, timeout=100)
            refused.append((second.returncode, second.stderr))
    finally:
        hosts.write_text("localhost:2\n")
status, errors = run("waiting", "--max-restarts", "1", "--host-discovery", f"cat {hosts}", "--launcher", MPIRUN, kills=("step-10",),
                     before=lambda: hosts.write_text("localhost:1\n"), said=intrude)
assert status == 0 and re.search(r"restart 1 of 1, from .*/step-\d+\n", errors), errors
runs.check("waiting")
assert [code for code, _ in refused] == [1, 1, 1, 1, 1], refused
for (_, text), said in zip(refused, ("--checkpoint: another run writes into .*/waiting: its supervisor .process \\d+. may be about to start it again",) * 2 +
                           ("--log: another run writes .*/waiting.csv: its supervisor .process", "--checkpoint: another run writes into .*/waiting; give",
                            "--log: another run writes .*/waiting.csv; give")):
    assert re.search(said, text), (said, text)
# A restart that is about to go on from a checkpoint does not begin again if there is none any more once the hosts are there.
def empty():
    for checkpoint in (folder / "emptied").glob("step-*"):
        shutil.rmtree(checkpoint)
for name, change, said in (("emptied", empty, r"emptied' has lost .*/emptied/step-\d+, and has no other checkpoint"),
                           ("absent", lambda: (folder / "absent").rename(folder / "elsewhere"), "absent' is not the folder that the run started with")):
    hosts.write_text("localhost:2\n")
    def change_while_it_waits(line):
        if ": waits up to 10 minutes for hosts" in line:
            change()
            hosts.write_text("localhost:2\n")
    status, errors = run(name, "--max-restarts", "2", "--host-discovery", f"cat {hosts}", "--launcher", MPIRUN, kills=("step-10",),
                         before=lambda: hosts.write_text("localhost:1\n"), said=change_while_it_waits, start=("env", "PARTITA_PATIENCE=folder:1"))
    assert status == 1 and re.search(said, errors) and "from the beginning" not in errors and "; restart " not in errors, (name, status, errors)
    assert not list((folder / name).glob("step-*")), name
# A run that another one overtakes between reading the folder and locking it does not remove the other's result.
supervised.build_preload("before_flock", folder / "before_flock.so")
(folder / "overtaken").mkdir()
overtake = f"cp -r {folder}/once/step-60 {folder}/overtaken"
for options, expected, said in (((), 1, "give each run a folder of its own"), (("--overwrite",), 1, "give each run a folder of its own"),
                                (("--resume", "auto"), 3, "start it again to go on from there")):
    shutil.rmtree(folder / "overtaken/step-60", ignore_errors=True)
    status, errors = run("overtaken", *options, start=("env", f"LD_PRELOAD={folder}/before_flock.so", f"BEFORE_FLOCK={overtake}"))
    assert status == expected and re.search(f"--checkpoint: another run has saved into .*/overtaken, or removed from it, while this one was starting; {said}", errors), (status, errors)
    assert supervised.files(folder / "overtaken/step-60") == files("once")
status, errors = run("overtaken", "--resume", "auto")
assert status == 0, errors
# A run has its folder from its first step on, though it has saved nothing: another one is refused at once, and by its supervisor for good.
owner = subprocess.Popen(runs.endless("owner", folder=folder / "owned/by/owner", every=100000), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
until(lambda: steps(folder / "owner.csv") > 0)
status, errors = run("owned/by/owner", "--max-restarts", "3")
assert status == 1 and "another run writes into" in errors and "; restart " not in errors, (status, errors)
owner.kill()
owner.wait()
# Before the first save of a run that replaces another's checkpoints, a restart begins again, with the seed of the new run.
shutil.copytree(folder / "once", folder / "replaced")
other = [*TRAIN[:3], "seed:2", *TRAIN[4:-1], "25", "--checkpoint-copy", "off"]  # so that steps 25 and 50 have one before the next
status, errors = run("replaced", "--max-restarts", "3", "--overwrite", kills=(3, "step-25", "step-50"), train=other)
assert status == 0 and "restart 1 of 3, from the beginning" in errors, errors
assert all(re.search(f"restart {number} of 3, from .*/step-{step}", errors) for number, step in ((2, 25), (3, 50))), errors
status, errors = run("second", train=other)
assert losses("replaced") == losses("second") and files("replaced") == files("second") != files("once")
# A copy of another run's checkpoint under another name stays, and no restart goes on from it, nor begins again because of it.
shutil.copytree(folder / "once", folder / "beside")
(folder / "beside/step-55").rename(folder / "beside/step-7")
status, errors = run("beside", "--max-restarts", "2", "--overwrite", kills=("step-25", "step-50"), train=other)
assert status == 0 and all(re.search(f"restart {number} of 2, from .*/step-{step}\n", errors) for number, step in ((1, 25), (2, 50))), errors
assert losses("beside") == losses("second") and files("beside") == files("second") and (folder / "beside/step-7").exists()
# A rank that is killed before the program has refused another run's checkpoints must not go on from them.
launcher = folder / "launcher"
launcher.write_text(f"#!/bin/sh\ntest -e {folder}/begun && exec \"$@\"\ntouch {folder}/begun\nkill -9 $$\n")
launcher.chmod(0o755)
status, errors = run("second", "--max-restarts", "2", "--launcher", str(launcher))
assert status == 1 and "restart 1 of 2" in errors and "--resume continues it" in errors, (status, errors)
print("a run has its folder for itself")
