"""chunks.py RANKS FOLDER: sums of numbers in 4 bits, as a marked reduce-scatter and as what is exchanged in its place, against numpy.

`make` writes FOLDER/RANKS.mlir and its inputs, a row per rank; `compare` reads what partita-interp prints."""
import pathlib
import re
import sys

import numpy as np

SIZES, BLOCK = [57, 61], 16


def chunk(n, ranks):
    return -(-n // ranks)


def chunk_bytes(n):
    return 4 * (-(-n // BLOCK) + -(-n // 8))


def program(ranks):
    rows = ["tensor<1x%dxf32, #par.place<[%d @dp, %d]>>" % (n, ranks, n) for n in SIZES]
    terms = ["tensor<%dxf32, #par.place<[%d], partial [dp]>>" % (n, n) for n in SIZES]
    shards = ["tensor<%dxf32, #par.place<[%d], flat [dp]>>" % (chunk(n, ranks), n) for n in SIZES]
    full = ["tensor<%dxf32>" % n for n in SIZES]
    size = sum(chunk_bytes(chunk(n, ranks)) for n in SIZES)
    sent = "tensor<%dx1x%dxi8, #par.place<[%d, %d @dp, %d]>>" % (ranks, size, ranks, ranks, size)
    received = "tensor<1x%dx%dxi8, #par.place<[%d @dp, %d, %d]>>" % (ranks, size, ranks, ranks, size)
    lines = ["%%x%d = tx.reduce_sum %%rows%d [0] : %s -> %s" % (i, i, rows[i], terms[i]) for i in range(2)]
    lines += ["%%a:2 = zero.reduce_scatter %%x0, %%x1 over \"dp\" in int4 blocks of %d : %s -> %s" % (BLOCK, ", ".join(terms), ", ".join(shards)),
              "%%c = zero.quantize_chunks %%x0, %%x1 over \"dp\" by %d : %s -> %s" % (BLOCK, ", ".join(terms), sent),
              "%%r = zero.exchange_chunks %%c over \"dp\" : %s -> %s" % (sent, received),
              "%%b:2 = zero.sum_chunks %%r over \"dp\" by %d : %s -> %s" % (BLOCK, received, ", ".join(shards))]
    lines += ["%%%s:2 = zero.gather %%%s#0, %%%s#1 over \"dp\" : %s -> %s" % (to, of, of, ", ".join(shards), ", ".join(full)) for to, of in [("fa", "a"), ("fb", "b")]]
    return "module attributes {par.mesh = #par.mesh<dp = %d>} {\nfunc.func @sums(%s) -> (%s) attributes {par.no_cotangents} {\n%s\nreturn %%fa#0, %%fa#1, %%fb#0, %%fb#1 : %s\n}\n}\n" % (
        ranks, ", ".join("%%rows%d: %s" % (i, rows[i]) for i in range(2)), ", ".join(full * 2), "\n".join(lines), ", ".join(full * 2))


def inputs(ranks):
    random = np.random.default_rng(ranks)
    result = []
    for n in SIZES:
        rows = random.normal(size=(ranks, n)) * np.exp2(random.integers(-9, 9, (ranks, n)))
        rows[0, :20] = 1e-39  # a block is too small for a scale, another one has others
        rows[1, n - 1] = np.inf  # its block is NaN, and no other
        result.append(rows)
    return result


def rounded(x, ranks):
    """What a rank sends of x, in chunks."""
    y = np.zeros_like(x)
    for first in range(0, len(x), chunk(len(x), ranks)):
        for begin in range(first, min(first + chunk(len(x), ranks), len(x)), BLOCK):
            end = min(begin + BLOCK, first + chunk(len(x), ranks), len(x))
            block = x[begin:end]
            most = np.abs(block).max()
            if not np.isfinite(most):
                y[begin:end] = np.nan
            elif most >= 7 * 1.17549435e-38:
                y[begin:end] = np.rint(block * (7 / most)) * float(np.float32(most / 7))
    return y


if __name__ == "__main__":
    ranks, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    if sys.argv[3] == "make":
        (folder / ("%d.mlir" % ranks)).write_text(program(ranks))
        (folder / ("%d.txt" % ranks)).write_text(" ".join("%.17g" % number for rows in inputs(ranks) for number in rows.reshape(-1)))
    else:
        printed = [[float(number) for number in re.findall(r"-?(?:nan|\d[\d.e+-]*)", line.split(" = ", 1)[1])] for line in sys.stdin.read().splitlines()]
        expected = [sum(rounded(row, ranks) for row in rows) for rows in inputs(ranks)] * 2
        assert len(printed) == 4
        for got, wanted in zip(printed, expected):
            assert len(got) == len(wanted) and np.allclose(got, wanted, rtol=1e-5, atol=1e-9, equal_nan=True), (got, wanted)
        print("%d numbers, twice" % (2 * sum(SIZES)))
