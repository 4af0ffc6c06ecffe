"""Supervised runs of FOLDER/two, a program of two ranks, which tests disturb, and compare with an undisturbed one."""
import os
import pathlib
import signal
import subprocess
import threading
import time

import supervised
from supervised import TRAIN, ranks, steps

MPIRUN, TORCHRUN = (" ".join([*launcher, "-np", "2"]) for launcher in (supervised.MPIRUN, supervised.TORCHRUN))


def until(condition):
    end = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


class Runs:
    """Each has a name, its folder for checkpoints NAME and its log NAME.csv."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        status, errors = self.run("once")
        assert status == 0, errors

    def files(self, name):
        return supervised.files(self.folder / name / "step-60")

    def losses(self, name):
        return supervised.losses(self.folder / f"{name}.csv")

    def check(self, name):
        """Losses, log and checkpoint must be those of the undisturbed run."""
        assert self.losses(name) == self.losses("once") and self.files(name) == self.files("once"), name

    def endless(self, name, *options, folder=None, every=5):
        """The command line of a run that does not end by itself; `folder`: for checkpoints, if it is not NAME."""
        return ["partita", "run", str(self.folder / "two"), *TRAIN[:5], "100000", "--checkpoint-every", str(every), "--log", str(self.folder / f"{name}.csv"),
                "--checkpoint", str(folder or self.folder / name), *options]

    def run(self, name, *options, kills=(), number=signal.SIGKILL, before=lambda: None, said=lambda line: None, train=TRAIN, start=(), program="two",
            victim_of=lambda process: ranks(process, "two")[-1]):
        """Runs to the end, under the command `start`, killing a rank, or another process below the first, once the log of steps has these lengths, or these checkpoints are complete;
        `before` is called while that rank is stopped, `said` with each line of errors. Returns status and errors."""
        log, errors = self.folder / f"{name}.csv", []
        process = subprocess.Popen([*start, "partita", "run", str(self.folder / program), *train, "--checkpoint", str(self.folder / name), "--log", str(log),
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
                there = {path.name for path in (self.folder / name).iterdir()} if (self.folder / name).exists() else set()
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
