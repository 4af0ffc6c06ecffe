"""Writes onebit_adam.json: 1-bit Adam as published, in double precision.

Tang et al. 2021, arXiv 2102.02888, algorithm 1, with the choices of DeepSpeed's OneBitAdam: no bias correction, a
variance that is frozen after the warm-up, one compression per tensor with errors kept by workers and servers, scales
||x|| / sqrt(n). A server's chunk has ceil(n / ranks) elements, the last ones fewer or none: nothing is padded.

    python3 make_onebit_adam.py > onebit_adam.json
"""
import json
import numpy

SIZES, STEPS, FREEZE, RATE, DECAY = {"w": 35, "b": 3}, 50, 10, 1e-2, 0.1
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
SHOWN = (1, FREEZE, FREEZE + 1, STEPS)


def numbers(step, rank, tensor, count):
    """Float32 numbers in [-1, 1) that other languages make alike."""
    seed = numpy.arange(count) * 7919 + rank * 104729 + step * 15485863 + tensor * 32452843
    return (seed % 1000003 * (seed % 1000003) % 1000003 / 1000003 * 2 - 1).astype(numpy.float32).astype(numpy.float64)


def compress(x):
    """The signs, +1 for 0, times the scale."""
    return numpy.where(x >= 0, 1.0, -1.0) * numpy.linalg.norm(x) / numpy.sqrt(max(len(x), 1))


def compressed_mean(values, worker, server):
    """The mean over ranks of a tensor of each rank; updates the errors, lists by rank."""
    ranks, n = len(values), len(values[0])
    chunk, sent, result = -(-n // ranks), [], []
    for rank, x in enumerate(values):
        sent.append(compress(x + worker[rank]))
        worker[rank] = x + worker[rank] - sent[-1]
    for rank in range(ranks):
        y = numpy.mean(sent, axis=0)[rank * chunk:(rank + 1) * chunk] + server[rank]
        result.append(compress(y))
        server[rank] = y - result[-1]
    return numpy.concatenate(result)


def train(ranks):
    shown = []
    for index, (name, n) in enumerate(SIZES.items()):
        p, m, v = numbers(0, 0, index, n), numpy.zeros(n), numpy.zeros(n)
        worker, server = [numpy.zeros(n)] * ranks, [0.0] * ranks
        for step in range(1, STEPS + 1):
            local = [numbers(step, rank, index, n) for rank in range(ranks)]
            if step <= FREEZE:
                g = numpy.mean(local, axis=0)
                m, v = BETA1 * m + (1 - BETA1) * g, BETA2 * v + (1 - BETA2) * g * g
            else:
                m = compressed_mean([BETA1 * m + (1 - BETA1) * g for g in local], worker, server)
            p = p - RATE * (m / (numpy.sqrt(v) + EPSILON) + DECAY * p)
            if step in SHOWN:
                shown.append({"step": step, "tensor": name, "p": list(p), "m": list(m)})
        shown.append({"step": STEPS, "tensor": name, "worker": list(numpy.mean(worker, axis=0)), "server": list(numpy.concatenate(server))})
    return shown


def write(rows_of):
    """Prints the rows of each number of ranks, a line each."""
    rounded = json.loads(json.dumps(rows_of), parse_float=lambda text: float("%.9g" % float(text)))
    print("{" + ",\n".join('"%s": [\n%s]' % (ranks, ",\n".join(map(json.dumps, rows))) for ranks, rows in rounded.items()) + "}")


if __name__ == "__main__":
    write({str(ranks): train(ranks) for ranks in (2, 4)})
