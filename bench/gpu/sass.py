"""GPU machine code as cuobjdump prints it: functions, innermost loops, registers, offsets of arguments."""

import collections
import os
import re
import shutil
import subprocess

KINDS = {"load 16": r"LDG\S*\.128", "load": r"LDG", "store 16": r"STG\S*\.128", "store": r"STG", "ex2": r"MUFU\.EX2", "other MUFU": r"MUFU",
         "float": r"F(ADD|MUL|FMA|MNMX|SETP|SEL)", "call": r"CALL"}


class Problem(Exception):
    pass


def cuobjdump(path, *what):
    """Returns cuobjdump's output for an object; uses CUDA_HOME's, or the PATH's."""
    home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
    tool = shutil.which(f"{home}/bin/cuobjdump") or shutil.which("cuobjdump")
    if not tool:
        raise Problem(f"cuobjdump is neither in {home}/bin nor in the PATH; set CUDA_HOME")
    done = subprocess.run([tool, *what, str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        raise Problem(done.stderr.strip() or done.stdout.strip())
    return done.stdout


def demangled(names):
    """Returns the demangled names, in the same order."""
    names = list(names)
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    return done.stdout.splitlines() if names else []


def functions(text):
    """Returns (mangled name, [(address, instruction)])."""
    for part in text.split("Function : ")[1:]:
        name, *lines = part.splitlines()
        code = [(int(match[1], 16), match[2]) for line in lines
                if (match := re.match(r"\s+/\*([0-9a-f]{4,})\*/\s+(.*?);", line))]
        yield name.strip(), code


def loops(code):
    """Returns innermost loops: from the target of a branch back to the branch, without another such branch in
    between."""
    back = []
    for address, text in code:
        match = re.search(r"\bBRA\S* .*?0x([0-9a-f]+)", text)
        if match and int(match[1], 16) < address:
            back.append((int(match[1], 16), address))
    for begin, end in back:
        if not any(begin <= other and last < end for other, last in back if (other, last) != (begin, end)):
            yield [text for address, text in code if begin <= address <= end]


def without_guard(text):
    return re.sub(r"^@!?U?P\w+\s+", "", text)


def count(body):
    found = collections.Counter()
    for text in body:
        text = without_guard(text)
        kind = next((kind for kind, pattern in KINDS.items() if re.match(pattern, text)), None)
        found[kind] += 1
    return found


def resources(text):
    """Returns {mangled name: (registers, bytes of static shared memory)} from --dump-resource-usage."""
    found = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:\d+ SHARED:(\d+)", text)
    return {name: (int(registers), int(shared)) for name, registers, shared in found}


def parameters(text):
    """Returns {mangled name: [(offset, size) of each argument]} from --dump-elf."""
    found = {}
    for part in re.split(r"\n\.nv\.info\.", text)[1:]:
        name, rest = part.split("\n", 1)
        rest = rest.split("\n.")[0]
        places = re.findall(r"Ordinal\s*:\s*0x([0-9a-f]+)\s+Offset\s*:\s*0x([0-9a-f]+)\s+Size\s*:\s*0x([0-9a-f]+)", rest)
        found[name.strip()] = [place[1:] for place in sorted(tuple(int(number, 16) for number in each) for each in places)]
    return found
