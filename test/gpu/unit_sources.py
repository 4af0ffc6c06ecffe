"""The Makefile of the unit tests for a GPU (unit/Makefile) has the sources of the CPU's kernels that its tests compare with, and those that these call: a test of a
new kernel links only with them, and no other check builds it without nvcc. usage: unit_sources.py SOURCE"""
import pathlib
import re
import subprocess
import sys

source = pathlib.Path(sys.argv[1]).resolve()
unit, kernels = source / "test/gpu/unit", source / "runtime/cpu/kernels"
printed = subprocess.run(["make", "-s", "-C", unit, "NVCC=true", "--eval", "print:;@echo $(CPU) : $(CASES)", "print"], check=True, capture_output=True, text=True)
listed, cases = ([(unit / each).resolve() for each in part.split()] for part in printed.stdout.split(":"))
assert len(cases) > 15 and len(listed) > 10, (cases, listed)


def text(path):
    return re.sub(r"//.*", "", path.read_text())


# A function that other files may call begins at the start of a line; a test calls the CPU's by their namespace, because the GPU's have the same names.
DEFINED = re.compile(r"^(?:template <[^>]*> )?(?!static |typedef |using |return |extern )[\w:<>,*& ]+?[ *&](\w+)\([^;]*?\) (?:const )?\{", re.M)
defined = {path: set(DEFINED.findall(text(path))) for path in sorted(kernels.glob("*.cpp"))}
wanted = {name: case for case in cases for name in re.findall(r"partita_rt::(?:detail::)?(\w+)\(", text(case))}
problems = [f"{wanted[name].name} calls {name}, which is in {path.name}" for path, names in defined.items() if path not in listed
            for name in sorted(names & wanted.keys())]
for path in listed:
    assert path.exists(), path
own = {name for path in listed for name in defined[path]}
called = {name: path for path in listed for name in re.findall(r"\b(\w+)(?:::\w+)?\(", text(path))}
headers = "".join(map(text, kernels.glob("*.h")))
problems += [f"{called[name].name} calls {name}, which is in {path.name}" for path, names in defined.items() if path not in listed
             for name in sorted((names & called.keys()) - own) if re.search(rf"\b{name}\([^;{{}}]*\)(?: const)?;", headers)]
found = {name for path in listed for name in defined[path]} & wanted.keys()
assert {"quantizeChunks", "quantizeBlocks", "packForServers"} <= wanted.keys() and len(found) > 20, sorted(found)
print("\n".join(problems) or f"{len(found)} functions of the CPU in {len(listed)} sources")
sys.exit(bool(problems))
