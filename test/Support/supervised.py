"""Runs that `partita run` supervises, for tests that kill their processes: how they start, which ranks they have, what they leave."""
import os
import pathlib
import subprocess
import sys
import threading
import time

TEXT = "text:/usr/share/common-licenses/GPL-3"
TRAIN = ["--data", TEXT, "--init", "seed:1", "--steps", "60", "--checkpoint-every", "5"]
# Launchers; "-np", the number of ranks and the program follow.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
TORCHRUN = [sys.executable, str(pathlib.Path(__file__).resolve().parent / "torchrun.py")]


def steps(log):
    """Returns how many steps a log has so far."""
    try:
        return max(0, len(log.read_text().splitlines()) - 1)
    except OSError:
        return 0


def losses(log):
    """Returns step, loss and gradient norm of each step as texts, below their titles."""
    return [line.split(",")[:3] for line in log.read_text().splitlines()]


def values(log):
    """The same without the titles; none while there is no log."""
    return losses(log)[1:] if log.exists() else []


def files(checkpoint):
    """Returns the bytes of each file of a checkpoint's folder."""
    return {path.name: path.read_bytes() for path in checkpoint.iterdir()}


def build_preload(name, library):
    """Builds NAME.c of this folder, for LD_PRELOAD."""
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(pathlib.Path(__file__).resolve().parent / f"{name}.c"), "-ldl"], check=True)


def children(process):
    """Returns the descendants of a process, the nearest first."""
    try:
        own = [int(text) for text in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []
    return own + [each for child in own for each in children(child)]


def executable(process):
    """Returns the name of the program that a process executes; "" if there is no process."""
    try:
        return os.path.basename(os.readlink(f"/proc/{process}/exe"))
    except OSError:
        return ""


def ranks(process, program):
    """Returns those of its descendants that execute a program of this name."""
    return [each for each in children(process) if executable(each) == program]


class WatchedRun:
    """A run whose lines are read while it goes on, each with its time. `popen` starts it, such as on another host."""

    def __init__(self, words, environment, popen=subprocess.Popen):
        self.words, self.environment, self.popen = [str(word) for word in words], environment, popen
        self.lines, self.errors = [], []  # of (time.time(), line)
        self.start()

    def start(self):
        """Also starts it again; its lines follow those before."""
        self.process = self.popen(self.words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment)
        self.readers = [threading.Thread(target=self.read, args=(self.process.stdout, self.lines)),
                        threading.Thread(target=self.read, args=(self.process.stderr, self.errors))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def read(stream, lines):
        for line in stream:
            lines.append((time.time(), line.rstrip()))

    def alive(self):
        return self.process.poll() is None

    def wait(self, patience):
        """Returns the exit code; raises TimeoutExpired."""
        status = self.process.wait(timeout=patience)
        for reader in self.readers:
            reader.join()
        return status
