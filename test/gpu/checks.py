"""The kernels' unit tests on the GPU, and compute-sanitizer. Standard library only."""

import fnmatch
import os
import re
import shutil

import gpu
from builds import executable


def unit(pack, table):
    """One row per test suite; a crash costs its own suite alone."""
    program = pack.build / "unit/unit_tests"
    listed = gpu.run([program, "--gtest_list_tests"], 60)
    if listed.problem:
        return table.add("unit: list", listed.problem)
    suites = [line.split(".")[0].split("#")[0].strip() for line in listed.output.splitlines()
              if line and not line.startswith((" ", "Running"))]
    log = (pack.build / "unit_tests.log").open("w")
    for suite in dict.fromkeys(each.split("/")[0] for each in suites):
        if table.has_passed(f"unit: {suite}") or not pack.has_time(table, f"unit: {suite}"):
            continue
        done = gpu.run([program, f"--gtest_filter={suite}.*:{suite}/*"], pack.limit("unit"))
        log.write(done.output)
        passed = len(re.findall(r"^\[       OK \]", done.output, re.M))
        left_out = re.search(r": Skipped\n(.*)", done.output)
        wrong = sorted(set(re.findall(r"^\[  FAILED  \] (\S+\.\S+?)[ ,]", done.output, re.M)))
        problem = ("failed: " + " ".join(wrong) if wrong and not done.timed_out else done.problem or
                   ("" if passed or left_out else "no test ran"))
        table.add(f"unit: {suite}", problem, f"{passed} passed, {done.seconds:.1f} s{f', some skipped: {left_out[1]}' if left_out else ''}",
                  done.seconds, skipped=bool(left_out and not passed and not problem))
    return None


# What compute-sanitizer runs of the unit tests: each family of kernels once. racecheck is for those with shared memory.
SANITIZED = [
    ("memcheck kernels", ["Norm/0.*", "Movement/0.*", "Embedding.*", "Softmax.*", "Scalars.*", "Updates.*", "CudaClassifier/2.*",
                          "CudaFp8.Quantizes*", "ReplicaHash.*", "OneBitOnGpu.*", "Int4Chunks.*", "Int8Blocks.*"]),
    ("memcheck attention", ["Documents.*", "AttentionOnTensorCores/1.*", "JointAttentionOnTensorCores/1.B*", "AttentionByWarpGroups/1.*", "AttentionSums*"]),
    ("racecheck kernels", ["Norm/0.*", "Rows/0.*", "Rows/2.*", "Updates.*", "CudaFp8.Quantizes*", "ReplicaHash.*", "OneBitOnGpu.Sums*"]),
    ("racecheck attention", ["AttentionOnTensorCores/0.*", "JointAttentionOnTensorCores/0.B*", "AttentionByWarpGroups/0.*", "AttentionSums*"])]


def missing(patterns, output):
    """The patterns that no test which gtest began has: a renamed suite is not to pass by running nothing."""
    begun = re.findall(r"^\[ RUN      \] (\S+)", output, re.M)
    return [each for each in patterns if not fnmatch.filter(begun, each)]


def sanitizer(pack, table, built):
    """memcheck of a program and of some tests of each kernel family; racecheck of what has shared memory."""
    tool = shutil.which("compute-sanitizer") or os.path.join(os.path.dirname(pack.nvcc), "compute-sanitizer")
    if not os.access(tool, os.X_OK):
        return table.add("sanitizer", "", "compute-sanitizer is not installed", skipped=True)
    unit_tests = pack.build / "unit/unit_tests"
    command = [tool, "--error-exitcode", "9", "--tool"]
    cases = []
    if "gpt2" in built:
        cases.append(("memcheck gpt2", [], [*command, "memcheck", executable(pack, "gpt2"), "--data",
                                            gpu.data(pack.build, {"tolerance": ""}), "--steps", "2", "--init", "seed:1"]))
    if unit_tests.exists():
        cases += [(name, patterns, [*command, name.split()[0], unit_tests, "--gtest_filter=" + ":".join(patterns)])
                  for name, patterns in SANITIZED]
    for name, patterns, words in cases:
        row = f"sanitizer: {name}"
        if table.has_passed(row) or not pack.has_time(table, row):
            continue
        done = gpu.run(words, pack.limit("sanitizer"))
        pack.write_log(f"{name.replace(' ', '_')}.log", done)
        # Some virtual machines do not let it at the device: that says nothing of us.
        refused = "Device not supported" in done.output
        absent = missing(patterns, done.output)
        problem = done.problem or ("no test ran of " + " ".join(absent) if absent else "")
        found = re.findall(r"(?:ERROR|RACECHECK) SUMMARY: (\d+) (?:error|hazard)", done.output)
        table.add(row, "" if refused else problem, "the device is not supported" if refused else
                  f"{found[-1] if found else '?'} errors, {done.seconds:.0f} s", done.seconds, skipped=refused)
    return None
