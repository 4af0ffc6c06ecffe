"""Runs commands that must succeed."""
import subprocess


def call(*command):
    """What the command printed."""
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout
