"""Cuts models into stages and compares them with the uncut program: equivalence.py FAMILIES_DIR DIR [NUMBER...]

Besides models from files there are stacks of any number of layers (stack.py), for stages of several chunks, and models
with skip connections, whose layers are found (skips.py). Each plan
is compiled as one program, up to the optimizer's states, and cut. The stages get a schedule, and each is compiled
separately up to its planned memory, which is checked value by value. The uncut program, the stages, and the stages with
sends that complete only once they are received run two steps in double precision, and must agree in results, parameters
and optimizer states. Exit code 1 if one does not.
"""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Golden"))
import family_files  # noqa: E402
import skips  # noqa: E402
import stack  # noqa: E402

# Phases, and the plan's options that each reads.
PHASES = {"partition": ["mesh", "sequence-parallel"], "parameters": ["zero-stage", "sync-each"], "differentiate": ["recompute"],
          "optimize": ["optimizer", "clip"], "states": ["zero-stage", "sync-each"]}
OF_STAGES = ["schedule", "fuse", "overlap", "memory", "sync"]
CUT = ["pipe-pass-back", "pipe-report", "pipe-agree", "pipe-cut", "builtin.module(canonicalize)", "builtin.module(cse)"]

# Two stages of two chunks in a wave, two micro-batches.
WAVE = {"chunks": 2, "wave": True, "slots": [["F0", "F1", "F0.1", "B0.1", "F1.1", "B1.1", "B0", "B1"],
                                             ["F0", "F0.1", "F1", "F1.1", "B0.1", "B0", "B1.1", "B1"]]}

# family, number of layers or kind of skips and number of blocks, micro-batches, options of pipe-place, schedule, plan
PLANS = [
    ("gpt2", 5, "stages=2", "zb-h2", "optimizer=adam clip=1"),  # a table at both ends
    ("t5", 5, "stages=4", "zb-h1", "mesh=tp=2"),  # an encoder's result, needed by two later stages
    ("t5", 5, "stages=3 assign=uniform", "gpipe", "optimizer=adamw mesh=dp=2 zero-stage=1 clip=0.5"),
    ("t5", 5, "stages=2 assign=cuts:1", "1f1b", "mesh=dp=2,tp=2"),
    ("llama", 5, "stages=2 assign=parameters", "zb-h1", "mesh=dp=2,tp=2 sequence-parallel=true recompute=block"),
    ("mistral", 5, "stages=2", "zb-h1", "mesh=dp=2 zero-stage=3 sync-each=step"),  # reduced in the last slots
    ("qwen2", 5, "stages=2", "1f1b", "mesh=dp=2 zero-stage=2 clip=1 optimizer=adamw"),
    ("opt", 5, "stages=2", "zb-h2", "mesh=tp=2 optimizer=lamb"),
    ("gpt_neox", 5, "stages=2", "gpipe", "mesh=fsdp=2 zero-stage=3 clip=1"),
    ("bert", 5, "stages=2", "1f1b", "mesh=dp=4"),
    ("roberta", 5, "stages=2", "zb-h2", "mesh=tp=2 recompute=block"),
    # SGD: a key's bias has only rounding as its gradient, which Adam divides by its own size.
    ("vit", 5, "stages=2", "zb-h1", "mesh=dp=2 clip=1 optimizer=sgd"),
    ("t5", 4, "stages=2", "interleaved", "optimizer=adamw mesh=dp=2 zero-stage=1 clip=0.5"),
    (4, 2, "stages=2", "wave", "optimizer=lamb mesh=tp=2"),  # one stage has both ends of the model
    (6, 4, "stages=2 chunks=3", "interleaved", "clip=1 mesh=dp=2 zero-stage=2"),
    (6, 6, "stages=3", "interleaved", "recompute=block optimizer=adam"),
    (9, 3, "stages=3 chunks=3", "interleaved", "mesh=dp=2 zero-stage=3"),
    (6, 6, "stages=3", "zb-v", "mesh=dp=2 zero-stage=2 sync-each=step clip=1"),
    ("t5", 4, "stages=2", "zb-v", "mesh=tp=2 recompute=block"),
    (("long", 6), 4, "stages=2", "1f1b", "optimizer=adam clip=1"),  # values that stages pass on
    (("long", 6), 4, "stages=3 assign=uniform", "zb-h1", "mesh=dp=2 zero-stage=2 recompute=block"),
    (("long", 7), 4, "stages=4", "1f1b", "mesh=tp=2 optimizer=adamw"),
    (("u", 7), 4, "stages=2", "interleaved", "mesh=dp=2 zero-stage=3 sync-each=step"),
    (("u", 7), 4, "stages=3", "zb-v", "recompute=block"),
    (("u", 8), 4, "stages=4 assign=uniform", "1f1b", "mesh=tp=2 clip=1"),
    (("norm", 7), 4, "stages=3 assign=uniform", "1f1b", "mesh=dp=2 clip=1"),  # skips with ops of their own
    (("linear", 8), 4, "stages=2", "zb-h1", "optimizer=adam recompute=block"),
    (("norm-even", 6), 4, "stages=3", "zb-v", "mesh=dp=2"),  # the innermost skip is over no block
    (("gate-even", 6), 4, "stages=3 assign=uniform", "1f1b", "mesh=tp=2 clip=1"),
    (("sum", 6), 4, "stages=3 assign=uniform", "zb-h1", "mesh=dp=2"),  # every block's output goes to the last stage
]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[:2000]}")
    return done.stdout


