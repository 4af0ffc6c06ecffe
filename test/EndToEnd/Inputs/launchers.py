#!/usr/bin/env python3
"""launchers.py FOLDER: launchers of supervised runs of FOLDER/two that end before their ranks or after them, stop, get signals, and hide
what their ranks do. Nothing is lost, nothing is started beside the ranks there are."""
import os
import re
import signal
import subprocess
import sys
import time

import supervised
from disturbed import MPIRUN, TORCHRUN, Runs, until
from supervised import TRAIN, ranks, steps

runs = Runs(sys.argv[1])
folder, run = runs.folder, runs.run

# A launcher may end before its ranks, which save: the supervisor ends after them. It ends with a signal (busy), which the supervisor passes on, or
# by itself (left-alone), so that nobody but the supervisor can tell the ranks.
left = folder / "left"
left.write_text(f"#!/bin/sh\nsetsid {TORCHRUN} \"$@\" &\nuntil test -e {folder}/left-alone/step-5; do sleep 0.05; done\n")
left.chmod(0o755)
for name, launcher in (("busy", TORCHRUN), ("left-alone", str(left))):
    words = runs.endless(name, "--keep", "2")
    with open(folder / f"{name}.err", "w") as errors:
        first = subprocess.Popen([*words, "--max-restarts", "1", "--launcher", launcher], stdout=subprocess.DEVNULL, stderr=errors)
    until(lambda: (folder / name / "step-10").exists() and len(ranks(first.pid, "two")) == 2)
    # Meanwhile another run on its folder is refused, though the folder gets new checkpoints.
    second = subprocess.run([*words, "--resume", "auto", "--max-restarts", "2"], capture_output=True, text=True, timeout=100)
    assert second.returncode == 1 and "another run writes into" in second.stderr and "; restart " not in second.stderr, second
    found = ranks(first.pid, "two")
    first.terminate()
    first.wait(100)
    assert len(found) == 2 and not any(os.path.exists(f"/proc/{rank}/exe") for rank in found), (name, found)  # no zombie has one
    errors = (folder / f"{name}.err").read_text()
    assert first.returncode == -signal.SIGTERM and "finishing the step" in errors and not list((folder / name).glob("*.tmp")), (first.returncode, errors)
    assert max(int(path.name[5:]) for path in (folder / name).iterdir()) == steps(folder / f"{name}.csv"), errors
# Nobody has asked the run to end if its launcher was killed, or ends too early: it goes on, though its ranks have got SIGTERM, and saved.
status, errors = run("killed", "--max-restarts", "1", "--launcher", TORCHRUN, kills=("step-10",), victim_of=lambda process: supervised.children(process)[0])
assert status == 0 and re.search(r"the launcher was ended by signal 9 \(Killed\); restart 1 of 1, from .*/step-\d+\n", errors), errors
runs.check("killed")
# What a killed launcher has left behind, which would start ranks again beside the restart's, ends first.
wrapper = folder / "wrapper"
wrapper.write_text(f"#!/bin/sh\n{TORCHRUN} --max-restarts 3 \"$@\"\nexit $?\n")
wrapper.chmod(0o755)
status, errors = run("wrapped", "--max-restarts", "1", "--resume", "auto", "--launcher", str(wrapper), kills=("step-5",),
                     victim_of=lambda process: supervised.children(process)[0], start=("env", "PARTITA_PATIENCE=mark:1"))
assert status == 0 and "another run writes" not in errors, (status, errors)  # its ranks may have done all before they are told
runs.check("wrapped")
# A run is complete when all is done, whatever its launcher does then.
wrapper.write_text(f"#!/bin/sh\n{TORCHRUN} \"$@\"\nexit ${{STATUS}}\n")
for code, expected in ((1, 1), (3, 0)):
    status, errors = run(f"done-{code}", "--max-restarts", "1", "--launcher", str(wrapper), start=("env", f"STATUS={code}"))
    assert status == expected and "; restart " not in errors and f"partita run: all is done; the launcher has ended with status {code}" in errors, (status, errors)
status, errors = run("halted", "--max-restarts", "1", "--launcher", TORCHRUN, kills=("step-10",), number=signal.SIGSTOP,
                     victim_of=lambda process: supervised.children(process)[0], start=("env", "PARTITA_PATIENCE=launcher:1"))
assert status == 0 and "all is done; its ranks on this host have ended, and the launcher is stopped\n" in errors, (status, errors)
early = folder / "early-launcher"
early.write_text(f"#!/bin/sh\ntest -e {folder}/hasty/step-5 && exec {TORCHRUN} \"$@\"\nsetsid {TORCHRUN} \"$@\" &\nuntil test -e {folder}/hasty/step-5; do sleep 0.05; done\n")
early.chmod(0o755)
hasty = supervised.WatchedRun(runs.endless("hasty", "--max-restarts", "1", "--launcher", str(early)), dict(os.environ, PARTITA_PATIENCE="mark:1"))
early_end = "the launcher has ended with status 0, but the newest checkpoint is of step "
until(lambda: any(early_end in line and "; restart 1 of 1, from " in line for _, line in hasty.errors) or not hasty.alive())
assert hasty.alive(), hasty.errors
hasty.process.terminate()
assert hasty.process.wait(100) == -signal.SIGTERM, hasty.errors
# mpirun that gets a signal hides that its ranks have saved and ended by it: the run ends, as it was asked to.
words = runs.endless("told", "--keep", "2", "--max-restarts", "3", "--launcher", f"mpirun --mca odls_base_sigkill_timeout 5 {MPIRUN.removeprefix('mpirun ')}")
told = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
until(lambda: (folder / "told/step-10").exists() and len(ranks(told.pid, "two")) == 2)
os.kill(supervised.children(told.pid)[0], signal.SIGTERM)
errors = told.communicate(timeout=100)[1]
assert told.returncode == -signal.SIGTERM and "finishing the step" in errors and "; restart " not in errors, (told.returncode, errors)
# A signal to a supervisor that has not seen yet that its program was killed.
words = runs.endless("unseen", "--keep", "2", "--max-restarts", "3")
unseen = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
until(lambda: (folder / "unseen/step-10").exists())
victim = ranks(unseen.pid, "two")[-1]
for process, number in ((unseen.pid, signal.SIGSTOP), (victim, signal.SIGKILL), (unseen.pid, signal.SIGTERM), (unseen.pid, signal.SIGCONT)):
    os.kill(process, number)
