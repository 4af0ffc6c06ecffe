"""The measurements of bench/gpu/compare: one training run of a system, as a dictionary of results or a "problem"."""

import json
import os
import pathlib
import re
import statistics
import struct
import sys
import threading
import time

import gpu
import installed
import llmc
import prebuilt

HERE = pathlib.Path(__file__).resolve().parent
RUNTIME = HERE.parents[1] / "runtime"
LIMIT = 240  # max seconds of a command
WARMUP = 5

CASES = {  # the most important first; batches from the largest; the matmuls of a layer, OUTxIN
    "gpt2_124m": dict(batches=[128, 64, 32], sequence=1024, layers=12, vocab=50257, width=768, llmc="d12",
                      matmuls=["2304x768", "768x768", "3072x768", "768x3072"],
                      peer=["--layers", 12, "--width", 768, "--heads", 12]),
    "llama_1b": dict(batches=[8, 4], sequence=4096, layers=16, vocab=50257, width=2048, llmc=None,
                     matmuls=["2048x2048", "512x2048", "512x2048", "2048x2048", "8192x2048", "8192x2048", "2048x8192"],
                     peer=["--kind", "llama", "--layers", 16, "--width", 2048, "--heads", 32, "--key-heads", 8,
                           "--inner", 8192]),
    "gpt2_1558m": dict(batches=[32, 16], sequence=1024, layers=48, vocab=50257, width=1600, llmc="d48",
                       matmuls=["4800x1600", "1600x1600", "6400x1600", "1600x6400"],
                       peer=["--layers", 48, "--width", 1600, "--heads", 25]),
}


class Bench:
    """The folders, the number of timed steps, and the deadline."""

    def __init__(self, pack, build, nvcc, architecture, steps, llmc_sources=None, seconds=float("inf")):
        self.pack, self.build, self.nvcc, self.architecture, self.steps = pack, build, nvcc, architecture, steps
        self.build.mkdir(parents=True, exist_ok=True)
        self.llmc_sources = llmc_sources or pack / "llm.c"
        self.cublas, nccl, self.cudnn = installed.find(nvcc)
        self.end = time.monotonic() + seconds
        # The packed folder, which test/gpu/run has unpacked.
        self.prebuilt = prebuilt.is_for(pack, architecture)
        self.versions = installed.versions(prebuilt.compiler(pack, architecture) or installed.nvcc_version(nvcc), self.cublas, nccl, self.cudnn)
        self.built = {}  # build results, or errors, by build function
        self.build_seconds = 0.0

    def is_built(self, path):
        return self.prebuilt and os.access(path, os.X_OK)

    def left(self):
        return self.end - time.monotonic()

    def run(self, command, environment=None):
        return gpu.run(command, max(min(LIMIT, self.left()), 1), environment)

    def once(self, build):
        """Returns a build's result, made once; its time does not count as a measurement's."""
        if build not in self.built:
            start = time.monotonic()
            self.built[build] = build(self)
            self.build_seconds += time.monotonic() - start
        return self.built[build]


class Memory:
    """The max MiB in use on the GPU while a body runs, minus those in use before; from nvidia-smi."""

    def __enter__(self):
        self.before, self.most, self.ends = self.now(), 0, False
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        self.thread.join()

    @staticmethod
    def now():
        return int((gpu.query_gpu(["memory.used"]) or {"memory.used": "0"})["memory.used"])

    def watch(self):
        while not self.ends:
            self.most = max(self.most, self.now() - self.before)
            time.sleep(0.2)


def tokens_per_second(seconds, tokens):
    return tokens / statistics.median(seconds)


def tokens_of(bench):
    return gpu.data(bench.build, {"bench": ""})


