"""The driver's bytes beside the ledger's. A program prints how much less is free on the GPU than before it took any, what it
had announced, and what its collectives stage; the rest is libraries'. Standard library only."""

import re

MIB = 1 << 20
# Kernels' code, their local memory (of all threads that the GPU can have resident), graphs, cuBLASLt's and cuDNN's own:
# some 300 MiB are known of such programs. A parameter's or an activation's second copy in a model of some size is more.
PROGRAM = 1024 * MIB
# NCCL's buffers: 4 MiB and less per channel, peer and protocol, of 32 channels at the most.
COMMUNICATOR = 512 * MIB
# A CUDA context, which a program's own count has not: it was there before. Those of other ranks may come later.
CONTEXT = 1024 * MIB

LINE = re.compile(r"(-?[\d,]+) bytes less free on the GPU than before: ([\d,]+) as announced"
                  r"(?:, ([\d,]+) staging of collectives)?, (-?[\d,]+) by libraries")


def number(text):
    return int((text or "0").replace(",", ""))


def communicators(mesh):
    """At the most: an axis may have one more, for what is gathered ahead."""
    return 2 * sum(axis["size"] > 1 for axis in mesh)


def check(output, ranks, mesh):
    """What is wrong, or nothing; the numbers; and what is doubtful, or nothing. `ranks` share the GPU: what the driver says has the others' memory in it,
    which come and go, so that there is no least."""
    at = LINE.search(output)
    if not at:
        return "the program does not report how much GPU memory it took", "", ""
    taken, announced, staging = (number(at[i]) for i in (1, 2, 3))
    libraries = taken - announced - staging
    most = PROGRAM + communicators(mesh) * COMMUNICATOR
    most += (ranks - 1) * (announced + staging + most + CONTEXT)
    numbers = (f"GPU {taken / MIB:.0f} MiB, announced {announced / MIB:.0f} MiB, "
               f"{'libraries and other ranks' if ranks > 1 else 'libraries'} {libraries / MIB:.0f} MiB")
    if ranks == 1 and libraries < 0:
        return (f"the GPU has {taken:,} bytes less, and {announced + staging:,} were announced or staged: "
                "not all of it was taken"), numbers, ""
    # Until a GPU has shown what libraries take: a bound that is too low must not fail what is right.
    doubt = f"{libraries:,} bytes are libraries', {most:,} at the most were expected" if libraries > most else ""
    return "", numbers, doubt
