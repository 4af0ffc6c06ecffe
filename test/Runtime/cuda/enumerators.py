"""Checks that the simulated CUDA, cuBLASLt, NCCL and cuDNN use NVIDIA's values for NVIDIA's names.

enumerators.py SIMULATED CUDA_HOME CXX

Each `NAME = VALUE` of an enum and each `#define NAME NUMBER` of the headers in SIMULATED is compared, by the compiler CXX,
with that of CUDA_HOME's header of the same name. A name that NVIDIA lacks is an error too.
"""

import pathlib
import re
import subprocess
import sys

HEADERS = ["cuda.h", "cuda_runtime.h", "library_types.h", "cublasLt.h", "nccl.h", "cudnn_graph.h"]
OURS = {"NCCL_MAJOR", "NCCL_MINOR", "NCCL_PATCH", "NCCL_VERSION_CODE", "CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"}


def names_of(path):
    """Returns (name, value as written) of enumerators and of macros that are numbers."""
    text = re.sub(r"//.*|/\*.*?\*/", "", path.read_text())
    found = []
    for body in re.findall(r"\benum\b[^{;]*\{([^}]*)\}", text):
        found += re.findall(r"(\w+)\s*=\s*([^,}]+?)\s*(?:,|$)", body.strip())
    found += re.findall(r"^#define (\w+) (0[xX][0-9a-fA-F]+|\d+)$", text, re.M)
    return [(name, value) for name, value in found if name.lower().startswith(("cu", "nccl")) and name not in OURS]


def main():
    simulated, cuda, compiler = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
    bad, count = False, 0
    for header in HEADERS:
        names = names_of(simulated / header)
        count += len(names)
        lines = [f"#include <{header}>"]
        # In the simulation a value may be another enumerator, for which NVIDIA's must have the same value.
        lines += [f'static_assert((long long)({name}) == (long long)({value}), "{header}: {name} is not {value}");'
                  for name, value in names]
        done = subprocess.run([compiler, "-std=c++17", "-fsyntax-only", "-w", "-I", str(cuda / "include"), "-x", "c++", "-"],
                              input="\n".join(lines) + "\n", capture_output=True, text=True)
        for line in done.stderr.splitlines():
            if "error" in line:
                bad = True
                print(line)
    print(f"{count} names")
    sys.exit(bad or count < 100)


if __name__ == "__main__":
    main()
