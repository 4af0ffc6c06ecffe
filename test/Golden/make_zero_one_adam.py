"""Writes zero_one_adam.json: 0/1 Adam as published, in double precision.

Lu et al. 2022, arXiv 2202.06009, algorithm 1 with a synchronization in every step (T_u), with the choices of DeepSpeed's ZeroOneAdam: no bias
correction; the steps T_v by its counters; in these the exact mean of the gradients updates both moments. In all other steps momenta are
averaged by 1-bit Adam's compression.

    python3 make_zero_one_adam.py > zero_one_adam.json
"""
import numpy

import make_onebit_adam as onebit
from make_onebit_adam import BETA1, BETA2, DECAY, EPSILON, RATE, SIZES, STEPS, compressed_mean, numbers

VAR_FREEZE, VAR_UPDATE_SCALER = 30, 4
SHOWN = (1, 4, 5, 6, VAR_FREEZE, VAR_FREEZE + 1, STEPS)


def variance_steps():
    """The steps T_v, by DeepSpeed's counters."""
    interval, counter, steps = 1, 0, set()
    for step in range(1, VAR_FREEZE + 1):
        if step % interval == 0:
            steps.add(step)
            counter += 1
            if counter == VAR_UPDATE_SCALER:
                interval, counter = 2 * interval, 0
    return steps


class Tensor:
    """One tensor and its states; `p` are the parameters."""

    def __init__(self, start, ranks, decay=DECAY):
        n = len(start)
        self.p, self.m, self.v, self.decay = start, numpy.zeros(n), numpy.zeros(n), decay
        self.exact, self.worker, self.server = variance_steps(), [numpy.zeros(n)] * ranks, [0.0] * ranks

    def update(self, local, step, scale=1, correction=(1, 1)):
        """From the gradients of all ranks; `scale` clips their exact mean, `correction` multiplies both moments."""
        if step in self.exact:
            g = scale * numpy.mean(local, axis=0)
            self.m, self.v = BETA1 * self.m + (1 - BETA1) * g, BETA2 * self.v + (1 - BETA2) * g * g
        else:
            self.m = compressed_mean([BETA1 * self.m + (1 - BETA1) * g for g in local], self.worker, self.server)
        self.p = self.p - RATE * (self.m * correction[0] / (numpy.sqrt(self.v * correction[1]) + EPSILON) + self.decay * self.p)


def train(ranks):
    shown = []
    for index, (name, n) in enumerate(SIZES.items()):
        tensor = Tensor(numbers(0, 0, index, n), ranks)
        for step in range(1, STEPS + 1):
            tensor.update([numbers(step, rank, index, n) for rank in range(ranks)], step)
            if step in SHOWN:
                shown.append({"step": step, "tensor": name, "p": list(tensor.p), "m": list(tensor.m), "v": list(tensor.v)})
        shown.append({"step": STEPS, "tensor": name, "worker": list(numpy.mean(tensor.worker, axis=0)), "server": list(numpy.concatenate(tensor.server))})
    return shown


if __name__ == "__main__":
    onebit.write({str(ranks): train(ranks) for ranks in (2, 4)})
