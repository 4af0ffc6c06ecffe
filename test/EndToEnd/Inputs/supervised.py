"""The processes of a run that `partita run` supervises, for tests that kill them."""
import os
import pathlib
import subprocess
import threading
import time


def children(process):
    """Returns the descendants of a process, the nearest first."""
    try:
        own = [int(text) for text in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []
    return own + [each for child in own for each in children(child)]


def ranks(process, program):
    """Returns those of its descendants that execute a program of this name."""
    def executes(each):
        try:
            return os.path.basename(os.readlink(f"/proc/{each}/exe")) == program
        except OSError:
            return False
    return [each for each in children(process) if executes(each)]


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
