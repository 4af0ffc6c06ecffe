#!/usr/bin/env python3
"""restarts.py FOLDER: kills processes of supervised runs of FOLDER/two, a program of two ranks, at chosen steps. Losses, log and
checkpoint must be those of an undisturbed run; what a restart cannot help is not restarted."""
import pathlib
import re
import shutil
import signal
import sys
import threading

from disturbed import MPIRUN, TORCHRUN, Runs
from supervised import TRAIN, ranks, steps

runs = Runs(sys.argv[1])
folder, run, files = runs.folder, runs.run, runs.files

for name, launcher in (("threads", []), ("mpi", ["--launcher", MPIRUN]), ("tcp", ["--launcher", TORCHRUN])):
    status, errors = run(name, "--max-restarts", "3", *launcher, kills=("step-5", 17, "step-30"))
    assert status == 0, (name, errors)
    lost = r": rank 1 \(host \S+, process \d+\) died"
    restarts = re.findall(r"partita run: (?:the program was ended by signal 9 \(Killed\)|the launcher has ended with status 1(?:37 \(Killed\))?" + lost + r"); restart (\d) of 3, (.*)",
                          errors)
    assert [number for number, _ in restarts] == ["1", "2", "3"], errors
    assert all(re.search(r"from .*/step-\d+$", where) for _, where in restarts), errors
    runs.check(name)
    if launcher:  # the last failure's, and before it the one before's
        flights = [sorted(path.name for path in (folder / name / flight).glob("rank-*")) for flight in ("flight", "flight/earlier")]
        assert flights == [[], ["rank-0.jsonl", "rank-1.jsonl"]], (name, flights)
    print(f"{name}: 3 kills, the same bits")

# torchrun restarts the ranks by itself.
status, errors = run("torchrun", "--resume", "auto", kills=("step-5", 17, "step-30"), start=[*TORCHRUN.split(), "--max-restarts", "3"])
assert status == 0 and len(re.findall("rank 1 .* died", errors)) == 3, errors
runs.check("torchrun")
print("torchrun: 3 kills, the same bits")
# A program that is stopped, all of whose ranks are threads, cannot report it.
status, errors = run("stopped", "--max-restarts", "1", "--timeout", "2", kills=("step-10",), number=signal.SIGSTOP)
assert status == 0 and re.search(r"the program \(process \d+\) has been stopped for \d+\.\d s; restart 1 of 1, from .*/step-\d+$", errors, re.M), errors
runs.check("stopped")
# What a restart needs may come back.
text = folder / "text"
text.write_bytes(pathlib.Path(TRAIN[1].removeprefix("text:")).read_bytes())
def find_text(line):
    if "restart 2 of 9" in line:
        (folder / "away").rename(text)
status, errors = run("again", "--max-restarts", "9", kills=("step-10",), before=lambda: text.rename(folder / "away"), said=find_text,
                     train=[TRAIN[0], f"text:{text}", *TRAIN[2:]])
assert status == 0 and re.search(r"restart 2 of 9 in 1 s, from .*/step-\d+$", errors, re.M), errors
runs.check("again")
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
runs.check("mounted/run")
# The folder itself is moved away, which was not there when the run began: nor does it begin again then.
def move():
    (folder / "moved").rename(folder / "away")
def move_back(line):
    if "; waits up to 30 s for the --checkpoint folder '" in line:
        (folder / "away").rename(folder / "moved")
status, errors = run("moved", "--max-restarts", "2", kills=("step-10",), before=move, said=move_back)
assert status == 0 and re.search(r"restart 1 of 2, from .*/step-\d+$", errors, re.M), errors
runs.check("moved")
# One that stays away: whoever started the run again would begin again.
status, errors = run("gone", "--max-restarts", "2", kills=("step-10",), before=lambda: (folder / "gone").rename(folder / "elsewhere"),
                     start=("env", "PARTITA_PATIENCE=folder:1"))
assert status == 1 and "; restart " not in errors and "gone' is not the folder that the run started with" in errors, (status, errors)
print("a stopped program, and one that cannot start for a while, go on")

# torchrun hides that a rank was killed; that it trained, the ranks have said themselves before there was a checkpoint.
status, errors = run("early", "--max-restarts", "1", "--launcher", TORCHRUN, kills=(3,), train=[*TRAIN[:-1], "60"])
assert status == 0 and "restart 1 of 1, from the beginning: there is no checkpoint yet\n" in errors, errors
runs.check("early")
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
for name, launcher in (("often", []), ("often-tcp", ["--launcher", TORCHRUN]), ("often-mpi", ["--launcher", MPIRUN])):
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
