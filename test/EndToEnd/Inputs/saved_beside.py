#!/usr/bin/env python3
"""saved_beside.py MODEL FOLDER: checkpoints that are copied beside the next step have the bits of those that are written before it.

The programs are linked with a function that makes the copying thread so slow that each update begins while almost nothing is copied: what
changes before rt.begin_changes would be in the checkpoint. A program without that call shows that it would."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from commands import build_for_simulated_gpu, call

model, folder = sys.argv[1], pathlib.Path(sys.argv[2])
TOKENS = folder / "tokens.bin"
TOKENS.write_bytes(bytes(byte for number in range(8000) for byte in (number * number % 61, 0)))
SMALL = ["--dim", "batch=4", "--dim", "sequence=8"]
HOST = ["--offload", "optimizer,parameters,activations", "--offload-threshold", "0"]
HALF = ["--precision", "float16", "--loss-scale", "0", "--initial-scale-power", "8"]
PLANS = {
    "one": [*SMALL, "--accumulate", "2", "--clip", "1"],
    "zero1": [*SMALL, "--mesh", "dp=2", "--zero-stage", "1"],
    "zero2half": [*SMALL, "--mesh", "dp=2", "--zero-stage", "2", *HALF, "--clip", "1"],
    "zero3": ["--dim", "batch=6", "--dim", "sequence=8", "--mesh", "dp=3", "--zero-stage", "3"],
    "fsdp": [*SMALL, "--mesh", "dp=2,fsdp=2", "--zero-stage", "3", "--precision", "bfloat16", "--accumulate", "2"],
    "tp": [*SMALL, "--mesh", "tp=2", "--optimizer", "sgd", "--momentum", "0.9"],
    "eight": [*SMALL, "--precision", "fp8", "--accumulate", "2"],
    "host": [*SMALL, "--mesh", "dp=2", "--zero-stage", "3", *HOST],
    "hosthalf": [*SMALL, *HOST, *HALF],
    "bubble": ["--dim", "batch=1", "--dim", "sequence=8", "--mesh", "pp=2", "--schedule", "zb-h2", "--accumulate", "4"],
    "wave": ["--dim", "batch=2", "--dim", "sequence=8", "--mesh", "pp=2,dp=2", "--schedule", "zb-v", "--accumulate", "4", "--clip", "1",
             *HALF, "--zero-stage", "1"],
    "gpu": [*SMALL, "--mesh", "dp=2", "--zero-stage", "1", "--target", "cuda"],
}


# Sleeps over each chunk that the thread copies (runtime/common/checkpoint/shards.h).
SLOW = '''
#include <cstdlib>
#include <unistd.h>
namespace partita_rt {
void beforeThreadCopies() { usleep(1000 * atoi(getenv("COPY_PAUSE"))); }
} // namespace partita_rt
'''


def command(program, name, *options, steps=4):
    return ["partita", "run", str(program), "--data", str(TOKENS), "--init", "seed:1", "--steps", str(steps), "--checkpoint",
            str(folder / name), "--keep", "9", *options]


def paused(milliseconds):
    return dict(os.environ, COPY_PAUSE=str(milliseconds), PARTITA_RT_SHARE_GPU="1")


def run(*words, pause=0):
    done = subprocess.run(words, env=paused(pause), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def files(name):
    return {str(path.relative_to(folder / name)): path.read_bytes() for path in (folder / name).rglob("*") if path.is_file()}


def of_step(name, step):
    return {path: content for path, content in files(name).items() if path.startswith(f"step-{step}/")}


def compiled(name):
    program = folder / "programs" / name
    simulated = "cuda" in PLANS[name]
    layers = os.environ["PARTITA_SOURCE"] + "/examples/02_llama_tensor_parallel/model.onnx"  # four of them
    call("partita", "compile", layers if name == "wave" else model, *PLANS[name], "--no-build", "-o", str(program))
    with open(program / ("model.cu" if simulated else "model.cpp"), "a") as source:
        source.write(SLOW)
    if simulated:
        build_for_simulated_gpu(str(program))
    else:
        call("make", "-C", str(program))
    return program


def same(name):
    """In each step the update finds a copy that has just begun: the thread still sleeps over its first chunk."""
    program = compiled(name)
    run(*command(program, f"{name}_before", "--checkpoint-every", "1", "--checkpoint-copy", "off"))
    run(*command(program, f"{name}_beside", "--checkpoint-every", "1"), pause=150)
    before, beside = files(f"{name}_before"), files(f"{name}_beside")
    assert sorted({path.split("/")[0] for path in before}) == ["step-1", "step-2", "step-3", "step-4"], before.keys()
    assert before == beside, (name, [path for path in before if before[path] != beside.get(path)])


with ThreadPoolExecutor(2) as pool:
    list(pool.map(same, PLANS))
print(f"{len(PLANS)} plans: the same bits")

# Without the calls before its updates, a program's checkpoints are wrong: the test sees it.
wrong = folder / "programs/wrong"
shutil.copytree(folder / "programs/one", wrong)
text = (wrong / "model.cpp").read_text()
assert text.count("beginChanges(rank);") == 1
(wrong / "model.cpp").write_text(text.replace("beginChanges(rank);", ""))
call("make", "-C", str(wrong))
run(*command(wrong, "wrong", "--checkpoint-every", "1"), pause=10)  # over each chunk: nobody else copies one
assert of_step("wrong", 1) != of_step("one_before", 1) and of_step("wrong", 4) == of_step("one_before", 4)
# One that does not say that it makes them is copied before the next step begins.
(wrong / "model.cpp").write_text(text.replace("beginChanges(rank);", "").replace("p.announcesChanges = true;", ""))
call("make", "-C", str(wrong))
run(*command(wrong, "silent", "--checkpoint-every", "1"), pause=150)
assert files("silent") == files("one_before")
print("without the calls: other bits, or the copy comes first")

# What ends a run while it copies: signals, its death. Nothing else takes long here.
TWO = folder / "programs/zero1"


def ended(name, number):
    """Starts a run with a save after every other step, and signals it: returns status and output."""
    process = subprocess.Popen(command(TWO, name, "--print-every", "1", "--checkpoint-every", "2", steps=100000), env=paused(20),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = ""
    while "step 8/" not in lines:
        line = process.stdout.readline()
        assert line, (name, lines, process.communicate())
        lines += line
    process.send_signal(number)
    output, errors = process.communicate(timeout=100)
    assert process.returncode == -number, (process.returncode, lines, output, errors)
    return lines + output


def expect_undisturbed(name, last):
    """Each checkpoint is that of a run to this step that writes them before the next step."""
    run(*command(TWO, f"{name}_before", "--checkpoint-every", "2", "--checkpoint-copy", "off", steps=last))
    steps = sorted(int(path.name[5:]) for path in (folder / name).glob("step-*") if path.suffix != ".tmp")
    assert last in steps and len(steps) > 2, (name, steps)
    for step in steps:
        assert of_step(name, step) == of_step(f"{name}_before", step), (name, step)


for number in (signal.SIGTERM, signal.SIGUSR1):
    name = f"signal{int(number)}"
    output = ended(name, number)
    last = re.search(rf"step (\d+) of 100000, ended by {number.name}; --resume goes on from there", output)
    assert last, output
    expect_undisturbed(name, int(last[1]))
print("signals: the save that was under way, and the last one")

ended("killed", signal.SIGKILL)
complete = max(int(path.name[5:]) for path in (folder / "killed").glob("step-*") if path.suffix != ".tmp")
run(*command(TWO, "killed", "--checkpoint-every", "2", "--resume", "auto", steps=complete + 4), pause=20)
expect_undisturbed("killed", complete + 4)
print("killed: the next run has the same bits")

# No file may grow beyond 8 KiB: the writes fail, the run goes on, and only its last save ends it.
full = subprocess.run(["bash", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "bash", *command(TWO, "full", "--checkpoint-every", "1")],
                      env=paused(100), capture_output=True, text=True, timeout=100)
assert full.returncode == 3, full  # after its last step
warnings = re.findall("warning: the checkpoint of step 1 is not written: (.*)", full.stderr)
assert len(warnings) == full.stderr.count("warning: the checkpoint") == 1, full.stderr
assert re.match(r"cannot write .* \(rank 0 on host \S+; 2 of 2 ranks have failed\); training goes on", warnings[0]), full.stderr
assert "step 4/4" in full.stdout and not list((folder / "full").glob("step-*")), full
print("no space: a warning, and training goes on")

# Of those that fail in succession, the first and few others.
many = subprocess.run(["bash", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "bash", *command(TWO, "many", "--checkpoint-every", "1", steps=40)],
                      env=paused(0), capture_output=True, text=True, timeout=100)
said = re.findall(r"warning: the checkpoint of step (\d+) is not written: .*?; training goes on, and the next one is written when it is due(.*)", many.stderr)
assert many.returncode == 3 and said == [("1", " (of further failures in a row, only the 8th, 16th, 32nd and so on are reported)")] + [
    (str(number), f"; {number} in succession have failed") for number in (8, 16, 32)], many.stderr
print("no space for long: the first, the 8th, the 16th, the 32nd")
