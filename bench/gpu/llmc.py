"""llm.c, as bench/gpu/compare builds and runs it. Standard library only."""

import os
import pathlib
import shutil

# Obstacles to compiling llm.c (f1e2ace, the last of its repository) with CUDA 13, or to comparing it; none is part of a step
# that fits into the GPU's memory. File, a text that occurs there once, its replacement, why.
PATCHES = [
    ("llmc/cuda_utils.cuh",
     "        cudaGetLastError(); // reset the error before the next API call\n"
     "        cudaCheck_(cudaMallocManaged(out, bytes), file, line);\n"
     "        cudaCheck_(cudaMemAdvise(*out, bytes, cudaMemAdviseSetPreferredLocation, cudaCpuDeviceId), file, line);\n",
     "        cudaCheck_(err, file, line);\n",
     "cudaMemAdvise has another signature in CUDA 13; what does not fit in the GPU's memory is a message, not slow"),
    ("llmc/mfu.h", "#if __has_include(<nvml.h>)", "#if 0",
     "it is for a column of the log, and libnvidia-ml.so is the driver's, in no folder that a linker looks in"),
    ("Makefile", "  NVCC_LDFLAGS += -lnvidia-ml\n", "", "likewise"),
]

# By default it recomputes GELUs. Which of the others is the fastest depends on the GPU; the default needs less memory. -ge 1
# fuses a GELU into the matmul before it, -ge 2 also its gradient into that of the matmul behind it.
VARIANTS = [["-r", 0], ["-r", 0, "-ge", 1], ["-r", 0, "-ge", 2]]
LESS_MEMORY = [["-r", 1]]


def patch(folder):
    """Patches the copy in `folder`. Returns the problem, or nothing."""
    for name, old, new, why in PATCHES:
        path = pathlib.Path(folder) / name
        text = path.read_text() if path.exists() else ""
        if text.count(old) != 1:
            return (f"{name} is not that of llm.c f1e2ace: it has {text.count(old)} times, not once, "
                    f"'{old.strip().splitlines()[0]}' (patched because {why})")
        path.write_text(text.replace(old, new))
    return ""


def link_names(folder, libraries):
    """Makes NAME.so in `folder` for the libraries of Python's wheels, which have only NAME.so.VERSION. Returns nvcc's flags
    for all of them."""
    flags = []
    for library in libraries:
        if not library.home:
            continue
        flags += library.flags()
        for path in pathlib.Path(library.library).parent.glob("lib*.so.*"):
            link = folder / f"{path.name.partition('.so.')[0]}.so"
            if not link.exists():
                link.symlink_to(path)
    return [f"-L{folder}", *flags] if flags else []


def build(bench):
    """Returns (the program, its name in tables), or (None, why not)."""
    if not (bench.llmc_sources / "train_gpt2.cu").exists():
        return None, "no sources: --llmc DIR"
    folder = bench.build / "llm.c"
    program, name = folder / "train_gpt2cu", folder / "name.txt"
    if bench.is_built(program):
        return program, name.read_text()
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(bench.llmc_sources, folder, ignore=shutil.ignore_patterns(".git"))
    if problem := patch(folder):
        return None, problem
    headers = folder / "cudnn-frontend/include"
    if path := os.environ.get("CUDNN_FRONTEND_PATH"):
        shutil.copytree(path, headers, dirs_exist_ok=True)
    with_cudnn = headers.exists() and bench.cudnn.there
    names = folder / "libraries"
    names.mkdir()
    flags = link_names(names, [bench.cublas, *([bench.cudnn] if with_cudnn else [])])
    done = bench.run(["make", "-C", folder, "train_gpt2cu", f"NVCC={bench.nvcc}", "NO_MULTI_GPU=1", "NO_USE_MPI=1",
                      f"GPU_COMPUTE_CAPABILITY={bench.architecture.removeprefix('sm_')}", f"USE_CUDNN={int(with_cudnn)}"],
                     {"NVCC_APPEND_FLAGS": " ".join(flags),
                      "PATH": os.pathsep.join([os.path.dirname(bench.nvcc), os.environ.get("PATH", "")])})
    (bench.build / "llmc_build.log").write_text(done.output)
    if done.problem:
        return None, f"build: {done.problem}"
    why = "" if with_cudnn else ": no cudnn-frontend" if bench.cudnn.there else ": no cuDNN"
    name.write_text("llm.c with cuDNN" if with_cudnn else f"llm.c without cuDNN{why}")
    return program, name.read_text()
