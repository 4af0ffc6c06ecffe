"""Writes onebit_lamb.json: 1-bit LAMB as published, in double precision.

Li et al. 2021, arXiv 2104.06069, algorithm 1, with the choices of DeepSpeed's OneBitLamb: no bias correction; the ratio of the compressed steps is the
warm-up's running mean times a factor, from a variance that goes on with the gradients that follow from how momenta change. Momenta are compressed as in make_onebit_adam.py,
with a scale per tensor: DeepSpeed has one for all, and first multiplies each momentum by a number that makes their magnitudes alike.

    python3 make_onebit_lamb.py > onebit_lamb.json
"""
import numpy

import make_onebit_adam as onebit
from make_onebit_adam import BETA1, BETA2, DECAY, EPSILON, FREEZE, RATE, SIZES, STEPS, compressed_mean, numbers

LEAST, MOST, COEFF_BETA, FACTOR_MIN, FACTOR_MAX, THRESHOLD = 0.01, 10, 0.9, 0.5, 4, 0.1
SHOWN = (1, FREEZE, FREEZE + 1, FREEZE + 5, STEPS)
norm = numpy.linalg.norm


class Tensor:
    """One tensor and its states; `p` are the parameters."""

    def __init__(self, start, ranks, decay=DECAY):
        n = len(start)
        self.p, self.m, self.v, self.fresh, self.decay = start, numpy.zeros(n), numpy.zeros(n), numpy.zeros(n), decay
        self.coefficient, self.factor, self.worker, self.server = 0.0, 1.0, [numpy.zeros(n)] * ranks, [0.0] * ranks

    def update(self, local, step, scale=1):
        """From the gradients of all ranks; `scale` clips their exact mean."""
        if step <= FREEZE:
            g = scale * numpy.mean(local, axis=0)
            self.m, self.v = BETA1 * self.m + (1 - BETA1) * g, BETA2 * self.v + (1 - BETA2) * g * g
            self.fresh = self.v
        else:
            before, self.m = self.m, compressed_mean([BETA1 * self.m + (1 - BETA1) * g for g in local], self.worker, self.server)
            g = (self.m - BETA1 * before) / (1 - BETA1)
            self.fresh = BETA2 * self.fresh + (1 - BETA2) * g * g
        direction = self.m / (numpy.sqrt(self.v) + EPSILON)
        update = direction + self.decay * self.p
        if step <= FREEZE:
            ratio = min(max(norm(self.p) / norm(update), LEAST), MOST) if norm(self.p) > 0 and norm(update) > 0 else 1.0
            self.coefficient = COEFF_BETA * self.coefficient + (1 - COEFF_BETA) * ratio
        else:
            share, last = min(1.0, norm(direction) / norm(update)), self.factor
            factor = max((numpy.sqrt(self.v) + EPSILON) / (numpy.sqrt(self.fresh) + EPSILON)) * share + 1 - share
            self.factor = min(max(min(max(factor, FACTOR_MIN), FACTOR_MAX), last * (1 - THRESHOLD)), last * (1 + THRESHOLD))
            ratio = self.coefficient * self.factor
        self.p = self.p - RATE * ratio * update


def train(ranks):
    shown = []
    for index, (name, n) in enumerate(SIZES.items()):
        tensor = Tensor(numbers(0, 0, index, n), ranks)
        for step in range(1, STEPS + 1):
            tensor.update([numbers(step, rank, index, n) for rank in range(ranks)], step)
            if step in SHOWN:
                shown.append({"step": step, "tensor": name} | {key: list(getattr(tensor, key)) for key in ("p", "m", "fresh")}
                             | {key: [getattr(tensor, key)] for key in ("coefficient", "factor")})
        shown.append({"step": STEPS, "tensor": name, "worker": list(numpy.mean(tensor.worker, axis=0)), "server": list(numpy.concatenate(tensor.server))})
    return shown


if __name__ == "__main__":
    onebit.write({str(ranks): train(ranks) for ranks in (2, 4)})
