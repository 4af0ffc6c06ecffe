# How the tests run. Substitutions:
#   %partita %partita-opt    the tools              FileCheck, not, count, split-file: LLVM's
#   %data                    test/Data              %golden   test/Golden
#   %build %source           build and source folder
#   %python                  the system's python3: numpy and onnx are there, nothing from PyPI is
#   %mpirun                  mpirun as root, more ranks than cores allowed
#   %torchrun                ranks started with torchrun's variables: they reach each other over TCP
import os
import subprocess

import lit.formats

config.name = "partita"
config.test_format = lit.formats.ShTest(execute_external=True)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Data", "Golden", "Inputs"]
if not lit_config.params.get("long"):  # test/run_long
    config.excludes.append("Long")
config.test_source_root = os.path.join(config.partita_source, "test")
config.test_exec_root = os.path.join(config.partita_build, "test")

tools = os.path.join(config.partita_build, "bin")
config.environment["PATH"] = os.pathsep.join([tools, config.llvm_bin, "/usr/bin", "/bin"])
config.environment["OPENBLAS_NUM_THREADS"] = "1"
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
config.environment["PYTHONPATH"] = os.path.join(config.test_source_root, "Support")  # what several folders' scripts import
for name in ("HOME", "TMPDIR", "CCACHE_DIR", "CUDA_HOME"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"):
    config.environment[name] = "1"

# The runtime's headers with one that is precompiled; MAKEFLAGS of a sanitized run would not fit it.
precompiled = os.path.join(config.partita_build, "test/runtime")
if not config.sanitize and os.path.exists(os.path.join(precompiled, "partita_rt/partita_rt.h.gch")):
    config.environment["PARTITA_RT_INCLUDE"] = precompiled

# Tests link some hundreds of emitted programs. ld.bfd takes a third of a second for each, reading the symbols of OpenBLAS; lld a tenth.
if not config.sanitize and os.path.exists(os.path.join(config.llvm_bin, "ld.lld")):
    config.environment["MAKEFLAGS"] = "CXX=g++\\ -fuse-ld=lld"

# Under test/sanitize programs are linked with a sanitized runtime. MPI and MLIR keep what they never free, and the
# order of our static objects and theirs is theirs. Checks that need every library instrumented are off: LLVM's are not.
if config.sanitize:
    config.available_features.add("sanitized")  # AddressSanitizer maps terabytes: no ulimit -v
    config.environment["MAKEFLAGS"] = "CXX=g++\\ -fsanitize=address,undefined\\ -fno-sanitize-recover=undefined"
    config.environment["ASAN_OPTIONS"] = "detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0"
    config.environment["UBSAN_OPTIONS"] = "print_stacktrace=1"

config.substitutions += [
    ("%partita-opt", os.path.join(tools, "partita-opt")),
    ("%partita", os.path.join(tools, "partita")),
    ("%data", os.path.join(config.test_source_root, "Data")),
    ("%golden", os.path.join(config.test_source_root, "Golden")),
    ("%build", config.partita_build),
    ("%source", config.partita_source),
    ("%cxx", config.cxx),
    ("%python", "/usr/bin/python3"),
    ("%mpirun", "mpirun --allow-run-as-root --oversubscribe"),
    ("%torchrun", "/usr/bin/python3 " + os.path.join(config.test_source_root, "Support/torchrun.py")),
]
# Debian's own copy of ONNX's node tests (python3-onnx, libonnx-testdata).
onnx_tests = "/usr/share/libonnx-testdata/data/node"
if os.path.isdir(onnx_tests) and os.path.isdir("/usr/lib/python3/dist-packages/onnx"):
    config.available_features.add("onnx-testdata")
config.substitutions.append(("%onnx-tests", onnx_tests))
# Files without a name, in the folder of the tests' outputs.
try:
    os.close(os.open(config.partita_build, os.O_TMPFILE | os.O_RDWR))
    config.available_features.add("unnamed-files")
except OSError:
    pass
# A process that is the first of its own numbers, as in a container.
if subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True).returncode == 0:
    config.available_features.add("pid-namespaces")
# Hosts with a network of their own, for root alone.
probe = f"lit-{os.getpid()}"
if os.path.exists("/sbin/ip") and all(subprocess.run(["/sbin/ip", "netns", verb, probe], capture_output=True).returncode == 0 for verb in ("add", "del")):
    config.available_features.add("network-namespaces")
# What makes the site of the documentation.
if os.path.exists("/usr/bin/mkdocs"):
    config.available_features.add("mkdocs")
# What makes the man pages.
if os.path.exists("/usr/bin/help2man"):
    config.available_features.add("help2man")
# The browser that opens the reports' pages.
if os.path.exists("/usr/bin/chromium-headless-shell"):
    config.available_features.add("chromium-headless-shell")
# CUDA's compiler: kernels are compiled where it is installed.
cuda_home = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
config.substitutions.append(("%cuda_home", cuda_home))
if os.path.exists(os.path.join(cuda_home, "bin", "nvcc")):
    config.available_features.add("nvcc")
# cuDNN, with the driver's stub beside it: plans are made without a GPU.
if all(os.path.exists(os.path.join(cuda_home, name)) for name in ["include/cudnn_graph.h", "lib64/libcudnn.so.9", "lib64/stubs/libcuda.so"]):
    config.available_features.add("cudnn")
