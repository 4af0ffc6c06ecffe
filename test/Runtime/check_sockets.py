"""check_sockets.py BUILD: ranks that meet over TCP with something wrong. Each time one line says what, and all end.

Prints a line per case; exits with 1 at the first that ends otherwise."""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

BIN = pathlib.Path(sys.argv[1]) / "bin"
SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "Support"))
from supervised import MPIRUN, TEXT, TORCHRUN, children, executable  # noqa: E402

TWO, OTHER, FOUR, THREE = (BIN / f"partita_rt_{name}" for name in ("example_dp2", "example_dp2_acc2", "example_dp4", "pipeline3"))
TRAIN = ["--data", TEXT, "--init", "seed:1", "--steps"]
EITHER = 'if test "${RANK:-$OMPI_COMM_WORLD_RANK}" = 0; then a=$0; else a=$1; fi; shift; exec "$a" "$@"'  # rank 0's program, the others'


def torchrun(ranks, *options):
    return [*TORCHRUN, "-np", ranks, *options]


def run(*words, timeout=3):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=60, env=dict(os.environ, PARTITA_RT_TIMEOUT=str(timeout)))
    return done.returncode, done.stderr


def expect(case, result, pattern):
    status, errors = result
    lines = [line for line in errors.splitlines() if "error:" in line]
    if status == 0 or len(lines) != 1 or not re.fullmatch(pattern, lines[0]):
        sys.exit(f"{case}: exit status {status}, not one line that matches {pattern}\n{errors}")
    print(case, flush=True)


def builds():
    size = r"[\d,]+ bytes with fingerprint [0-9a-f]{16}"
    host = re.escape(socket.gethostname())
    pattern = (f"example: error: ranks run programs of different builds: the executable of rank 0 on {host} is {size}, that of rank 1 on {host} is {size}; "
               "start the same build everywhere")
    meshes = (f"example: error: ranks run programs of different builds: the mesh of rank 0 on {host} is dp=2, that of rank 1 on {host} is dp=4; "
              "start the same build everywhere")
    for name, launcher in (("TCP", torchrun(2)), ("MPI", [*MPIRUN, "-np", 2])):
        expect(f"builds, {name}", run(*launcher, "sh", "-c", EITHER, TWO, OTHER, *TRAIN, 3), pattern)
    expect("builds for other numbers of ranks, MPI", run(*MPIRUN, "-np", 2, "sh", "-c", EITHER, TWO, FOUR, *TRAIN, 3), meshes)


def folders():
    words = 'if test "${RANK:-$OMPI_COMM_WORLD_RANK}" = 0; then a=$0; else a=$1; fi; shift; exec "$@" --checkpoint "$a"'
    with tempfile.TemporaryDirectory(prefix="sockets-") as place:
        for name, launcher in (("TCP", torchrun(2)), ("MPI", [*MPIRUN, "-np", 2])):
            expect(f"folders for checkpoints, {name}", run(*launcher, "sh", "-c", words, f"{place}/a", f"{place}/b", TWO, *TRAIN, 3),
                   rf"example: error: rank [01]: --checkpoint: ranks have different folders: what rank 0 on host \S+ has made in {place}/a is not in {place}/b of rank 1 "
                   r"on host \S+; give all of them one folder, which their hosts share")
            assert not any(os.path.isdir(f"{place}/{each}") for each in "ab"), os.listdir(place)


def numbers():
    expect("another WORLD_SIZE", run(*torchrun(2, "--set", 1, "WORLD_SIZE=3"), TWO, *TRAIN, 3),
           r"example: error: rank 1: the program was compiled for 2 ranks \(dp=2\), 3 processes were started; start 2, or compile it with another --mesh")
    expect("the same RANK twice", run(*torchrun(6, "--set", 3, "RANK=2", "--set", 3, "LOCAL_RANK=2"), THREE, *TRAIN, 3),
           r"pipeline: error: two processes were started as rank 2: host \S+, process \d+, and host \S+, process \d+")
    expect("RANK=0 twice", run(*torchrun(2, "--plain", "--set", 1, "RANK=0", "--set", 1, "LOCAL_RANK=0"), TWO, *TRAIN, 3, timeout=30),
           r"example: error: two processes were started as rank 0: host \S+, process \d+, and host \S+, process \d+")