def ours(bench, case, batch, variant="", environment=None):
    folder = bench.pack / "programs" / f"{case}_b{batch}{variant}"
    manifest = folder / "manifest.json"
    program = folder / json.loads(manifest.read_text())["program"] if manifest.exists() else None
    if not program or not os.access(program, os.X_OK):
        return {"problem": f"{folder.name} is not built"}
    log = bench.build / f"{folder.name}.csv"
    words = [program, "--data", bench.once(tokens_of), "--init", "seed:1", "--log", log, "--steps"]
    one = bench.run([*words, 1], environment)
    if one.problem:
        return {"problem": one.problem}
    chosen = (folder / "matmuls.json").exists() and not gpu.is_untuned(one)  # by test/gpu/run, on this GPU
    tuned = None if chosen else bench.run([program, "--tune"])
    if tuned and tuned.problem:
        return {"problem": f"--tune: {tuned.problem}"}
    with Memory() as memory:
        done = bench.run([*words, WARMUP + bench.steps], environment)
    if done.problem:
        return {"problem": done.problem}
    tokens = batch * CASES[case]["sequence"]
    rates = gpu.column(log, "tokens_per_second")[WARMUP:]
    at = re.search(r"([\d,]+) bytes less free on the GPU than before: ([\d,]+) as announced", done.output)
    return {"tokens_per_second": tokens_per_second([tokens / rate for rate in rates], tokens),
            "memory": memory.most, "start": one.seconds, "said": at.group(0) if at else ""}


