"""The launches of a program's step, and the machine code of its kernels, without a GPU.

The program is built for the simulated GPU (test/Support/simulated), which records each launch of the step's graph
with its arguments and runs none of them, so that batches of any size take a second. Kernels are compiled by nvcc from
the same sources; both builds' symbols have the same demangled text.
"""

import array
import json
import os
import pathlib
import re
import shutil
import subprocess

import sass

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "test/Support"
FLAGS = ["-std=c++17", "-O0", "-fno-math-errno", "-ffp-contract=off", "-Wno-unknown-pragmas", "-march=native",
         f"-I{ROOT}/runtime/include", f"-I{SUPPORT}", f"-I{SUPPORT}/simulated"]
TERABYTE = 10 ** 12


def call(command, **keys):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **keys)
    if done.returncode != 0:
        raise sass.Problem(f"{command[0]}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class Program:
    """An emitted GPU program, OUT/program, and files made from it in OUT; build: Partita's build folder."""

    def __init__(self, out, build):
        self.out, self.build = pathlib.Path(out), pathlib.Path(build)
        self.folder, self.simulated = self.out / "program", self.out / "simulated"
        self.libraries = [self.build / f"lib/libpartita_rt_cuda_{name}.a" for name in ("process", "kernels")]

    def link(self):
        for library in self.libraries:
            if not library.exists():
                raise sass.Problem(f"{library} is missing: ninja -C {self.build}/runtime partita_rt_cuda_process")
        ccache = [path] if (path := shutil.which("ccache")) else []
        call([*ccache, "g++", *FLAGS, "-xc++", "-c", self.folder / "model.cu", "-o", f"{self.simulated}.o"])
        call(["g++", f"{self.simulated}.o", *self.libraries, "-lpthread", "-o", self.simulated])

    def step(self):
        """Returns launches, matmuls, copies and fills of the step's graph, as in test/Support/simulated/record.h."""
        lines, tokens = self.out / "launches", self.out / "tokens.bin"
        tokens.write_bytes(array.array("H", [1]).tobytes() * 2_000_000)
        environment = {**os.environ, "PARTITA_SIMULATED_LAUNCHES": str(lines), "PARTITA_SIMULATED_MEMORY": str(TERABYTE)}
        call([self.simulated, "--data", tokens, "--init", "seed:1", "--steps", 2], env=environment)
        step = None  # the second step is the captured one
        for line in map(json.loads, lines.read_text().splitlines()):
            if "capture" in line and not line["capture"]:
                break
            if "capture" in line:
                step = []
            elif step is not None:
                step.append(line)
        if not step:
            raise sass.Problem(f"{self.simulated} has captured no step")
        symbols = symbols_of(self.simulated)
        for line in step:
            if "kernel" in line:
                line["symbol"] = symbols[line["address"]]
        return step

    def code(self, symbols, arch="sm_90"):
        """Returns {symbol: Kernel} of kernels, compiled as programs are."""
        objects = {}
        members = members_of(self.libraries[1])
        for symbol in symbols:
            objects.setdefault(members.get(symbol, "model"), []).append(symbol)
        made = {}
        for member, wanted in objects.items():
            made.update(kernels_in(self.compile(member, arch), wanted))
        return made

    def compile(self, member, arch):
        if member == "model":
            call(["make", "-s", "-C", self.folder, "model.o", f"PARTITA_RT={ROOT}/runtime", f"ARCH={arch}"])
            return self.folder / "model.o"
        [source] = (ROOT / "runtime/cuda").glob(f"*/{member.removesuffix('.o')}")
        path = self.out.resolve() / f"cuda_{arch}" / source.parent.name / member
        call(["make", "-s", "-C", ROOT / "runtime/cuda", f"OUT={self.out.resolve()}", f"ARCH={arch}", path])
        return path


class Kernel:
    def __init__(self, code, registers, shared, places):
        self.code, self.registers, self.shared, self.places = code, registers, shared, places


def plain(symbol):
    """Returns a symbol without the differences between the two compilers."""
    return symbol.strip().removeprefix("void ")


def kernels_in(path, wanted):
    """Returns {symbol: Kernel} of an object's functions with these plain names."""
    dump = list(sass.functions(sass.cuobjdump(path, "--dump-sass")))
    names = dict(zip((name for name, _ in dump), map(plain, sass.demangled(name for name, _ in dump))))
    used = sass.resources(sass.cuobjdump(path, "--dump-resource-usage"))
    places = sass.parameters(sass.cuobjdump(path, "--dump-elf"))
    found = {names[name]: Kernel(code, *used[name], places[name]) for name, code in dump if names[name] in wanted}
    if missing := set(wanted) - set(found):
        raise sass.Problem(f"{path} has no {sorted(missing)[0]}")
    return found


def symbols_of(executable):
    """Returns {address: plain name}."""
    found = {}
    for line in call(["nm", "-C", "--defined-only", executable]).splitlines():
        address, _, name = line.split(" ", 2)
        found.setdefault(int(address, 16), plain(name))
    return found


def members_of(library):
    """Returns {plain name of a function: the archive's member that has it}."""
    found = {}
    for line in call(["nm", "-A", "-C", "--defined-only", library]).splitlines():
        if match := re.match(r".*:(\S+\.cu\.o):\S+ [TtWw] (.*)", line):
            found.setdefault(plain(match[2]), match[1])
    return found
