"""Programs small enough for the CPU to have trained them as well (test/gpu/programs, tolerance=). Standard library only."""

import json
import re

import gpu
import ledger
from builds import executable


def difference(numbers, others):
    """The largest distance in relation to the other's, or infinity where they are not as many."""
    if len(numbers) != len(others) or not numbers:
        return float("inf")
    worst = 0.0
    for mine, other in zip(map(float, numbers), map(float, others)):
        worst = max(worst, abs(mine - other) / max(abs(other), 1e-30)) if mine == mine else float("inf")
    return worst


def compare(path, other, whose, allowed):
    """What is wrong with a log beside another, or nothing; and the numbers. allowed: by column."""
    texts, problem = [], ""
    for name, column, tolerance in allowed:
        mine, others = (gpu.column(log, column) if log.exists() else [] for log in (path, other))
        distance = difference(mine, others)
        texts.append(f"{whose} {name} within {distance:.1e}")
        if not distance <= tolerance:
            problem = problem or f"{name} differ from {whose} by {distance:.1e}, {tolerance:g} is allowed"
    return problem, ", ".join(texts)


def tiny(pack, table, program):
    """Trains twice; losses against the CPU's and another program's, the two runs against each other, and the driver's
    memory against the ledger."""
    name, ranks = program["name"], program["ranks"]
    allowed = [("losses", "loss", float(program["tolerance"]))]
    if "norms" in program:
        allowed.append(("norms", "gradient_norm", float(program["norms"])))
    mesh = json.loads((pack.folder / "programs" / name / "manifest.json").read_text())["mesh"]
    outputs, problem, memory, seconds, reported = [], "", "", 0.0, False
    environment = {"PARTITA_RT_ATTENTION": program["attention"]} if "attention" in program else {}
    for turn in ("first", "second"):
        log, parameters = (pack.build / f"{name}.{turn}.{end}" for end in ("csv", "safetensors"))
        done = gpu.run_ranks(executable(pack, name), ranks, [
            "--data", gpu.data(pack.build, program), "--steps", program.get("steps", gpu.TINY_STEPS), "--init", "seed:1",
            "--log", log, "--dump-parameters", parameters], pack.limit("tiny"), environment)
        pack.write_log(f"{name}.{turn}.log", done)
        seconds += done.seconds
        if done.problem:
            return table.add(f"programs: {name}", done.problem, "", seconds)
        outputs.append((gpu.losses_of(log), gpu.digest(parameters)))
        parameters.unlink()
        wrong, memory, doubt = ledger.check(done.output, ranks, mesh)
        problem, reported = problem or wrong, reported or doubt
        if makers := re.search(r"^attention +(.*)$", done.output, re.M):
            memory += f"; attention: {makers[1]}"
    if outputs[0] != outputs[1]:
        problem = problem or "two runs differ"
    first = pack.build / f"{name}.first.csv"
    wrong, text = compare(first, pack.folder / "expected" / f"{name}.csv", "the CPU's", allowed)
    problem, texts = problem or wrong, [text]
    if like := program.get("like"):
        other = pack.build / f"{like}.first.csv"
        # `--only ranks` does not run it.
        wrong, text = compare(first, other, f"{like}'s", allowed) if other.exists() else ("", f"{like} has not run here")
        problem, texts = problem or wrong, [*texts, text]
    numbers = [*texts, memory, f"{ranks} ranks" if ranks > 1 else ""]
    return table.add(f"programs: {name}", problem, "; ".join(filter(None, [*numbers, reported])), seconds)
