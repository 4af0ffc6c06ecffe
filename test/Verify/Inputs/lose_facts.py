# lose_facts.py IMPORTED.mlir PHASE...: compiles it to one phase after the other. The output of each phase keeps its contract; without a fact
# it does not, and a located message names the fact: lost by all ops, or by one, which the message then points at.
import os
import re
import subprocess
import sys

CAUSES, DIRECTION, LAYER = "par.causes", "train.backward", "train.layer"


def check(module, phase):
    done = subprocess.run(["partita-opt", f"--verify-phase=after={phase}", "-o", os.devnull, "-"], input=module, capture_output=True, text=True)
    return done.returncode, done.stderr


def expect_error(module, phase, fact, lines):
    code, said = check(module, phase)
    found = re.search(rf"^<stdin>:(\d+):\d+: error: '[^']+' op .*{fact}\b.* after phase '{phase}'(; .*)?$", said, re.M)
    assert code != 0 and found and int(found[1]) - 1 in lines, (phase, fact, lines[:9], said[:400])


imported, *phases = sys.argv[1:]
found, before = 0, imported
for phase in phases:
    output = imported.replace(".mlir", f".{phase}.mlir")
    subprocess.run(["partita", "compile", before, "--compile-to", phase, "-o", output], check=True, capture_output=True)
    before = output
    module = subprocess.run(["partita-opt", output, "--strip-debuginfo"], check=True, capture_output=True, text=True).stdout
    lines = module.splitlines(keepends=True)
    assert check(module, phase) == (0, ""), (imported, phase)
    for fact in (CAUSES, DIRECTION, LAYER):
        having = [i for i, line in enumerate(lines) if fact in line]
        if not having:
            continue
        lost = [re.sub(rf"(?<!#){re.escape(fact)}", "lost", line) for line in lines]
        expect_error("".join(lost), phase, fact, range(len(lines)))
        found += 1
        # One op alone: each is missed until waits have causes, too, and the passes are joined. What is of no layer may be built from any.
        if fact != LAYER and phase in ("partition", "differentiate"):
            for i in (having[0], having[len(having) // 2], having[-1]):
                expect_error("".join(lines[:i] + [lost[i]] + lines[i + 1:]), phase, fact, [i])
                found += 1
print(f"{os.path.basename(imported)[:-5]}: {found} losses found")
