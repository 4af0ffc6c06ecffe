"""The processes of a run that `partita run` supervises, for tests that kill them."""
import os
import pathlib


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
