"""A packed folder on a machine with a GPU: what is compiled there, with what, where to, and until when. Standard library only."""

import json
import os
import time

import gpu
import installed
import prebuilt

LIMITS = {"build": 240, "unit": 300, "tiny": 60, "step": 90, "tune": 120, "ncu": 150, "probe": 120, "sanitizer": 150, "kernels": 60,
          "bench": 540}
LEAST = 10  # seconds that must be left for a test to begin
END = 15  # seconds that are left for the end of a run: its table and its archive


class Pack:
    def __init__(self, folder, build, nvcc, architecture, jobs, seconds):
        self.folder, self.build, self.nvcc, self.architecture, self.jobs = folder, build, nvcc, architecture, jobs
        self.content = json.loads((folder / "pack.json").read_text())
        self.cublas, self.nccl, self.cudnn = installed.find(nvcc)
        self.end = time.monotonic() + seconds - END if seconds else None
        self.build_seconds = LIMITS["build"]  # of one make
        self.prebuilt = prebuilt.unpack(self)
        self.versions = installed.versions(prebuilt.compiler(folder, architecture) or installed.nvcc_version(nvcc), self.cublas, self.nccl, self.cudnn)

    def left(self):
        return self.end - time.monotonic() if self.end else float("inf")

    def limit(self, what):
        """Seconds of a command: all that are left for the benchmarks of a run with a deadline."""
        most = self.build_seconds if what == "build" else LIMITS[what]
        return max(self.left() if what == "bench" and self.end else min(most, self.left()), 1)

    def has_time(self, table, name, seconds=LEAST):
        return self.left() >= seconds or table.add(name, "left out for the deadline; the same command goes on")

    def is_built(self, path):
        """By whoever packed."""
        return self.prebuilt and os.access(path, os.X_OK)

    def flags(self):
        """For sources that contain no kernels of the runtime: runtime/cuda/nvcc.mk knows what those need."""
        return ["-std=c++17", "-O3", f"-arch={self.architecture}", "-diag-suppress=1675", *self.cublas.flags(), *self.nccl.flags(),
                *self.cudnn.flags(), "-I", self.folder / "runtime/include", "-I", self.folder / "runtime"]

    def make(self, where, *words):
        return gpu.run(["make", "-C", self.folder / where, f"-j{self.jobs}", f"ARCH={self.architecture}",
                        f"NVCC={self.nvcc}", *words], self.limit("build"))

    def compile(self, name, sources, *libraries):
        out = self.build / name
        return out, gpu.run([self.nvcc, *self.flags(), "-o", out, *(self.folder / source for source in sources), *libraries],
                            self.limit("build"))

    def write_log(self, name, done):
        (self.build / name).write_text(done.output)


def show(path, lines=30):
    """What a compiler says goes to the output too: there may be no time to ask for the log."""
    if path.exists():
        errors = [line for line in path.read_text().splitlines() if line.strip()]
        first = next((i for i, line in enumerate(errors) if "error" in line.lower()), max(len(errors) - lines, 0))
        print("".join(f"    {line[:300]}\n" for line in errors[first:first + lines]), end="", flush=True)


def executable(pack, name):
    folder = pack.folder / "programs" / name
    path = folder / json.loads((folder / "manifest.json").read_text())["program"]
    return path if os.access(path, os.X_OK) else None


def build_unit(pack, table, *words):
    if pack.is_built(pack.build / "unit/unit_tests"):
        return table.add("unit: build", "", "packed")
    done = pack.make("test/gpu/unit", f"OUT={pack.build / 'unit'}", f"GOOGLETEST={pack.folder / 'googletest'}", *words)
    pack.write_log("unit.log", done)
    if done.problem:
        show(pack.build / "unit.log")
    return table.add("unit: build", done.problem, f"{done.seconds:.0f} s", done.seconds)


BENCHES = {"probe": "bench/gpu/probe.cu", "attention": "bench/gpu/attention.cu"}


def build_programs(pack, table, programs, benches=()):
    """The runtime once, then every program and the benchmarks of kernels, at one time. Returns the names of those that are
    there."""
    wanted = {*(each["name"] for each in programs), *benches}
    packed = {name for name in wanted if pack.is_built(pack.build / name if name in benches else executable(pack, name) or "")}
    if packed == wanted:
        table.add("build: programs", "", f"{len(packed)} are packed")
        return packed
    done = pack.make("runtime/cuda", f"OUT={pack.build / 'lib'}")
    pack.write_log("runtime.log", done)
    if done.problem:
        show(pack.build / "runtime.log")
    if not table.add("build: runtime", done.problem, f"{done.seconds:.0f} s", done.seconds):
        return set()
    names, benches = ([name for name in those if name not in packed] for those in ((each["name"] for each in programs), benches))
    # One make for all: as many compilers at a time as jobs were asked for.
    rules = "".join(f"all: {name}\n{name}:\n\t+$(MAKE) -C '{pack.folder / 'programs' / name}' > "
                    f"'{pack.build / name}.build.log' 2>&1\n" for name in names)
    library = pack.build / "lib" / f"libpartita_rt_cuda_{pack.architecture}.a"
    for name in benches:
        words = [pack.nvcc, *pack.flags(), "-o", pack.build / name, pack.folder / BENCHES[name], library, pack.cublas.link(),
                 pack.nccl.link(), "-lpthread", "-ldl"]
        rules += f"all: {name}\n{name}:\n\t{' '.join(map(str, words))} > '{pack.build / name}.build.log' 2>&1\n"
    (pack.build / "programs.mk").write_text(f".PHONY: all {' '.join([*names, *benches])}\n{rules}")
    done = gpu.run(["make", "-k", f"-j{pack.jobs}", "-f", pack.build / "programs.mk", "all", f"ARCH={pack.architecture}",
                    f"NVCC={pack.nvcc}", f"PARTITA_RT_LIB={pack.build / 'lib'}"], pack.limit("build"))
    built = packed | {name for name in names if executable(pack, name)} | {
        name for name in benches if os.access(pack.build / name, os.X_OK)}
    missing = sorted(wanted - built)
    for name in missing[:2]:
        show(pack.build / f"{name}.build.log")
    table.add("build: programs", f"not built: {' '.join(missing)}" if missing else "", f"{len(built)} in {done.seconds:.0f} s",
              done.seconds)
    return built
