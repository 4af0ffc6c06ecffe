"""Runs commands that must succeed."""
import json
import os
import subprocess


class CommandFailed(subprocess.CalledProcessError):
    def __str__(self):
        return f"{super().__str__()}\n{self.stderr}"


def call(*words):
    """What the command printed."""
    command = [str(word) for word in words]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise CommandFailed(done.returncode, command, done.stdout, done.stderr)
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