def llmc_tokens(bench):
    """Writes the same tokens in llm.c's format: magic, version, number of tokens."""
    path, data = bench.build / "llmc_tokens.bin", pathlib.Path(bench.once(tokens_of)).read_bytes()
    path.write_bytes(struct.pack("<256i", 20240520, 1, len(data) // 2, *[0] * 253) + data)
    return path


def run_llmc(bench, case, batch, program, options):
    """Runs it once with these options."""
    data, sequence = bench.once(llmc_tokens), CASES[case]["sequence"]
    with Memory() as memory:
        done = bench.run([program, "-i", data, "-j", data, "-e", CASES[case]["llmc"], "-b", batch, "-t", sequence,
                          "-d", batch * sequence, "-x", WARMUP + bench.steps, "-v", 1000000, "-m", 1, "-s", 0,
                          "-h", 0, "-c", 0.1, "-n", 0, *options])
    words = " ".join(map(str, options))
    (bench.build / f"llmc_{case}_b{batch}{words.replace(' ', '')}.log").write_text(done.output)
    milliseconds = [float(each) for each in re.findall(r"^step .*?([\d.]+) ms ", done.output, re.M)]
    if done.problem or len(milliseconds) <= WARMUP:
        return {"options": words, "problem": done.problem or "no steps in its output"}
    return {"options": words, "memory": memory.most,
            "tokens_per_second": tokens_per_second([ms / 1e3 for ms in milliseconds[WARMUP:]], batch * sequence)}


def measure_llmc(bench, case, batch):
    """Returns its best result: with each of the options that may be the fastest, and with others if memory does not
    suffice for these."""
    if not CASES[case]["llmc"]:
        return {"problem": "llm.c has no such model"}
    program, name = bench.once(llmc.build)
    if not program:
        return {"problem": name}
    runs = [run_llmc(bench, case, batch, program, options) for options in llmc.VARIANTS]
    if not any("tokens_per_second" in run for run in runs):
        runs += [run_llmc(bench, case, batch, program, options) for options in llmc.LESS_MEMORY]
    best = max(runs, key=lambda run: run.get("tokens_per_second", 0))
    return {**best, "name": f"{name}, {best['options']}", "runs": runs}


def pytorch(bench, case, batch, mode):
    with Memory() as memory:
        done = bench.run([sys.executable, HERE / "pytorch_peer.py", *CASES[case]["peer"], "--batch", batch,
                          "--sequence", CASES[case]["sequence"], "--mode", mode, "--steps", bench.steps,
                          "--warmup", WARMUP])
    if done.problem:
        return {"problem": done.problem}
    told = json.loads(done.output.strip().splitlines()[-1])
    return {"tokens_per_second": tokens_per_second(told["seconds"], told["tokens_per_step"]),
            "memory": memory.most, "start": told["first_step"], "allocated": told["peak_bytes"] >> 20,
            "name": f"PyTorch {told['torch']}, torch.compile, {mode} bfloat16"}


def build_gemm(bench):
    """Returns the program, or why there is none."""
    program, cuda = bench.build / "gemm_ceiling", RUNTIME / "cuda"
    if bench.is_built(program):
        return program, ""
    done = bench.run([bench.nvcc, "-std=c++17", "-O3", f"-arch={bench.architecture}", "-diag-suppress=1675",
                      "-I", RUNTIME / "include", "-I", RUNTIME, *bench.cublas.flags(), "-o", program, HERE / "gemm_ceiling.cu",
                      *(cuda / "matmuls" / name for name in ("gemm.cpp", "matmuls.cpp", "matmuls_file.cpp",
                                                              "tuning.cpp", "matmul_parts.cu")),
                      *(cuda / "kernels" / name for name in ("convert.cu", "reduce.cu", "copy.cu")),
                      *(RUNTIME / "common" / name for name in ("types.cpp", "json.cpp", "temporary_file.cpp")),
                      bench.cublas.link()])
    (bench.build / "gemm_ceiling.log").write_text(done.output)
    return (None, f"build: {done.problem}") if done.problem else (program, "")


def gemm(bench, case, batch):
    shape = CASES[case]
    program, problem = bench.once(build_gemm)
    if problem:
        return {"problem": problem}
    done = bench.run([program, batch * shape["sequence"], shape["layers"], shape["vocab"], shape["width"],
                      *shape["matmuls"]])
    if done.problem:
        return {"problem": done.problem}
    return {**json.loads(done.output.strip().splitlines()[-1]), "name": "matmuls alone, tuned"}


OURS = ("revision", "nvcc", "cuBLASLt", "NCCL", "cuDNN")
LLMC = ("llm.c's options", "nvcc", "cuBLASLt", "cuDNN")
PYTORCH = ("PyTorch", "cuBLASLt", "cuDNN")  # it may load the wheels that are found here
VERSIONS = {*OURS, *LLMC, *PYTORCH}


class System:
    """A line of each case: its function, its name in the table until it reports its own, the name in --systems, the
    estimated seconds of a measurement, what is built for it and in how many seconds, whether only the largest batch
    is measured, the versions on which it depends, beside those of the GPU and its driver, and whether it is a program
    of Partita's."""

    def __init__(self, measure, title, family, seconds, build=None, build_seconds=0, largest_only=False, versions=OURS, is_partita=False):
        self.measure, self.title, self.family, self.seconds = measure, title, family, seconds
        self.build, self.build_seconds, self.largest_only, self.versions = build, build_seconds, largest_only, versions
        self.is_partita = is_partita


SYSTEMS = {  # within a case, the most important first
    "ours": System(ours, "Partita", "ours", 60, is_partita=True),
    "ours_fp8": System(lambda *of: ours(*of, "_fp8"), "Partita, --precision fp8", "fp8", 60, largest_only=True, is_partita=True),
    "llmc": System(measure_llmc, "llm.c", "llmc", 90, llmc.build, 120, versions=LLMC),
    "pytorch": System(lambda *of: pytorch(*of, "autocast"), "PyTorch, autocast", "pytorch", 90, versions=PYTORCH),
    "pytorch_pure": System(lambda *of: pytorch(*of, "pure"), "PyTorch, pure bfloat16", "pytorch", 90, versions=PYTORCH),
    "ours_selective": System(lambda *of: ours(*of, "_selective"), "Partita, --recompute selective", "ours", 60,
                             largest_only=True, is_partita=True),
    "ours_cudnn": System(lambda *of: ours(*of, environment={"PARTITA_RT_ATTENTION": "nondeterministic"}),
                         "Partita, cuDNN's attention, nondeterministic", "cudnn", 60, largest_only=True, is_partita=True),
    "gemm": System(gemm, "matmuls alone", "gemm", 30, build_gemm, 60, versions=("revision", "nvcc", "cuBLASLt")),
}
FAMILIES = list(dict.fromkeys(system.family for system in SYSTEMS.values()))
