#!/usr/bin/env python3
"""Flips bits of what several ranks hold, one per run, and counts what --check-replicas finds of them.

    flips.py FOLDER [--flips 100] [--steps 10000] [--transports threads,mpi,messages] [--seed 1] [--mesh dp=4] [--every 10]

The tiny GPT-2 is compiled for the mesh, with calls in its emitted step that flip a bit of one rank's parameters and states
(flip.h): a random one, on a random rank, in a random step, before its forward pass, its backward pass or its update. The run must
end at the next check, or at a loss that is not finite before it, and name rank and tensor. If it does not, the bit must be gone:
after the step of the check, ranks along dp have the same bytes. (The lowest bits of moments and of small parameters decay within steps. By
then a moment may have changed its parameter, which is named instead.)
Then as many steps as asked for must pass without a report. Prints a line per transport and exits with 1 after a finding.

The transport `nccl` is the simulated one of test/Support (PARTITA_BUILD, PARTITA_SOURCE: the folders). There the bit flips in the
first step, which alone is launched by the host, no loss is examined that is not finite, and a bit that is gone must have had no
effect on the last checkpoint."""
import argparse
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

from commands import build_for_simulated_gpu, call
from supervised import MPIRUN, TORCHRUN

HERE = pathlib.Path(__file__).resolve().parent
MOMENTS = ("Forward", "Backward", "Update")


def compiled(folder, mesh, options, target):
    """Compiles the program, and builds it with calls of flipBit before each change of the kind of work."""
    program = folder / target / "flipped"
    source = program / ("model.cu" if target == "cuda" else "model.cpp")
    call("partita", "compile", str(HERE.parents[1] / "Data/gpt2_tiny_dynamo_sdpa.onnx"), "--dim", "batch=12", "--dim", "sequence=16",
         "--mesh", mesh, "--target", target, *options, "--no-build", "-o", str(program))
    text = source.read_text()
    text = re.sub(r"^( *)(beginWork\(rank, Work::(\w+)\);)", r'\1flipBit(rank, "\3");\n\1\2', text, flags=re.M)
    text = text.replace("using namespace partita_rt;\n", f'#include "{HERE / "flip.h"}"\nusing namespace partita_rt;\n', 1)
    assert all(f'flipBit(rank, "{moment}")' in text for moment in MOMENTS)
    source.write_text(text)
    if target == "cuda":
        build_for_simulated_gpu(str(program))
    else:
        call("make", "-C", str(program))
    return program


class Runs:
    def __init__(self, folder, program, dp, ranks, transport, every):
        self.folder, self.program, self.dp, self.ranks, self.transport, self.every = folder, program, dp, ranks, transport, every

    def run(self, steps, name, flip="", dumped=0, more=()):
        """Returns status and errors; the run's checkpoint is in the folder of that name."""
        environment = dict(os.environ, FLIP=flip, FLIP_DUMP=f"{dumped} {self.folder}/dump", PARTITA_RT_SHARE_GPU="1")
        if more:
            environment["FLIP_ONCE"] = str(self.folder / f"{name}.once")
        if self.transport == "messages":
            environment["PARTITA_RT_TRANSPORT"] = "messages"
        starts = {"mpi": MPIRUN, "messages": MPIRUN, "tcp": TORCHRUN}
        start = [*starts[self.transport], "-np", self.ranks] if self.transport in starts else []
        shutil.rmtree(self.folder / name, ignore_errors=True)
        done = subprocess.run([str(word) for word in (*start, "partita", "run", self.program, "--data", self.folder / "tokens.bin", "--init",
                                                      "seed:1", "--steps", steps, "--check-replicas", self.every, "--checkpoint",
                                                      self.folder / name, *more)],
                              env=environment, capture_output=True, text=True, timeout=3000)
        return done.returncode, done.stdout + done.stderr

    def are_equal(self):
        """Do all ranks have the same bytes, as they have written them?"""
        dumps = [(self.folder / f"dump{rank}").read_bytes() for rank in range(self.ranks)]
        apart = self.ranks // self.dp  # ranks of one place along the other axes have the same tensors
        return len(dumps[0]) > 0 and all(dump == dumps[rank % apart] for rank, dump in enumerate(dumps))

    def saved(self, name, steps):
        return [path.read_bytes() for path in sorted((self.folder / name / f"step-{steps}").iterdir())]


