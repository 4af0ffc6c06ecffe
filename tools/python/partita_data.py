"""The order in which a program's runtime reads its training data, in numpy: the same windows as in
runtime/common/data/data.h, which states the algorithm."""

import numpy

from partita_init import mix


def _mix_one(x):
    return int(mix(numpy.array([x % (1 << 64)], numpy.uint64))[0])


def permute(key, index, n):
    """Returns the position of `index` in a pseudo-random permutation of 0 .. n-1."""
    half = 1
    while half < 31 and 1 << (2 * half) < n:
        half += 1
    mask = (1 << half) - 1
    while True:
        left, right = index >> half, index & mask
        for step in range(4):
            left, right = right, left ^ (_mix_one((key + (step << 32)) % (1 << 64) ^ right) & mask)
        index = left << half | right
        if index < n:
            return index


class Windows:
    """Windows of sequence + 1 tokens, reshuffled in each epoch by the seed (`--seed`)."""

    def __init__(self, tokens, sequence, seed):
        self.tokens, self.sequence, self.seed = tokens, sequence, seed
        self.count = (len(tokens) - 1) // sequence

    def window(self, sample):
        epoch, index = divmod(sample, self.count)
        start = permute(_mix_one(_mix_one(self.seed) ^ epoch), index, self.count) * self.sequence
        return self.tokens[start:start + self.sequence + 1].astype(numpy.int64)

    def batch(self, step, micro, rows, accumulate=1):
        """Returns (input ids, labels) of micro-batch `micro` of step `step` (from 0), with all
        ranks' rows."""
        first = (step * accumulate + micro) * rows
        windows = numpy.stack([self.window(first + row) for row in range(rows)])
        return windows[:, :-1].copy(), windows[:, 1:].copy()
