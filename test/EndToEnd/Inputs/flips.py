#!/usr/bin/env python3
"""Flips bits of what several ranks hold, one per run, and counts what --check-replicas finds of them.

    flips.py FOLDER [--flips 100] [--steps 10000] [--transports threads,mpi,messages] [--seed 1] [--mesh dp=4] [--every 10]

The tiny GPT-2 is compiled for the mesh, with calls in its emitted step that flip a bit of one rank's parameters and states
(flip.h): a random one, on a random rank, in a random step, before its forward pass, its backward pass or its update. The run must
end at the next check, or at a loss that is not finite before it, and name rank and tensor. If it does not, the flip must have had
no effect: the last checkpoint is that of an undisturbed run, byte for byte. (The lowest bits of a first moment decay within steps.)
Then as many steps as asked for must pass without a report. Prints a line per transport and exits with 1 after a finding."""
import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np"]
MOMENTS = ("Forward", "Backward", "Update")


def call(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stdout, done.stderr)


def compiled(folder, mesh, options):
    """Compiles the program, and builds it with calls of flipBit before each change of the kind of work."""
    program = folder / "flipped"
    call("partita", "compile", HERE.parents[1] / "Data/gpt2_tiny_dynamo_sdpa.onnx", "--dim", "batch=12", "--dim", "sequence=16", "--mesh",
         mesh, *options, "--no-build", "-o", program)
    text = (program / "model.cpp").read_text()
    text = re.sub(r"^( *)(beginWork\(rank, Work::(\w+)\);)", r'\1flipBit(rank, "\3");\n\1\2', text, flags=re.M)
    text = text.replace("using namespace partita_rt;\n", f'#include "{HERE / "flip.h"}"\nusing namespace partita_rt;\n', 1)
    assert all(f'flipBit(rank, "{moment}")' in text for moment in MOMENTS)
    (program / "model.cpp").write_text(text)
    call("make", "-C", program)
    return program


class Runs:
    def __init__(self, folder, program, ranks, transport, every):
        self.folder, self.program, self.ranks, self.transport, self.every = folder, program, ranks, transport, every

    def run(self, steps, name, flip=""):
        """Returns status and errors; the run's checkpoint is in the folder of that name."""
        environment = dict(os.environ, FLIP=flip)
        if self.transport == "messages":
            environment["PARTITA_RT_TRANSPORT"] = "messages"
        start = [] if self.transport == "threads" else MPIRUN + [self.ranks]
        shutil.rmtree(self.folder / name, ignore_errors=True)
        done = subprocess.run([str(word) for word in (*start, "partita", "run", self.program, "--data", self.folder / "tokens.bin", "--init",
                                                      "seed:1", "--steps", steps, "--check-replicas", self.every, "--checkpoint",
                                                      self.folder / name)],
                              env=environment, capture_output=True, text=True, timeout=3000)
        return done.returncode, done.stdout + done.stderr

    def saved(self, name, steps):
        return [path.read_bytes() for path in sorted((self.folder / name / f"step-{steps}").iterdir())]


def judge(text, rank, step, ranks, every):
    """Returns what is wrong with the report of a flip, and whether it came before the check."""
    flipped = re.search(r"flipped: (\S+) byte", text)
    if not flipped:
        return "nothing was flipped", False
    due = -(-step // every) * every
    found = re.search(r"error: rank (\d+): (?:after step (\d+)|the loss of step (\d+) is not finite, and before the update of step \d+) "
                      r"the replicas of (.*?) differ: (.*?)[,;]", text)
    if not found:
        return "no report", False
    reporter, after, early, names, who = found.groups()
    if (after and int(after) != due) or (early and not step <= int(early) <= due):
        return "not at the next check", bool(early)
    if flipped[1] not in re.split(r", | and ", names):
        return f"not {flipped[1]}", bool(early)
    others = [str(each) for each in range(ranks) if each != rank]
    expected = f"rank {rank} has other values than ranks {others[0]}" if ranks > 2 else "ranks 0 and 1 have different values"
    if not who.startswith(expected) or (ranks > 2 and int(reporter) != rank):
        return f"not rank {rank}", bool(early)
    return "", bool(early)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--flips", type=int, default=100)
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--transports", default="threads,mpi,messages")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mesh", default="dp=4")
    parser.add_argument("--every", type=int, default=10)
    parser.add_argument("options", nargs="*", help="after --: options of compile")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    program = compiled(args.folder, args.mesh, args.options)
    tokens = random.Random(5)
    (args.folder / "tokens.bin").write_bytes(bytes(byte for _ in range(20000) for byte in (tokens.randrange(60), 0)))
    ranks, draw, findings = int(args.mesh.split("=")[1]), random.Random(args.seed), 0
    for transport in args.transports.split(","):
        runs = Runs(args.folder, program, ranks, transport, args.every)
        last = 2 * args.every
        status, text = runs.run(last, "clean")
        assert status == 0, text
        counts = {"found": 0, "early": 0, "without": 0}
        while counts["found"] < args.flips:
            rank, step, moment = draw.randrange(ranks), draw.randint(1, last), draw.choice(MOMENTS)
            flip = f"{rank} {step} {moment} {draw.randrange(2**31)}"
            status, text = runs.run(last, "flipped-run", flip)
            if status == 0 and runs.saved("flipped-run", last) == runs.saved("clean", last) and "flipped: " in text:
                counts["without"] += 1
                continue
            problem, early = judge(text, rank, step, ranks, args.every)
            if status == 0 or problem:
                findings += 1
                print(f"FINDING {transport}, FLIP='{flip}': {problem or 'exit status 0'}\n{text}", flush=True)
            counts["found"] += 1
            counts["early"] += early
        status, text = runs.run(args.steps, "clean")
        if status != 0 or f"and always equal" not in text:
            findings += 1
            print(f"FINDING {transport}: {args.steps} clean steps: {text}", flush=True)
        print(f"{transport}: {counts['found']} flipped bits found ({counts['early']} of them by a loss that was not finite), "
              f"{counts['without']} without effect; {args.steps} clean steps", flush=True)
    print(f"{findings} findings")
    sys.exit(1 if findings else 0)


if __name__ == "__main__":
    main()