def due(step, every):
    """Returns the step after which the first check follows."""
    return -(-step // every) * every


def judge(text, rank, step, dp, ranks, every):
    """Returns what is wrong with the report of a flip, and which kind of report it is: "", "early" or "parameter"."""
    flipped = re.search(r"flipped: (\S+) byte", text)
    if not flipped:
        return "nothing was flipped", ""
    found = re.search(r"error: rank (\d+)(?: of stage \d+)?: (?:after step (\d+)|the loss of step (\d+) is not finite, and before the update of step \d+) "
                      r"the replicas of (.*?) differ: (.*?)[,;]", text)
    if not found:
        return "no report", ""
    reporter, after, early, names, who = found.groups()
    kind = "early" if early else ""
    if (after and int(after) != due(step, every)) or (early and not step <= int(early) <= due(step, every)):
        return "not at the next check", kind
    names = re.split(r", | and ", names)
    if flipped[1] not in names:
        kind = "parameter"
        if re.sub(r"\.[mv]$", "", flipped[1]) not in names:
            return f"not {flipped[1]}", kind
    # All replicas decide, or those along dp, of which two have no majority.
    isNamed = int(reporter) == rank and who.startswith(f"rank {rank} has other values than ranks ")
    if dp == 2 and not isNamed:
        other = (rank + ranks // 2) % ranks
        isNamed = who == f"ranks {min(rank, other)} and {max(rank, other)} have different values"
    if not isNamed:
        return f"not rank {rank}", kind
    return "", kind


def restarts(runs, last):
    """A supervised run goes on from a checkpoint before the flip, and has the bits of an undisturbed one. Returns the findings."""
    (runs.folder / "restarted.once").unlink(missing_ok=True)
    flip = f"1 {last - 2} Update 6"
    status, text = runs.run(last, "restarted", flip, more=("--max-restarts", "1", "--checkpoint-every", "3", "--keep", "9"))
    if status == 0 and "restart" in text and "flipped: " in text and runs.saved("restarted", last) == runs.saved("clean", last):
        return 0
    print(f"FINDING, not restarted: {text}", flush=True)
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--transports", default="threads,mpi,messages")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mesh", default="dp=4", help="dp first")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("--compile", default="", help="further options of compile")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    tokens = random.Random(5)
    (args.folder / "tokens.bin").write_bytes(bytes(byte for _ in range(20000) for byte in (tokens.randrange(60), 0)))
    sizes = [int(size) for size in re.findall(r"=(\d+)", args.mesh)]
    ranks, draw, findings = math.prod(sizes), random.Random(args.seed), 0
    for transport in args.transports.split(","):
        program = compiled(args.folder, args.mesh, args.compile.split(), "cuda" if transport == "nccl" else "cpu")
        runs = Runs(args.folder, program, sizes[0], ranks, transport, args.every)
        last = 2 * args.every + 1
        status, text = runs.run(last, "clean")
        assert status == 0, text
        counts = {"found": 0, "": 0, "early": 0, "parameter": 0, "gone": 0}
        while counts["found"] < args.flips:
            rank, step, moment = draw.randrange(ranks), draw.randint(1, last - 1), draw.choice(MOMENTS)
            if transport == "nccl":
                step, moment = 1, "Forward"
            flip = f"{rank} {step} {moment} {draw.randrange(2**31)}"
            status, text = runs.run(last, "flipped-run", flip, due(step, args.every) + 1)
            if status == 0 and "flipped: " in text and (runs.saved("flipped-run", last) == runs.saved("clean", last)
                                                        if transport == "nccl" else runs.are_equal()):
                counts["gone"] += 1
                continue
            problem, kind = judge(text, rank, step, sizes[0], ranks, args.every)
            if status == 0 or problem:
                findings += 1
                print(f"FINDING {transport}, FLIP='{flip}': {problem or 'exit status 0'}\n{text}", flush=True)
            counts["found"] += 1
            counts[kind] += 1
        if transport == "threads":
            findings += restarts(runs, last)
        status, text = runs.run(args.steps, "clean")
        if status != 0 or "and always equal" not in text:
            findings += 1
            print(f"FINDING {transport}: {args.steps} clean steps: {text}", flush=True)
        print(f"{transport}: {counts['found']} flipped bits found ({counts['early']} of them by a loss that was not finite, "
              f"{counts['parameter']} by the parameter that a moment had changed), "
              f"{counts['gone']} gone by then; {args.steps} clean steps", flush=True)
    print(f"{findings} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