def name_of(family):
    return "_".join(map(str, family)) if isinstance(family, tuple) else str(family)


def model(families, folder, family, micro_batches):
    """Returns the program before it is partitioned, made once."""
    path = folder / f"{name_of(family)}_{micro_batches}.mlir"
    if path.exists():
        return path
    if not isinstance(family, str):
        marked = folder / "made.mlir"
        lines = stack.program(family, micro_batches) if isinstance(family, int) else skips.program(*family, micro_batches)
        marked.write_text("\n".join(lines))
        run("partita-opt", marked, "--mark-layers", "--note-flops", "-o", path)
        return path
    made = folder / family
    made.mkdir(exist_ok=True)
    run(sys.executable, family_files.__file__, "make", family, made)
    options = ((made / "dims").read_text() + " " + (made / "options").read_text()).split()
    run("partita", "compile", families / f"{family}_torchscript.onnx", *options, "--accumulate", micro_batches,
        "--compile-to", "precision", "-o", path)
    # A program without a phase or a plan, which takes each plan's options.
    path.write_text(re.sub(r', train\.(phase = "\w+"|plan = #train\.plan<\{.*?\}>)', "", path.read_text(), count=2))
    return path


def compare(families, folder, family, micro_batches, place, schedule, plan):
    full, cut, done = (folder / f"{name}.mlir" for name in ("full", "cut", "done"))
    words = place.split()
    layout = " ".join(word for word in words if not word.startswith("assign="))
    assign = " ".join(word for word in words if word.startswith("assign="))
    run("partita-opt", model(families, folder, family, micro_batches), f"--choose-schedule={layout} schedule={schedule}", "--note-costs",
        f"--pipe-place={assign}" if assign else "--pipe-place",
        *[f"--partita-{phase}=" + " ".join(word for word in plan.split() if word.split("=")[0] in reads)
          for phase, reads in PHASES.items()], "-o", full)
    run("partita-opt", full, f"--pass-pipeline=builtin.module({','.join(CUT)})", "-o", cut)
    phases = ",".join(f"partita-{phase}" for phase in OF_STAGES)
    run("partita-opt", cut,
        f"--pass-pipeline=builtin.module(split-backward,schedule-stages,builtin.module({phases}))", "-o", done)
    runs = [(cut, "train_step", "--times", "2"), (done, "train_step", "--times", "2", "--blocking-sends")]
    if not isinstance(family, str):
        runs.append((done, "forward", "--blocking-sends"))
    for program, entry, *options in runs:
        equal = run("partita-interp", program, "--entry", entry, "--full", full, "--tolerance", "1e-10", *options)
    return equal


def main():
    families, folder = map(pathlib.Path, sys.argv[1:3])
    wave = folder / "wave.json"
    wave.write_text(json.dumps(WAVE))
    failed = 0
    chosen = [int(number) for number in sys.argv[3:]] or range(len(PLANS))
    for i in chosen:
        family, micro_batches, place, schedule, plan = PLANS[i]
        try:
            result = compare(families, folder, family, micro_batches, place, wave if schedule == "wave" else schedule, plan).strip()
        except RuntimeError as error:
            failed += 1
            result = str(error)
        print(f"{name_of(family)}, {micro_batches} micro-batches, {place}, {schedule}, {plan}: {result}", flush=True)
    print(f"{len(chosen) - failed} plans equal, {failed} not")
    sys.exit(failed > 0)


main()
