"""Which cuBLASLt, NCCL and cuDNN programs are built with, and what is there: for nvcc where it looks, or in Python's wheels,
whose folder Makefiles then get as CUBLAS_HOME, NCCL_HOME and CUDNN_HOME (runtime/cuda/nvcc.mk). Standard library only."""

import glob
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import subprocess

import gpu

HEADERS = ["/usr/local/include", "/usr/include", "/usr/include/x86_64-linux-gnu"]
LIBRARIES = ["/usr/local/lib", "/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib"]


def paths(variable):
    return [each for each in os.environ.get(variable, "").split(os.pathsep) if each]


def first(folders, pattern):
    """The path of the first such file, or nothing."""
    return next((found for folder in folders for found in sorted(glob.glob(os.path.join(folder, pattern)))), "")


def wheel(package):
    """The folder of nvidia.PACKAGE in this Python's packages, or nothing."""
    try:
        spec = importlib.util.find_spec(f"nvidia.{package}")
    except ModuleNotFoundError:
        return ""
    return next(iter(spec.submodule_search_locations), "") if spec else ""


WHEELS = {"CUBLAS": "cu13", "NCCL": "nccl", "CUDNN": "cudnn"}  # each one's folder in nvidia/
LAST = {"CUBLAS": "PATCH", "NCCL": "PATCH", "CUDNN": "PATCHLEVEL"}  # what its header calls the third number


class Library:
    """cuBLASLt, NCCL or cuDNN: its header and library where nvcc and the loader look, or in one folder, `home`."""

    def __init__(self, name, prefix, header, library, nvcc, linked):
        """linked: nvcc must find the library under its name without a version; else a program loads it."""
        self.name, self.variable, self.short = name, f"{prefix}_HOME", "-l" + library[len("lib"):-len(".so")]
        cuda = pathlib.Path(nvcc).resolve().parents[1]
        folders = [cuda / "lib64", cuda / "lib", cuda / "targets/x86_64-linux/lib", *LIBRARIES]
        headers = [*paths("CPATH"), cuda / "include", cuda / "targets/x86_64-linux/include", *HEADERS]
        self.take("", first(headers, header), first(
            [*paths("LIBRARY_PATH" if linked else "LD_LIBRARY_PATH"), *folders], library + ("" if linked else ".*")), prefix)
        asked, system = os.environ.get(self.variable, ""), self.numbers(self.version)
        # cuDNN, which is not linked, is the newer of two: attention gets faster with each version.
        if asked or not self.there or not linked:
            home = asked or wheel(WHEELS[prefix])
            found = (first([os.path.join(home, "include")], header),
                     first([os.path.join(home, lib) for lib in ("lib", "lib64")], library + "*")) if home else ("", "")
            before = self.home, self.header, self.library
            self.take(home, *found, prefix)
            if not asked and self.numbers(self.version) <= system:
                self.take(*before, prefix)
        if self.home:
            os.environ[self.variable] = self.home

    @staticmethod
    def numbers(version):
        return tuple(int(each) for each in version.split(".") if each)

    def take(self, home, header, library, prefix):
        """What is found there, or nothing."""
        self.there = bool(header and library)
        self.home, self.header, self.library = (home, header, library) if self.there else ("", "", "")
        self.version = self.read_version(prefix)

    def read_version(self, prefix):
        """From the header, or the one beside it that has nothing else."""
        texts = [pathlib.Path(path).read_text(errors="replace") for path in
                 (self.header, *(os.path.join(os.path.dirname(self.header), name)
                                 for name in (f"{prefix.lower()}_version.h", f"{prefix.lower()}_api.h")))
                 if self.there and os.path.exists(path)]
        numbers = [re.search(rf"^#define {prefix}_(?:VER_)?{part}\s+(\d+)", "\n".join(texts), re.M)
                   for part in ("MAJOR", "MINOR", LAST[prefix])]
        return ".".join(each[1] for each in numbers if each)

    def flags(self):
        """nvcc's, beside what names the library itself."""
        if not self.home:
            return []
        folder = os.path.dirname(self.library)
        include = "-isystem" if self.name == "cublasLt" else "-I"  # its wheel has all of CUDA's headers: nvcc's come first
        return [include, os.path.join(self.home, "include"), f"-L{folder}", "-Xlinker", f"-rpath={folder}"]

    def link(self):
        return f"-l:{os.path.basename(self.library)}" if self.home else self.short

    def line(self, without):
        return f"{self.version}, {self.home or self.header}" if self.there else f"not found: {without}"


def find(nvcc):
    return (Library("cublasLt", "CUBLAS", "cublasLt.h", "libcublasLt.so", nvcc, linked=True),
            Library("NCCL", "NCCL", "nccl.h", "libnccl.so", nvcc, linked=True),
            Library("cuDNN", "CUDNN", "cudnn_graph.h", "libcudnn.so", nvcc, linked=False))


def torch_version():
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:
        return ""


def nvcc_version(nvcc):
    """As 13.0.88, or nothing."""
    told = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"release [\d.]+(?:, V([\d.]+))?", told)
    return found[1] or found[0].removeprefix("release ") if found else ""


def versions(nvcc, cublas, nccl, cudnn):
    """Of what a result depends on, beside the GPU, its driver and our revision. nvcc: the version that compiles, or has compiled,
    the programs."""
    libraries = {"cuBLASLt": cublas, "NCCL": nccl, "cuDNN": cudnn}
    return {"nvcc": nvcc or "unknown",
            **{name: (each.version or "unknown") if each.there else "none" for name, each in libraries.items()}}


def lines(nvcc, cublas, nccl, cudnn):
    """(name, what was found) of all that a run needs or compares with."""
    version = nvcc_version(nvcc)
    driver = gpu.query_gpu(["driver_version", "name"]) or {}
    return [("nvcc", f"{nvcc}, {version or 'of an unknown version'}"),
            ("driver", ", ".join(driver.values()) or "not found"),
            ("cuBLASLt", cublas.line("no program can be built; pip install nvidia-cublas, or set CUBLAS_HOME")),
            ("NCCL", nccl.line("no program can be built; pip install nvidia-nccl-cu13, or set NCCL_HOME")),
            ("cuDNN", cudnn.line("attention is our own kernels'; pip install nvidia-cudnn-cu13, or set CUDNN_HOME")),
            ("PyTorch", torch_version() or "not installed for this python3: its lines of bench will say so")]
