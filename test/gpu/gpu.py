"""What pack, run and bench/gpu share: the list of programs, tokens, finding nvcc and the GPU, running
a command or the ranks of a program with a time limit. Standard library only."""

import collections
import csv
import hashlib
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

TOKENS = 1 << 20  # of the benchmarks' data
TINY_STEPS = 8

Program = collections.namedtuple("Program", "name keys model options")


def read_programs(path):
    """The lines of test/gpu/programs."""
    programs = []
    for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        head, colon, tail = line.partition(" : ")
        words = head.split()
        if not colon or len(words) != 2 or not tail.split():
            raise SystemExit(f"{path}:{number}: NAME KEY=VALUE,... : MODEL OPTIONS is expected")
        keys = dict(each.partition("=")[::2] for each in words[1].split(","))
        unknown = set(keys) - {"tolerance", "like", "attention", "bench", "steps", "vocabulary", "times", "norms", "tiles"}
        if unknown or not {"bench", "tolerance"} & set(keys) or ("times" in keys and "bench" not in keys) or ("tiles" in keys and "times" not in keys):
            raise SystemExit(f"{path}:{number}: tolerance=T[,like=NAME][,norms=T][,steps=N][,vocabulary=N] or bench=N[,times[,tiles]] is expected")
        model, *options = shlex.split(tail)
        programs.append(Program(words[0], keys, model, options))
    return programs


def write_tokens(path, vocabulary, count):
    """A .bin of uint16 tokens, as nanoGPT writes them."""
    generator = random.Random(1)
    with open(path, "wb") as file:
        file.write(struct.pack(f"<{count}H", *(int(generator.random() * vocabulary)
                                               for _ in range(count))))


def data(folder, program):
    """The tokens that a program of such keys trains on, in a file there."""
    vocabulary = int(program.get("vocabulary") or (64 if "tolerance" in program else 50257))
    path = folder / f"tokens{vocabulary}.bin"
    if not path.exists():
        write_tokens(path, vocabulary, 8192 if vocabulary <= 256 else TOKENS)
    return path


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path, text):
    """A file that whoever reads it, or ends this process, finds as it was or as it will be."""
    part = pathlib.Path(f"{path}.part")
    part.write_text(text)
    os.replace(part, path)


def losses_of(path):
    with open(path, newline="") as file:
        return [row["loss"] for row in csv.DictReader(file)]


def column(path, name):
    """Numbers; none where the log has not all of them."""
    with open(path, newline="") as file:
        values = [row.get(name) for row in csv.DictReader(file)]
    return [float(value) for value in values] if all(values) else []


def find_nvcc():
    """As runtime/cuda/nvcc.mk does; None where there is none."""
    home = os.environ.get("CUDA_HOME")
    for folder in [os.path.join(home, "bin")] if home else [*os.get_exec_path(), "/usr/local/cuda/bin"]:
        path = os.path.join(folder, "nvcc")
        if os.access(path, os.X_OK):
            return path
    return None


def query_gpu(fields):
    """What nvidia-smi says of the first GPU, by field; None where there is none."""
    if not shutil.which("nvidia-smi"):
        return None
    done = subprocess.run(["nvidia-smi", "--id=0", "--format=csv,noheader,nounits",
                           "--query-gpu=" + ",".join(fields)], capture_output=True, text=True)
    values = [each.strip() for each in done.stdout.strip().split(",")]
    return dict(zip(fields, values)) if done.returncode == 0 and len(values) == len(fields) else None


GPU_FIELDS = ["name", "driver_version", "compute_cap", "memory.total", "clocks.sm", "clocks.max.sm",
              "clocks.mem", "power.limit"]


class Result:
    """Exit status, output and seconds; what is wrong in one line, or nothing."""

    def __init__(self, status, output, seconds, limit=None):
        self.status, self.output, self.seconds = status, output, seconds
        self.timed_out = limit is not None
        lines = [line for line in output.strip().splitlines() if line.strip()]
        lines = [line for line in lines if not re.match(r"make(\[\d+\])?: ", line) or "***" in line and ": Error" not in line] or lines
        self.problem = (f"ran past {limit:.0f} s" if self.timed_out else "" if status == 0 else
                        f"exit {status}: {lines[-1][:200] if lines else 'no output'}")


def is_untuned(done):
    """Does a matmul of the run, or the GPU, have no choice in the program's file?"""
    return re.search(r"^untuned ", done.output, re.M)


def run(command, limit, environment=None, folder=None):
    """Runs to the end, or ends it after `limit` seconds with all that it started."""
    return run_all([(command, environment)], limit, folder)


def end_on_signal():
    """SIGTERM ends the program as an exception does: with what it had started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))


def end(children):
    """With all that they started, which may want to do the same."""
    for number, patience in ((signal.SIGTERM, 3), (signal.SIGKILL, None)):
        for child in children:
            if child.poll() is None:
                os.killpg(child.pid, number)
        until = time.monotonic() + (patience or 0)
        while patience and any(child.poll() is None for child in children) and time.monotonic() < until:
            time.sleep(0.02)
    for child in children:
        child.wait()


def run_all(commands, limit, folder=None):
    """Runs (command, environment) side by side; the first that fails ends the others. The result is
    the first that failed, or the first."""
    start = time.monotonic()
    running = []
    try:
        for command, environment in commands:
            output = tempfile.TemporaryFile("w+")
            child = subprocess.Popen([str(word) for word in command], stdout=output, stderr=subprocess.STDOUT,
                                     stdin=subprocess.DEVNULL, cwd=folder, start_new_session=True,
                                     env={**os.environ, **(environment or {})})
            running.append((child, output))
        worst, late = wait_for([child for child, _ in running], start, limit)
    finally:
        end([child for child, _ in running])
    seconds = time.monotonic() - start
    if worst is None:
        worst = next((i for i, (child, _) in enumerate(running) if child.returncode != 0), 0)
    child, output = running[worst]
    output.seek(0)
    return Result(child.returncode, output.read(), seconds, limit if late else None)


def wait_for(children, start, limit):
    """Until all have ended, or are late. Returns the first that failed, and whether it is late."""
    worst, late = None, False
    grace = None  # ranks that have lost one end by themselves, with a message
    while any(child.poll() is None for child in children):
        late = time.monotonic() - start > limit
        failed = [i for i, child in enumerate(children) if child.poll() not in (None, 0)]
        if failed and worst is None:
            worst, grace = failed[0], time.monotonic() + 15
        if late or (grace and time.monotonic() > grace):
            break
        time.sleep(0.02)
    return worst, late


def free_port():
    """A port that can be bound now, below the range of ephemeral ports, which the ranks themselves take."""
    while True:
        port = random.randint(10_000, 29_999)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port


def run_ranks(program, ranks, arguments, limit, environment=None):
    """One process per rank, all on one GPU if there are not more: NCCL takes processes of different
    NCCL_HOSTIDs for different hosts, which may share a GPU; it then goes through sockets."""
    if ranks == 1:
        return run([program, *arguments], limit, environment)
    port = str(free_port())
    commands = []
    for rank in range(ranks):
        commands.append(([program, *arguments], {
            **(environment or {}), "RANK": str(rank), "WORLD_SIZE": str(ranks), "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
            "PARTITA_RT_SHARE_GPU": "1", "NCCL_HOSTID": f"partita-{port}-{rank}", "NCCL_NET": "Socket",
            "NCCL_SOCKET_IFNAME": "lo", "NCCL_IB_DISABLE": "1", "NCCL_MNNVL_ENABLE": "0"}))
    return run_all(commands, limit)
