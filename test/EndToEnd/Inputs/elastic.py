#!/usr/bin/env python3
"""elastic.py FOLDER: runs of FOLDER/both, programs of four and of two ranks, that lose ranks for good while they train, and get them back. Every
step is in the log once, with the loss of an undisturbed run within a relative 1e-5."""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import supervised
from supervised import TRAIN, ranks

folder = pathlib.Path(sys.argv[1])
MPIRUN, TORCHRUN = " ".join(supervised.MPIRUN), " ".join(supervised.TORCHRUN)
hosts, lost = folder / "hosts", folder / "lost"


def run(name, *options, changes=()):
    """Runs to the end. `changes`: (step, change): once the step's checkpoint is complete, makes the change and kills a rank."""
    process = subprocess.Popen(["partita", "run", str(folder / "both"), *TRAIN, "--checkpoint", str(folder / name), "--log",
                                str(folder / f"{name}.csv"), *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for step, change in changes:
        end = time.monotonic() + 100
        found = []
        while not ((folder / name / f"step-{step}").exists() and found):
            assert time.monotonic() < end and process.poll() is None, (name, step, process.poll())
            found = ranks(process.pid, "both-dp4") + ranks(process.pid, "both-dp2")
            time.sleep(0.002)
        change()
        os.kill(found[-1], signal.SIGKILL)
    errors = process.communicate(timeout=200)[1]
    assert process.returncode == 0, (name, errors)
    return re.findall(r"restart (\d) of \d( with \d ranks instead of \d)?(?: in 1 s)?, from .*/step-\d+\n", errors)


def losses(name):
    return [[float(step), float(loss)] for step, loss, _ in supervised.losses(folder / f"{name}.csv")[1:]]


def compare(name):
    for own, other in zip(losses(name), losses("once"), strict=True):
        assert own[0] == other[0] and abs(own[1] - other[1]) < 1e-5 * other[1], (name, own, other)


assert run("once") == [] and len(losses("once")) == 60

# A command tells how many slots there are.
hosts.write_text("localhost slots=4\n")
restarts = run("found", "--max-restarts", "2", "--launcher", MPIRUN + " --host {hosts} -np {ranks}", "--host-discovery", f"cat {hosts}",
               changes=[(5, lambda: hosts.write_text("# one of four is gone\nlocalhost:3\n")), (30, lambda: hosts.write_text("localhost:4\n"))])
assert restarts == [("1", " with 2 ranks instead of 4"), ("2", " with 4 ranks instead of 2")], restarts
compare("found")
print("found: from 4 ranks to 2 and back, the same losses")

# It may not know yet which hosts are gone.
launcher, calls = folder / "launcher", folder / "calls"
launcher.write_text(f"#!/bin/sh\nif test -e {lost} && test $1 = 4; then echo 'a host is gone' >&2; exit 1; fi\nexec {MPIRUN} -np \"$@\"\n")
launcher.chmod(0o755)
restarts = run("late", "--max-restarts", "2", "--launcher", f"{launcher} {{ranks}}", "--host-discovery",
               f"echo >> {calls}; test $(wc -l < {calls}) -gt 2 && echo localhost:2 || echo localhost:4", changes=[(5, lost.touch)])
assert restarts == [("1", ""), ("2", " with 2 ranks instead of 4")], restarts
compare("late")
lost.unlink()
print("late: from 4 ranks to 2, the same losses")

# The ranks may be torchrun's.
hosts.write_text("localhost:4\n")
restarts = run("tcp", "--max-restarts", "1", "--launcher", TORCHRUN + " -np {ranks}", "--host-discovery", f"cat {hosts}",
               changes=[(5, lambda: hosts.write_text("localhost:3\n"))])
assert restarts == [("1", " with 2 ranks instead of 4")], restarts
compare("tcp")
print("tcp: from 4 ranks to 2, the same losses")

# Nothing tells: two starts in succession that fail show that ranks are lost.
restarts = run("tried", "--max-restarts", "3", "--launcher", f"{launcher} {{ranks}}", changes=[(5, lost.touch)])
assert restarts == [("1", ""), ("2", ""), ("3", " with 2 ranks instead of 4")], restarts
compare("tried")
print("tried: from 4 ranks to 2, the same losses")

# So do two that crash in their set-up.
launcher.write_text(f"#!/bin/sh\nif test -e {lost} && test $1 = 4; then kill -9 $$; fi\nexec {MPIRUN} -np \"$@\"\n")
lost.unlink()
restarts = run("crashed", "--max-restarts", "3", "--launcher", f"{launcher} {{ranks}}", changes=[(5, lost.touch)])
assert restarts == [("1", ""), ("2", ""), ("3", " with 2 ranks instead of 4")], restarts
compare("crashed")
print("crashed: from 4 ranks to 2, the same losses")

def wait_for_hosts(name, waits, then, patience="hosts:600"):
    """The first start finds four slots; after a rank is killed, discovery runs the command `waits`. Calls `then` with the process when it does; returns
    status and errors."""
    calls.unlink(missing_ok=True)
    process = subprocess.Popen(["partita", "run", str(folder / "both"), *TRAIN, "--checkpoint", str(folder / name), "--max-restarts", "2",
                                "--host-discovery", f"echo >> {calls}; test $(wc -l < {calls}) -gt 1 && {waits} || echo localhost:4"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=dict(os.environ, PARTITA_PATIENCE=patience))
    end = time.monotonic() + 100
    killed = False
    while not killed or len(calls.read_text()) < 2:
        assert time.monotonic() < end and process.poll() is None, (name, process.poll())
        if not killed and (folder / name / "step-5").exists() and (found := ranks(process.pid, "both-dp4")):
            os.kill(found[-1], signal.SIGKILL)
            killed = True
        time.sleep(0.002)
    then(process)
    errors = process.communicate(timeout=20)[1]
    return process.returncode, errors


# A signal ends the wait for hosts too, and a command that hangs.
for name, waits in (("few", "echo localhost:1"), ("hangs", "sleep 1000")):
    status, errors = wait_for_hosts(name, waits, subprocess.Popen.terminate)
    assert status == -signal.SIGTERM and "(Killed), and SIGTERM has ended the wait for a restart\n" in errors, (name, errors)
print("asked: a signal ends the wait for hosts")

# Patience does as well: with too few hosts, with a command that fails, and with one that hangs.
few = " found 1 slot; the smallest program needs 2"
for name, waits, why in (("tooFew", "echo localhost:1", few), ("fails", "{ false; exit 7; }", " exited with status 7"),
                         ("tooLong", "exec sleep 1000", " has not ended within 1 s")):
    status, errors = wait_for_hosts(name, waits, lambda process: None, "hosts:2,discovery:1")
    assert status == 3 and "partita run: waits up to 2 s for hosts: " in errors and "; restart " not in errors, (name, status, errors)
    assert re.search(r"\(Killed\), and cannot be started again: --host-discovery.*" + re.escape(why) + "\n", errors), (name, errors)
print("without hosts: the wait ends")
