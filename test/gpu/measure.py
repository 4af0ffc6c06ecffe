"""The steps of one program with the time of each kernel, untuned and tuned; probes of kernels; the benchmark. Standard library only."""

import csv
import os
import re
import shutil
import statistics
import sys

import gpu
from builds import BENCHES, END, executable

WARMUP = 5  # steps
TIMED = 4  # the step whose kernels are timed: among those of the warm-up


def matmuls_of(pack, name):
    """What --tune writes, beside the program; and where it is kept, which goes into the results."""
    return pack.folder / "programs" / name / "matmuls.json", pack.build / "matmuls" / f"{name}.json"


def restore_matmuls(pack):
    """What was tuned before, on this GPU: programs begin with it."""
    for kept in (pack.build / "matmuls").glob("*.json"):
        if (pack.folder / "programs" / kept.stem).is_dir():
            shutil.copy(kept, matmuls_of(pack, kept.stem)[0])


def forget_matmuls(pack):
    shutil.rmtree(pack.build / "matmuls", ignore_errors=True)


def run_steps(pack, program, label, environment=None):
    """Some steps, of which one has its kernels timed. The result, and numbers of it."""
    name, log = program["name"], pack.build / f"{program['name']}.{label}.csv"
    done = gpu.run([executable(pack, name), "--data", gpu.data(pack.build, program), "--init", "seed:1", "--log", log,
                    "--steps", WARMUP + int(program["bench"])], pack.limit("step"),
                   {"PARTITA_RT_KERNEL_TIMES": str(TIMED), **(environment or {})})
    pack.write_log(f"{name}.{label}.log", done)
    if done.problem:
        return done, ""
    table = re.search(r"^kernels .*\n(?: +[\d.]+ ms .*\n)*", done.output, re.M)
    print(table[0] if table else "no kernel was timed", flush=True)
    losses = [float(each) for each in gpu.losses_of(log)]
    rates = gpu.column(log, "tokens_per_second")[WARMUP:]
    if not all(loss == loss for loss in losses):
        done.problem = f"losses are not all finite: {losses}"
    elif not table:
        done.problem = "it does not report the time of its kernels"
    kernels = re.search(r"([\d.]+) ms from the first to the last, ([\d.]+) ms in them", done.output)
    return done, (f"{statistics.median(rates):,.0f} tokens/s; losses {losses[0]:.4f} to {losses[-1]:.4f}"
                  + (f"; step without a graph {kernels[1]} ms, {kernels[2]} ms in kernels" if kernels else ""))


def step(pack, table, program, by_tiles=False):
    """Without tuning: what a user gets first. by_tiles: attention's backward pass in two launches."""
    name = f"step: {program['name']}, untuned" + (", attention by tiles" if by_tiles else "")
    if table.has_passed(name) or not pack.has_time(table, name):
        return
    beside, _ = matmuls_of(pack, program["name"])
    beside.unlink(missing_ok=True)
    done, numbers = run_steps(pack, program, "tiles" if by_tiles else "untuned",
                              {"PARTITA_RT_ATTENTION": "tiles"} if by_tiles else None)
    table.add(name, done.problem, numbers, done.seconds)


def tuned(pack, table, program):
    name = f"step: {program['name']}, tuned"
    if table.has_passed(name) or not pack.has_time(table, name, 30):
        return
    beside, kept = matmuls_of(pack, program["name"])
    seconds, said, done = 0.0, "choices of an earlier run", None
    if kept.exists():
        shutil.copy(kept, beside)
        done, numbers = run_steps(pack, program, "tuned")
        seconds += done.seconds
    if done is None or gpu.is_untuned(done):  # other kernels may have other shapes
        tuning = gpu.run([executable(pack, program["name"]), "--tune"], pack.limit("tune"))
        pack.write_log(f"{program['name']}.tune.log", tuning)
        seconds += tuning.seconds
        if tuning.problem:
            table.add(name, f"--tune: {tuning.problem}", "", seconds)
            return
        kept.parent.mkdir(exist_ok=True)
        shutil.copy(beside, kept)
        said = f"tuning took {tuning.seconds:.0f} s"
        done, numbers = run_steps(pack, program, "tuned")
        seconds += done.seconds
    if gpu.is_untuned(done):
        done.problem = done.problem or "some matmuls are untuned"
    table.add(name, done.problem, f"{numbers}; {said}" if numbers else "", seconds)


