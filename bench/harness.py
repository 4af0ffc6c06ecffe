"""Shared by the benchmarks: locations, running a child and measuring its peak memory, medians, and
the description of the machine. Standard library only; the peers run in the virtual environment."""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def partita():
    path = pathlib.Path(os.environ.get("PARTITA", ROOT / "build/bin/partita"))
    if not path.exists():
        sys.exit(f"{path} is missing: build first, or name the binary in PARTITA")
    return str(path)


def venv_python():
    path = pathlib.Path(os.environ.get("PARTITA_VENV", ROOT / ".venv")) / "bin/python"
    if not path.exists():
        sys.exit(f"{path} is missing: run tools/python/make_venv, or name it in PARTITA_VENV")
    return str(path)


class Finished:
    """Output, wall and processor seconds and peak resident bytes of a child that succeeded."""

    def __init__(self, output, seconds, processor, peak):
        self.output, self.seconds, self.processor, self.peak = output, seconds, processor, peak


# Variables that would keep a system's libraries from choosing the best kernels for the processor.
PINS = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "MKL_ENABLE_INSTRUCTIONS", "MKL_DEBUG_CPU_TYPE",
        "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")


def unpinned():
    """Returns the environment without the variables that pin kernels."""
    return {name: value for name, value in os.environ.items() if name not in PINS}


def run(command, environment=None):
    """Runs to the end; a failure ends the benchmark with the child's own message. `peak` is the max
    over the child and the processes it has waited for, not their sum."""
    with tempfile.TemporaryFile("w+") as output:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=output,
                                 env={**unpinned(), **(environment or {})})
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if child.returncode != 0:
        sys.exit(f"{text}\n{' '.join(command)}: exit code {child.returncode}")
    return Finished(text, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def median(values):
    return statistics.median(values)


def spread(values):
    """Returns half the interquartile range over the median: how quiet the machine was."""
    if len(values) < 4:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return (high - low) / 2 / median(values)


def mebibytes(count):
    return f"{count / 2**20:,.0f} MiB"


def machine():
    """Returns model, cores, memory and versions, as one line of text."""
    cpu = "unknown CPU"
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                cpu = line.split(":", 1)[1].strip()
            if line.startswith("flags"):
                flags = line.split()
                wide = [f for f in ("avx2", "avx512f", "amx_tile") if f in flags]
                cpu += f" ({', '.join(wide)})"
                break
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 2**20
    compiler = subprocess.run(["g++", "-dumpfullversion"], capture_output=True, text=True)
    blas = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "libopenblas0-pthread"],
                          capture_output=True, text=True)
    core = subprocess.run([sys.executable, "-c", "import ctypes\n"
                           "name = ctypes.CDLL('libopenblas.so.0').openblas_get_corename\n"
                           "name.restype = ctypes.c_char_p\nprint(name().decode())"],
                          capture_output=True, text=True, env=unpinned())
    return (f"{cpu}, {os.cpu_count()} cores, {memory:.0f} GiB; g++ {compiler.stdout.strip()}, "
            f"OpenBLAS {blas.stdout.strip() or 'unknown'} ({core.stdout.strip() or 'unknown'} kernels)")


def compile_model(model, folder, *options):
    return run([partita(), "compile", str(model), *options, "-o", str(folder)])


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])
