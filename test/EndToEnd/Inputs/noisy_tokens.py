"""Tokens from which a small model learns something."""
import numpy as np


def write(path):
    """Writes 20,001 16-bit tokens below 64. Each is followed by one of four: there is something to learn, and noise."""
    random, sequence = np.random.default_rng(0), [0]
    for choice in random.integers(0, 4, 20000):
        sequence.append(int(5 * sequence[-1] + 7 * choice + 1) % 64)
    np.array(sequence, "uint16").tofile(path)