def same_bits(pack, table, program):
    """Losses and parameters of two runs, in its size."""
    name = f"bits: {program['name']}"
    if table.has_passed(name) or not pack.has_time(table, name, 30):
        return
    found, seconds, problem = [], 0.0, ""
    for turn in ("one", "two"):
        log, parameters = pack.build / f"{program['name']}.{turn}.csv", pack.build / "bits.safetensors"
        done = gpu.run([executable(pack, program["name"]), "--data", gpu.data(pack.build, program), "--init", "seed:1",
                        "--log", log, "--steps", 3, "--dump-parameters", parameters], pack.limit("step"))
        seconds += done.seconds
        if done.problem:
            table.add(name, done.problem, "", seconds)
            return
        found.append((gpu.losses_of(log), gpu.digest(parameters)))
        parameters.unlink()
    if found[0] != found[1]:
        problem = "losses differ" if found[0][0] != found[1][0] else "parameters differ"
    table.add(name, problem, "two runs of 3 steps", seconds)


METRICS = ["gpu__time_duration.sum", "dram__bytes.sum", "sm__inst_executed.sum"]


def read_ncu(text):
    """{kernel: [launches, {metric: sum}]} of ncu's CSV, in base units."""
    found = {}
    lines = text[text.index('"ID"'):].splitlines() if '"ID"' in text else []
    for row in csv.DictReader(lines):
        kernel = found.setdefault(row["Kernel Name"], [set(), dict.fromkeys(METRICS, 0.0)])
        if row["Metric Name"] in METRICS:
            kernel[0].add(row["ID"])
            kernel[1][row["Metric Name"]] += float(row["Metric Value"].replace(",", ""))
    return {name: (len(launches), sums) for name, (launches, sums) in found.items()}


def ncu(pack, table, program):
    """Time, bytes and instructions of each kernel of a step, by the hardware's counters, where it lets them be read."""
    name, tool = f"ncu: {program['name']}", shutil.which("ncu") or os.path.join(os.path.dirname(pack.nvcc), "ncu")
    if not os.access(tool, os.X_OK):
        table.add(name, "", "ncu is not installed", skipped=True)
        return
    if table.has_passed(name) or not pack.has_time(table, name, 60):
        return
    done = gpu.run([tool, "--clock-control", "none", "--cache-control", "none", "--print-units", "base", "--csv", "--metrics",
                    ",".join(METRICS), executable(pack, program["name"]), "--data", gpu.data(pack.build, program),
                    "--init", "seed:1", "--steps", 1], pack.limit("ncu"))
    found = read_ncu(done.output)
    rows = sorted(found.items(), key=lambda item: -item[1][1][METRICS[0]])
    text = "".join(f"| {sums[METRICS[0]] / 1e6:.3f} | {launches} | {sums[METRICS[1]] / 1e6:.1f} | {sums[METRICS[2]] / 1e6:.2f} | {kernel} |\n"
                   for kernel, (launches, sums) in rows)
    (pack.build / f"{program['name']}.ncu.md").write_text("| ms | launches | MB of DRAM | million warp instructions | kernel |\n|---|---|---|---|---|\n" + text)
    (pack.build / f"{program['name']}.ncu.err.txt").write_text("" if found else done.output)
    refused = not found and ("ERR_NVGPUCTRPERM" in done.output or "LibraryNotLoaded" in done.output)
    table.add(name, "" if found or refused else done.problem or "no kernel was profiled",
              "it may not read this GPU's counters" if refused else
              f"{len(found)} kernels, {sum(each[1][METRICS[0]] for _, each in rows) / 1e6:.1f} ms, see {program['name']}.ncu.md" if found else "",
              done.seconds, skipped=refused)


def probe(pack, table, which):
    """A benchmark of kernels, whose output is the result."""
    name = f"probe: {which}"
    if not (pack.folder / BENCHES[which]).exists() or table.has_passed(name) or not pack.has_time(table, name, 20):
        return
    done = gpu.run([pack.build / which], pack.limit("probe"))
    (pack.build / f"{which}.txt").write_text(done.output)
    print(done.output, flush=True)
    table.add(name, done.problem, f"{which}.txt", done.seconds)


def bench(pack, table, quick, options):
    limit = pack.limit("bench")
    words = [sys.executable, pack.folder / "bench/gpu/compare", pack.folder, "--build", pack.build, "--arch", pack.architecture,
             "--nvcc", pack.nvcc, *(["--deadline", max(limit - END, 0)] if pack.end else []), *(["--quick"] if quick else []),
             *options]
    done = gpu.run(words, limit)
    pack.write_log("compare.log", done)
    print(done.output, flush=True)
    for program in (pack.folder / "programs").glob("*/matmuls.json"):
        kept = pack.build / "matmuls" / f"{program.parent.name}.json"
        kept.parent.mkdir(exist_ok=True)
        shutil.copy(program, kept)
    table.add("bench: compare", done.problem, f"{done.seconds:.0f} s, compare.md", done.seconds)
