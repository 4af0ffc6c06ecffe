"""Runs the cases of a test file: sections `//--- NAME` of Python that save a model.

    //--- add
    # ARGS: --dim batch=2
    # CHECK: tx.add
    save(output, model(graph(...)))

A case's script sees onnx_writer's functions, `output` (the model's path) and `folder` (its own,
empty). Then `partita import MODEL ARGS` runs, and FileCheck compares what it prints with the
case's CHECK lines. A case that says `# ERROR: text` must instead exit with 1, print one line, which contains
the text, and leave no output file behind; what `# ERROR-NOT: text` says must not be in it.

usage: run_cases.py PARTITA FILE FOLDER
"""
import os
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import onnx_writer


def run_case(partita, name, text, folder):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    script = os.path.join(folder, name + ".py")
    with open(script, "w") as file:
        file.write(text)
    model = os.path.join(folder, name + ".onnx")
    scope = {key: getattr(onnx_writer, key) for key in dir(onnx_writer)}
    scope.update(output=model, folder=folder, os=os)
    exec(compile(text, script, "exec"), scope)
    args = shlex.split(" ".join(re.findall(r"^# ARGS:(.*)$", text, re.M)))
    errors = re.findall(r"^# ERROR: (.*)$", text, re.M)
    absent = re.findall(r"^# ERROR-NOT: (.*)$", text, re.M)
    written = os.path.join(folder, "out.mlir")
    command = [partita, "import", name + ".onnx"] + args
    if errors:
        command += ["-o", "out.mlir"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="backslashreplace",
                          timeout=60)
    if errors:
        lines = done.stderr.splitlines()
        if done.returncode != 1:
            return f"exit code {done.returncode}, expected 1\n{done.stdout}{done.stderr}"
        if len(lines) != 1 or any(e not in lines[0] for e in errors) or any(e in lines[0] for e in absent):
            return f"expected one line with {errors}, without {absent}, got\n{done.stderr}"
        if os.path.exists(written) or done.stdout:
            return "it failed, and yet it wrote something"
        return None
    if done.returncode != 0:
        return f"exit code {done.returncode}\n{done.stderr}"
    if "CHECK" not in text:
        return "the case checks nothing"
    check = subprocess.run(["FileCheck", script, "--dump-input-context=20"], input=done.stdout + done.stderr,
                           capture_output=True, text=True)
    return None if check.returncode == 0 else check.stdout + check.stderr


def main():
    partita, file, folder = sys.argv[1:]
    parts = re.split(r"^//--- (\S+)\n", open(file).read(), flags=re.M)
    cases = list(zip(parts[1::2], parts[2::2]))
    failures = 0
    for name, text in cases:
        problem = run_case(partita, name, text, os.path.join(folder, name))
        if problem:
            failures += 1
            print(f"case {name}: {problem}")
    print(f"{len(cases) - failures} of {len(cases)} cases passed")
    sys.exit(1 if failures or not cases else 0)


main()