def addresses():
    name = "MASTER_ADDR=nowhere.invalid"
    expect("no such host", run(*torchrun(2, "--set", 0, name, "--set", 1, name), TWO, *TRAIN, 3),
           r"example: error: rank [01] \(host \S+, process \d+\) cannot meet the others at nowhere.invalid: .*; MASTER_ADDR must name rank 0's host")
    expect("no such host, rank 0", run("env", "RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", name, "MASTER_PORT=29571", TWO, *TRAIN, 3, timeout=50),
           r"example: error: rank 0 \(host \S+, process \d+\) cannot meet the others at nowhere.invalid: .*; MASTER_ADDR must name rank 0's host")
    with socket.create_server(("127.0.0.1", 0)) as service:
        def answer():
            while True:
                try:
                    guest, _ = service.accept()
                    guest.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9)
                except OSError:
                    return
        threading.Thread(target=answer, daemon=True).start()
        port = f"MASTER_PORT={service.getsockname()[1]}"
        expect("another service", run(*torchrun(2, "--plain", "--set", 0, port, "--set", 1, port), TWO, *TRAIN, 3),
               r"example: error: rank 0 cannot listen on port \d+: Address already in use; another run may have it: choose another MASTER_PORT")
        expect("another service, alone", run("env", "RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "MASTER_ADDR=127.0.0.1", port, TWO, *TRAIN, 3, timeout=1),
               r"example: error: rank 1 \(host \S+, process \d+\) has not found rank 0 at 127.0.0.1:\d+ within 1 s: whoever listens there is not rank 0")
        service.close()


def ports(process):
    """The ports at which a process listens."""
    inodes = {os.readlink(path)[8:-1] for path in pathlib.Path(f"/proc/{process}/fd").iterdir() if os.readlink(path).startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(int(fields[1].rsplit(":", 1)[1], 16))
    return found


def during():
    """Garbage to all ports of a run, which goes on; then a rank of it is killed."""
    flights = pathlib.Path(tempfile.mkdtemp(prefix="sockets-"))
    words = [*torchrun(2), TWO, *TRAIN, 1000000, "--print-every", 1, "--flight-recorder", flights]
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    steps = iter(process.stdout.readline, "")
    try:
        next(line for line in steps if line.startswith("step 3/"))
        ranks = [each for each in children(process.pid) if os.path.basename(os.readlink(f"/proc/{each}/exe")) == TWO.name]
        listening = sorted(set().union(*(ports(rank) for rank in ranks)))
        assert listening, "no port"
        for port in listening:
            for text in (b"GET / HTTP/1.1\r\n\r\n", b"\xff" * 5000, b"\0" * 100):
                with socket.create_connection(("127.0.0.1", port)) as guest:
                    guest.sendall(text)
        time.sleep(0.2)
        ahead = next(line for line in steps if line.startswith("step "))
        last = int(re.match(r"step (\d+)/", ahead)[1]) + 200
        assert any(line.startswith(f"step {last}/") for line in steps), "the run ended"
        print(f"garbage to ports of {len(ranks)} ranks", flush=True)
        # Rank 0 gets the launcher's signal before it can see that the connection is closed.
        os.kill(ranks[0], signal.SIGSTOP)
        os.kill(ranks[1], signal.SIGKILL)
        while executable(ranks[1]):
            time.sleep(0.002)
        os.kill(ranks[0], signal.SIGTERM)
        os.kill(ranks[0], signal.SIGCONT)
        _, errors = process.communicate(timeout=30)
    finally:
        for each in [*children(process.pid), process.pid]:
            try:
                os.kill(each, signal.SIGKILL)
            except OSError:
                pass
    name = rf"rank 1 \(host \S+, process {ranks[1]}\)"
    expect("killed", (process.returncode, errors), rf"example: error: {name} died; it was in step \d+ \(.*")
    assert "torchrun: rank 0: exit status 3" in errors, errors
    head, *events = [json.loads(line) for line in (flights / "rank-1.jsonl").read_text().splitlines()]
    assert head["rank"] == 1 and re.fullmatch(name, head["name"]), head
    last = [event["number"] for event in events if event["event"] == "step"][-1]
    assert int(re.search(r"died; it was in step (\d+) ", errors)[1]) in (last, last + 1), (last, errors)  # it may have been between saying and recording
    assert f"error: {head['reason']}\n" in errors, (head, errors)
    assert (flights / "rank-0.jsonl").exists()
    shutil.rmtree(flights)
    print("the killed rank's flight recorder", flush=True)


for case in (builds, folders, numbers, addresses, during):
    case()
