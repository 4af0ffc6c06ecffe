#!/usr/bin/env python3
"""restarts.py FOLDER: kills processes of supervised runs of FOLDER/two, a program of two ranks, at chosen steps. Losses, log and
checkpoint must be those of an undisturbed run; what a restart cannot help, or must not undo, is not restarted."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import supervised
from supervised import TRAIN, ranks, steps

folder = pathlib.Path(sys.argv[1])
MPIRUN, TORCHRUN = (" ".join([*launcher, "-np", "2"]) for launcher in (supervised.MPIRUN, supervised.TORCHRUN))


def files(name):
    return supervised.files(folder / name / "step-60")


def losses(name):
    return supervised.losses(folder / f"{name}.csv")


def run(name, *options, kills=(), number=signal.SIGKILL, before=lambda: None, said=lambda line: None, train=TRAIN, start=(), program="two",
        victim_of=lambda process: ranks(process, "two")[-1]):
    """Runs to the end, under the command `start`, killing a rank, or another process below the first, once the log of steps has these lengths, or these checkpoints are complete;
    `before` is called while that rank is stopped, `said` with each line of errors. Returns status and errors."""
    log, errors = folder / f"{name}.csv", []
    process = subprocess.Popen([*start, "partita", "run", str(folder / program), *train, "--checkpoint", str(folder / name), "--log", str(log),
                                *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    def read_errors():
        for line in process.stderr:
            errors.append(line)
            said(line)
    reader = threading.Thread(target=read_errors)
    reader.start()
    for count in kills:
        end = time.monotonic() + 100
        def waits():
            if isinstance(count, int):
                return steps(log) < count
            there = {path.name for path in (folder / name).iterdir()} if (folder / name).exists() else set()
            return count not in there or {"step-55", "step-60"} & there  # of the run whose checkpoints this one replaces
        while (waits() or not ranks(process.pid, "two")) and process.poll() is None:
            assert time.monotonic() < end, (name, count, steps(log))
            time.sleep(0.002)
        assert process.poll() is None, (name, count, errors)
        victim = victim_of(process.pid)
        os.kill(victim, signal.SIGSTOP)  # it must not write while `before` changes files
        before()
        os.kill(victim, number)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            os.kill(victim, signal.SIGCONT)
    status = process.wait(timeout=200)
    reader.join()
    return status, "".join(errors)


status, errors = run("once")
assert status == 0, errors
for name, launcher in (("threads", []), ("mpi", ["--launcher", MPIRUN]), ("tcp", ["--launcher", TORCHRUN])):
    status, errors = run(name, "--max-restarts", "3", *launcher, kills=("step-5", 17, "step-30"))
    assert status == 0, (name, errors)
    lost = r": rank 1 \(host \S+, process \d+\) died"
    restarts = re.findall(r"partita run: (?:the program was ended by signal 9 \(Killed\)|the launcher has ended with status 1(?:37 \(Killed\))?" + lost + r"); restart (\d) of 3, (.*)",
                          errors)
    assert [number for number, _ in restarts] == ["1", "2", "3"], errors
    assert all(re.search(r"from .*/step-\d+$", where) for _, where in restarts), errors
    assert losses(name) == losses("once") and files(name) == files("once"), name
    if launcher:  # the last failure's, and before it the one before's
        flights = [sorted(path.name for path in (folder / name / flight).glob("rank-*")) for flight in ("flight", "flight/earlier")]
        assert flights == [[], ["rank-0.jsonl", "rank-1.jsonl"]], (name, flights)
    print(f"{name}: 3 kills, the same bits")

# torchrun restarts the ranks by itself.
status, errors = run("torchrun", "--resume", "auto", kills=("step-5", 17, "step-30"), start=[*TORCHRUN.split(), "--max-restarts", "3"])
assert status == 0 and len(re.findall("rank 1 .* died", errors)) == 3, errors
assert losses("torchrun") == losses("once") and files("torchrun") == files("once")
print("torchrun: 3 kills, the same bits")
# A program that is stopped, all of whose ranks are threads, cannot report it.
status, errors = run("stopped", "--max-restarts", "1", "--timeout", "2", kills=("step-10",), number=signal.SIGSTOP)
assert status == 0 and re.search(r"the program \(process \d+\) has been stopped for \d+\.\d s; restart 1 of 1, from .*/step-\d+$", errors, re.M), errors
assert losses("stopped") == losses("once") and files("stopped") == files("once")
# What a restart needs may come back.
text = folder / "text"
text.write_bytes(pathlib.Path(TRAIN[1].removeprefix("text:")).read_bytes())
def find_text(line):
    if "restart 2 of 9" in line:
        (folder / "away").rename(text)
status, errors = run("again", "--max-restarts", "9", kills=("step-10",), before=lambda: text.rename(folder / "away"), said=find_text,
                     train=[TRAIN[0], f"text:{text}", *TRAIN[2:]])
assert status == 0 and re.search(r"restart 2 of 9 in 1 s, from .*/step-\d+$", errors, re.M), errors
assert losses("again") == losses("once") and files("again") == files("once")
# A file system with the checkpoints, which is not mounted for a while: here a folder that another one stands in for.
mounted = folder / "mounted"
mounted.mkdir()
def unmount():
    mounted.rename(folder / "unmounted")
    mounted.mkdir()
    def mount():
        mounted.rmdir()
        (folder / "unmounted").rename(mounted)
    threading.Timer(0.7, mount).start()
status, errors = run("mounted/run", "--max-restarts", "2", kills=("step-10",), before=unmount)
assert status == 0 and re.search(r"restart 1 of 2, from .*/step-\d+$", errors, re.M), errors
assert losses("mounted/run") == losses("once") and files("mounted/run") == files("once")
# The folder itself is moved away, which was not there when the run began: nor does it begin again then.
def move():
    (folder / "moved").rename(folder / "away")
def move_back(line):
    if "; waits up to 30 s for the --checkpoint folder '" in line:
        (folder / "away").rename(folder / "moved")
status, errors = run("moved", "--max-restarts", "2", kills=("step-10",), before=move, said=move_back)
assert status == 0 and re.search(r"restart 1 of 2, from .*/step-\d+$", errors, re.M), errors
assert losses("moved") == losses("once") and files("moved") == files("once")
# One that stays away: whoever started the run again would begin again.
status, errors = run("gone", "--max-restarts", "2", kills=("step-10",), before=lambda: (folder / "gone").rename(folder / "elsewhere"),
                     start=("env", "PARTITA_PATIENCE=folder:1"))
assert status == 1 and "; restart " not in errors and "gone' is not the folder that the run started with" in errors, (status, errors)
print("a stopped program, and one that cannot start for a while, go on")

# torchrun hides that a rank was killed; that it trained, the ranks have said themselves before there was a checkpoint.
status, errors = run("early", "--max-restarts", "1", "--launcher", TORCHRUN, kills=(3,), train=[*TRAIN[:-1], "60"])
assert status == 0 and "restart 1 of 1, from the beginning: there is no checkpoint yet\n" in errors, errors
assert losses("early") == losses("once") and files("early") == files("once")

# A rate makes the loss of step 7 NaN, the second or the first step of a restart. The cause may be a flipped bit, so it is tried twice.
status, errors = run("spoilt", train=[*TRAIN[:5], "5", *TRAIN[6:]])
assert status == 0, errors
for name, launcher in (("threads", []), ("mpi", ["--launcher", MPIRUN]), ("tcp", ["--launcher", TORCHRUN])):
    for every, newest in ((5, 5), (1, 6)):
        copy = f"spoilt-{name}-{newest}"
        shutil.copytree(folder / "spoilt", folder / copy)
        status, errors = run(copy, "--resume", "auto", "--lr", "9e8", "--max-restarts", "9", "--checkpoint-copy", "off", *launcher,
                             train=[*TRAIN[:-1], str(every)])
        assert status == 1 and errors.count("; restart ") == 1 and re.search(rf"restart 1 of 9, from .*/step-{newest}\n", errors), (status, errors)
        again = rf"partita run: error: the loss of step 7 is -?nan again after a restart from .*/step-{newest}: it would recur\n"
        assert re.search(again, errors), errors
print("a loss that is NaN again is final: threads, mpi, tcp")

# Killed more often than it may be started again: another supervisor, such as a Slurm script, may start it, whatever the launcher says.
for name, launcher in (("often", []), ("often-tcp", ["--launcher", TORCHRUN])):
    status, errors = run(name, "--max-restarts", "1", *launcher, kills=(3, 17))
    assert status == 3 and "partita run: error: the program has failed 2 times; --max-restarts 1 allows no more" in errors, (name, status, errors)
status, errors = run("often", "--max-restarts", "1", "--resume", "auto")
assert status == 0 and files("often") == files("once"), errors
# Final: an error of ranks whose statuses the launcher hides. The checkpoint is of another optimizer.
status, errors = run("once", "--max-restarts", "3", "--resume", "--launcher", TORCHRUN, program="sgd", train=[*TRAIN[:2], *TRAIN[4:]])
assert status == 1 and "; restart " not in errors and "this program updates by sgd" in errors, (status, errors)
# Final: a signal that asks the run to end, wherever it arrives, and an error in what the user gave.
status, errors = run("asked", "--max-restarts", "3", kills=("step-5",), number=signal.SIGTERM)
assert status == -signal.SIGTERM and "; restart " not in errors, (status, errors)
assert steps(folder / "asked.csv") < 60
status, errors = run("asked", "--max-restarts", "3")
assert status == 1 and "; restart " not in errors and "--resume continues it" in errors, (status, errors)
# A launcher may end before its ranks, which save: the supervisor ends after them. It ends with a signal (busy), which the supervisor passes on, or
# by itself (left-alone), so that nobody but the supervisor can tell the ranks.
left = folder / "left"
left.write_text(f"#!/bin/sh\nsetsid {TORCHRUN} \"$@\" &\nuntil test -e {folder}/left-alone/step-5; do sleep 0.05; done\n")
left.chmod(0o755)
def until(condition):
    end = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)
for name, launcher in (("busy", TORCHRUN), ("left-alone", str(left))):
    words = ["partita", "run", str(folder / "two"), *TRAIN[:5], "100000", *TRAIN[6:], "--log", str(folder / f"{name}.csv"), "--checkpoint", str(folder / name),
             "--keep", "2"]
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
assert losses("killed") == losses("once") and files("killed") == files("once")
# What a killed launcher has left behind, which would start ranks again beside the restart's, ends first.
wrapper = folder / "wrapper"
wrapper.write_text(f"#!/bin/sh\n{TORCHRUN} --max-restarts 3 \"$@\"\nexit $?\n")
wrapper.chmod(0o755)
status, errors = run("wrapped", "--max-restarts", "1", "--resume", "auto", "--launcher", str(wrapper), kills=("step-5",),
                     victim_of=lambda process: supervised.children(process)[0], start=("env", "PARTITA_PATIENCE=mark:1"))
assert status == 0 and "another run writes" not in errors, (status, errors)  # its ranks may have done all before they are told
assert losses("wrapped") == losses("once") and files("wrapped") == files("once")
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
hasty = supervised.WatchedRun(["partita", "run", str(folder / "two"), *TRAIN[:5], "100000", *TRAIN[6:], "--log", str(folder / "hasty.csv"), "--checkpoint",
                               str(folder / "hasty"), "--max-restarts", "1", "--launcher", str(early)], dict(os.environ, PARTITA_PATIENCE="mark:1"))
early_end = "the launcher has ended with status 0, but the newest checkpoint is of step "
until(lambda: any(early_end in line and "; restart 1 of 1, from " in line for _, line in hasty.errors) or not hasty.alive())
assert hasty.alive(), hasty.errors
hasty.process.terminate()
assert hasty.process.wait(100) == -signal.SIGTERM, hasty.errors
# mpirun that gets a signal hides that its ranks have saved and ended by it: the run ends, as it was asked to.
words = ["partita", "run", str(folder / "two"), *TRAIN[:5], "100000", *TRAIN[6:], "--log", str(folder / "told.csv"), "--checkpoint", str(folder / "told"),
         "--keep", "2", "--max-restarts", "3", "--launcher", f"mpirun --mca odls_base_sigkill_timeout 5 {MPIRUN.removeprefix('mpirun ')}"]
told = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
until(lambda: (folder / "told/step-10").exists() and len(ranks(told.pid, "two")) == 2)
os.kill(supervised.children(told.pid)[0], signal.SIGTERM)
errors = told.communicate(timeout=100)[1]
assert told.returncode == -signal.SIGTERM and "finishing the step" in errors and "; restart " not in errors, (told.returncode, errors)
# A signal to a supervisor that has not seen yet that its program was killed.
words = ["partita", "run", str(folder / "two"), *TRAIN[:5], "100000", *TRAIN[6:], "--log", str(folder / "unseen.csv"), "--checkpoint", str(folder / "unseen"),
         "--keep", "2", "--max-restarts", "3"]
unseen = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
until(lambda: (folder / "unseen/step-10").exists())
victim = ranks(unseen.pid, "two")[-1]
for process, number in ((unseen.pid, signal.SIGSTOP), (victim, signal.SIGKILL), (unseen.pid, signal.SIGTERM), (unseen.pid, signal.SIGCONT)):
    os.kill(process, number)
errors = unseen.communicate(timeout=100)[1]
assert unseen.returncode == -signal.SIGTERM and "was ended by signal 9 (Killed), and SIGTERM ends the run" in errors, (unseen.returncode, errors)
# Launchers send a signal twice, which is one signal: the checkpoint may take longer than what ends ranks that do not end by themselves.
supervised.build_slow_rename(folder / "slow.so")
# So may that of ranks below mpirun, which would kill them two seconds after it has got a signal itself.
for name, launcher in (("twice", []), ("below", ["--launcher", MPIRUN])):
    words = ["partita", "run", str(folder / "two"), *TRAIN[:5], "100000", "--log", str(folder / f"{name}.csv"), "--checkpoint", str(folder / name),
             "--max-restarts", "1", *launcher]
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
# While a supervisor waits for its next start, its folder and its log are its own, though no rank has them.
hosts, refused = folder / "hosts", []
hosts.write_text("localhost:2\n")
def intrude(line):
    if ": waits up to 10 minutes for hosts" not in line:
        return
    owned = ["--checkpoint", str(folder / "waiting"), "--resume", "auto"]
    try:
        for words in (["partita", "run", str(folder / "two"), *TRAIN, *owned], ["partita", "run", str(folder / "two"), *TRAIN, *owned, "--max-restarts", "1"],
                      ["partita", "run", str(folder / "two"), *TRAIN, "--log", str(folder / "waiting.csv")], [str(folder / "two/two"), *TRAIN, *owned]):
            second = subprocess.run(words, capture_output=True, text=True, timeout=100)
            refused.append((second.returncode, second.stderr))
    finally:
        hosts.write_text("localhost:2\n")
status, errors = run("waiting", "--max-restarts", "1", "--host-discovery", f"cat {hosts}", "--launcher", MPIRUN, kills=("step-10",),
                     before=lambda: hosts.write_text("localhost:1\n"), said=intrude)
assert status == 0 and re.search(r"restart 1 of 1, from .*/step-\d+\n", errors), errors
assert losses("waiting") == losses("once") and files("waiting") == files("once")
assert [code for code, _ in refused] == [1, 1, 1, 1], refused
for (_, text), said in zip(refused, ("--checkpoint: another run writes into .*/waiting: its supervisor .process \\d+. may be about to start it again",) * 2 +
                           ("--log: another run writes .*/waiting.csv: its supervisor .process", "--checkpoint: another run writes into .*/waiting; give")):
    assert re.search(said, text), (said, text)
# A launcher that is stopped before it has started a rank keeps all waiting.
stops = folder / "stops"
stops.write_text(f"#!/bin/sh\ntest -e {folder}/has-stopped && exec {MPIRUN} \"$@\"\ntouch {folder}/has-stopped\nkill -STOP $$\n")
stops.chmod(0o755)
status, errors = run("late", "--max-restarts", "1", "--timeout", "2", "--launcher", str(stops))
assert status == 0 and re.search(r"the launcher \(process \d+\) has been stopped for \d+\.\d s, before it has started a rank on this host; restart 1 of 1, from the beg", errors), errors
assert losses("late") == losses("once") and files("late") == files("once")
# A run has its folder from its first step on, though it has saved nothing: another one is refused at once, and by its supervisor for good.
words = ["partita", "run", str(folder / "two"), *TRAIN[:5], "100000", "--checkpoint-every", "100000", "--log", str(folder / "owner.csv"), "--checkpoint",
         str(folder / "owned/by/owner")]
owner = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
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
# One that starts nothing, and says that all is well.
status, errors = run("nothing", "--max-restarts", "2", "--launcher", "true")
assert status == 1 and errors.count("\n") == 1 and "error: the launcher has ended with status 0 without starting a rank on this host" in errors, (status, errors)
# A launcher may say that all is well though a rank has died.
launcher.write_text(f"#!/bin/sh\n{MPIRUN} \"$@\"\nexit 0\n")
status, errors = run("hidden", "--max-restarts", "1", "--launcher", str(launcher), kills=("step-10",))
assert status == 0 and re.search(r"with status 0, but the newest checkpoint is of step \d+ of 60; restart 1 of 1, from", errors), errors
assert losses("hidden") == losses("once") and files("hidden") == files("once")
# A program that was compiled again meanwhile is another one.
shutil.copytree(folder / "two", folder / "anew")
def replace():
    new = folder / "anew/new"
    new.write_bytes((folder / "anew/two").read_bytes() + b"\0")
    new.chmod(0o755)
    new.rename(folder / "anew/two")
status, errors = run("compiled", "--max-restarts", "2", kills=("step-10",), before=replace, program="anew")
assert status == 1 and "; restart " not in errors and "anew/two is no longer the program that the run began with" in errors, (status, errors)
print("what must not be restarted is not")
