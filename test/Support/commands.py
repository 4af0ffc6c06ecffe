"""Runs commands that must succeed."""
import json
import os
import subprocess


def call(*command):
    """What the command printed."""
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def build_for_simulated_gpu(program):
    """By g++, with the simulated CUDA beside the CUDA runtime's own sources; of PARTITA_BUILD and PARTITA_SOURCE, the folders."""
    build, source = os.environ["PARTITA_BUILD"], os.environ["PARTITA_SOURCE"]
    name = json.load(open(program + "/manifest.json"))["program"]
    support, libraries = source + "/test/Support", build + "/lib/libpartita_rt_cuda_"
    call("g++", "-fuse-ld=lld", "-std=c++17", "-O1", "-march=native", "-fno-math-errno", "-ffp-contract=off", "-Wno-unknown-pragmas", "-xc++",
         program + "/model.cu", "-xnone", *("-I" + path for path in (source + "/runtime/include", support, support + "/simulated")),
         libraries + "process.a", libraries + "kernels.a", "-lpthread", "-o", program + "/" + name)
    return program
