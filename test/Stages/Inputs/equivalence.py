"""Cuts models into stages and compares them with the program of all stages: equivalence.py FAMILIES_DIR DIR [NUMBER...]

Each plan is compiled as one program, up to the states of the optimizer, and cut. The stages get a schedule, and each goes on by
itself, up to its planned memory, which is checked value by value. Whole, cut and, with sends that are complete only once they
are received, finished stages make two steps in double precision, and must agree in results, parameters and optimizer states.
Exit code 1 if one does not.
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Golden"))
import family_files  # noqa: E402

PHASES = ["partition", "parameters", "differentiate", "optimize", "states"]
OF_STAGES = ["schedule", "fuse", "overlap", "memory", "sync"]
CUT = ["pipe-report", "pipe-agree", "pipe-cut", "builtin.module(canonicalize)", "builtin.module(cse)"]

# family, options of pipe-place, schedule, plan
PLANS = [
    ("gpt2", "stages=2", "zb-h2", "optimizer=adam clip=1"),  # a table at both ends
    ("t5", "stages=4", "zb-h1", "mesh=tp=2"),  # an encoder's result, needed by two stages behind it
    ("t5", "stages=3 assign=uniform", "gpipe", "optimizer=adamw mesh=dp=2 zero-stage=1 clip=0.5"),
    ("t5", "stages=2 assign=cuts:1", "1f1b", "mesh=dp=2,tp=2"),
    ("llama", "stages=2 assign=parameters", "zb-h1", "mesh=dp=2,tp=2 sequence-parallel=true recompute=block"),
    ("mistral", "stages=2", "zb-h1", "mesh=dp=2 zero-stage=3"),
    ("qwen2", "stages=2", "1f1b", "mesh=dp=2 zero-stage=2 clip=1 optimizer=adamw"),
    ("opt", "stages=2", "zb-h2", "mesh=tp=2 optimizer=lamb"),
    ("gpt_neox", "stages=2", "gpipe", "mesh=fsdp=2 zero-stage=3 clip=1"),
    ("bert", "stages=2", "1f1b", "mesh=dp=4"),
    ("roberta", "stages=2", "zb-h2", "mesh=tp=2 recompute=block"),
    ("vit", "stages=2", "zb-h1", "mesh=dp=2 clip=1"),
]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr[:2000]}")
    return done.stdout


def model(families, folder, family):
    """The program before it is partitioned, made once."""
    path = folder / f"{family}.mlir"
    if not path.exists():
        made = folder / family
        made.mkdir()
        run(sys.executable, family_files.__file__, "make", family, made)
        options = ((made / "dims").read_text() + " " + (made / "options").read_text()).split()
        run("partita", "compile", families / f"{family}_torchscript.onnx", *options, "--accumulate", "5",
            "--compile-to", "precision", "-o", path)
    return path


def compare(families, folder, family, stages, schedule, plan):
    whole, cut, done = (folder / f"{name}.mlir" for name in ("whole", "cut", "done"))
    run("partita-opt", model(families, folder, family), f"--pipe-place={stages}",
        *[f"--partita-{phase}={plan}" for phase in PHASES], "-o", whole)
    run("partita-opt", whole, f"--pass-pipeline=builtin.module({','.join(CUT)})", "-o", cut)
    phases = ",".join(f"partita-{phase}" for phase in OF_STAGES)
    run("partita-opt", cut,
        f"--pass-pipeline=builtin.module(split-backward{{schedule={schedule}}},schedule-stages{{schedule={schedule}}},builtin.module({phases}))",
        "-o", done)
    for program, *sends in ([cut], [done, "--blocking-sends"]):
        equal = run("partita-interp", program, "--entry", "train_step", "--whole", whole, "--times", "2", "--tolerance", "1e-10",
                    *sends)
    return equal


def main():
    families, folder = map(pathlib.Path, sys.argv[1:3])
    failed = 0
    chosen = [int(number) for number in sys.argv[3:]] or range(len(PLANS))
    for i in chosen:
        family, stages, schedule, plan = PLANS[i]
        try:
            result = compare(families, folder, family, stages, schedule, plan).strip()
        except RuntimeError as error:
            failed += 1
            result = str(error)
        print(f"{family}, {stages}, {schedule}, {plan}: {result}", flush=True)
    print(f"{len(chosen) - failed} plans equal, {failed} not")
    sys.exit(failed > 0)


main()