errors = unseen.communicate(timeout=100)[1]
assert unseen.returncode == -signal.SIGTERM and "was ended by signal 9 (Killed), and SIGTERM ends the run" in errors, (unseen.returncode, errors)
# Launchers send a signal twice, which is one signal: the checkpoint may take longer than what ends ranks that do not end by themselves.
supervised.build_preload("slow_rename", folder / "slow.so")
# So may that of ranks below mpirun, which would kill them two seconds after it has got a signal itself.
for name, launcher in (("twice", []), ("below", ["--launcher", MPIRUN])):
    words = runs.endless(name, "--max-restarts", "1", *launcher, every=100000)
    (folder / "renaming").unlink(missing_ok=True)
    twice = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=folder,
                             env=dict(os.environ, LD_PRELOAD=str(folder / "slow.so"), SLOW_RENAME="6.5"))
    until(lambda: steps(folder / f"{name}.csv") > 3)
    for _ in range(2):
        twice.terminate()
        time.sleep(0.3)
    errors = twice.communicate(timeout=100)[1]
    assert twice.returncode == -signal.SIGTERM and (folder / "renaming").exists(), (name, twice.returncode, errors)
    assert [path.name for path in (folder / name).iterdir()] == [f"step-{steps(folder / f'{name}.csv')}"], (name, errors)
# A launcher that is stopped before it has started a rank keeps all waiting.
stops = folder / "stops"
stops.write_text(f"#!/bin/sh\ntest -e {folder}/has-stopped && exec {MPIRUN} \"$@\"\ntouch {folder}/has-stopped\nkill -STOP $$\n")
stops.chmod(0o755)
status, errors = run("late", "--max-restarts", "1", "--timeout", "2", "--launcher", str(stops))
assert status == 0 and re.search(r"the launcher \(process \d+\) has been stopped for \d+\.\d s, before it has started a rank on this host; restart 1 of 1, from the beg", errors), errors
runs.check("late")
# One that starts nothing, and says that all is well.
status, errors = run("nothing", "--max-restarts", "2", "--launcher", "true")
assert status == 1 and errors.count("\n") == 1 and "error: the launcher has ended with status 0 without starting a rank on this host" in errors, (status, errors)
# Nor does it say anything if no checkpoint is wanted: then nothing shows whether anything was done.
words = ["partita", "run", str(folder / "two"), *TRAIN[:6]]
nothing = subprocess.run([*words, "--launcher", "true"], capture_output=True, text=True, timeout=100)
assert nothing.returncode == 0 and "warning: the launcher has ended with status 0, and no rank on this host has confirmed" in nothing.stderr, nothing
# A launcher may say that all is well though a rank has died.
launcher = folder / "launcher"
launcher.write_text(f"#!/bin/sh\n{MPIRUN} \"$@\"\nexit 0\n")
launcher.chmod(0o755)
status, errors = run("hidden", "--max-restarts", "1", "--launcher", str(launcher), kills=("step-10",))
assert status == 0 and re.search(r"with status 0, but the newest checkpoint is of step \d+ of 60; restart 1 of 1, from", errors), errors
runs.check("hidden")
# The same without checkpoints: what ranks have said shows it.
killed = subprocess.Popen([*words[:-1], "100000", "--log", str(folder / "unsaved.csv"), "--launcher", str(launcher)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
until(lambda: steps(folder / "unsaved.csv") > 3)
os.kill(ranks(killed.pid, "two")[-1], signal.SIGKILL)
errors = killed.communicate(timeout=100)[1]
assert killed.returncode == 3, (killed.returncode, errors)
assert re.search(r"partita run: error: the launcher has ended with status 0, but no rank on this host has finished its work: rank 1 \(host \S+, process \d+\) died\n", errors), errors
# mpirun that finds no such command has a status that looks like a signal's.
status, errors = run("unknown", "--max-restarts", "2", "--launcher", f"{MPIRUN} nowhere")
assert status != 0 and "; restart " not in errors and "and no rank was seen on this host" in errors, (status, errors)
# A supervisor that is killed, and started again before the ranks that it leaves have saved and ended.
words = ["partita", "run", str(folder / "two"), *TRAIN, "--checkpoint", str(folder / "left-behind"), "--log", str(folder / "left-behind.csv"), "--resume", "auto",
         "--max-restarts", "1", "--launcher", MPIRUN]
first = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, LD_PRELOAD=str(folder / "slow.so"), SLOW_RENAME="1.5"), cwd=folder)
until(lambda: steps(folder / "left-behind.csv") > 7)
first.kill()
again = subprocess.run(words, capture_output=True, text=True, timeout=100)
assert again.returncode == 0 and "another run writes" not in again.stderr, (again.returncode, again.stderr)
runs.check("left-behind")
print("launchers end, stop and hide what their ranks do")
