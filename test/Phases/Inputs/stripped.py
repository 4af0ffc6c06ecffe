# stripped.py DIR MODEL [OPTION...]: compiles the model as it is, and with all debug locations stripped after each single pass. Both must
# emit the same files, but for comments.
import os
import re
import subprocess
import sys


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr[-2000:])
    return done.stderr


def split(passes):
    """The passes of a pipeline's text, at its top level."""
    found, depth = [""], 0
    for c in passes:
        depth += (c in "({[") - (c in ")}]")
        if c == "," and depth == 0:
            found.append("")
        else:
            found[-1] += c
    return [f"builtin.module({inner})" if each.startswith("builtin.module(") else each for each in found
            for inner in (split(each[len("builtin.module("):-1]) if each.startswith("builtin.module(") else [each])]


def program(folder):
    """{name of an emitted file: its text without comments}."""
    text = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as file:
            text[name] = re.sub(r"//.*", "", file.read())
    return text


def at(name):
    return os.path.join(work, name)


work, model, *options = sys.argv[1:]
os.makedirs(work)
run("partita", "compile", model, *options, "--no-build", "-o", at("as-it-is/program"))

run("partita", "compile", model, *options, "--compile-to", "import", "-o", at("import.mlir"))
pipeline = run("partita", "compile", at("import.mlir"), "--compile-to", "lower", "--print-pipeline", "-o", at("lower.mlir"))
passes = split(re.search(r"builtin\.module\((.*)\)", pipeline)[1])
assert len(passes) > 60, passes
run("partita-opt", at("import.mlir"), "-o", at("lower.mlir"),
    "--pass-pipeline=builtin.module(" + ",".join(["strip-debuginfo", *(each + ",strip-debuginfo" for each in passes)]) + ")")
with open(at("lower.mlir")) as file:
    module = file.read()
assert "loc(" not in module and 'train.phase = "lower"' in module
run("partita", "compile", at("lower.mlir"), "--no-build", "-o", at("stripped/program"))

original, stripped = program(at("as-it-is/program")), program(at("stripped/program"))
assert original.keys() == stripped.keys() and len(original) > 1, (original.keys(), stripped.keys())
for name, text in original.items():
    if text != stripped[name]:
        lines = zip(text.splitlines(), stripped[name].splitlines())
        sys.exit(f"{name} differs: " + next((f"{a!r}, stripped {b!r}" for a, b in lines if a != b), "in length"))
print(f"{len(original)} files after {len(passes)} passes: equal")
