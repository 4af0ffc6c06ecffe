"""check_flights.py BIN MPIRUN...: after an error of one rank, each rank of mpirun has written its flight recorder, on that rank's
node and on another one. The same after a rank was killed, which those of other nodes do not see; they have two seconds, not mpirun's one, for a busy machine."""
import json, os, signal, subprocess, sys, time

bin, mpirun = sys.argv[1], sys.argv[2:]
training = ["--data", "text:/usr/share/common-licenses/GPL-3", "--init", "seed:3"]
ranks, steps = 4, 300


def started(name, transport):
    """Returns a run that has made some steps."""
    process = subprocess.Popen([*mpirun, "-np", str(ranks), f"{bin}/partita_rt_example_dp4", *training, "--checkpoint", name, "--log", name + ".csv",
                                "--steps", str(steps)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "PARTITA_RT_TRANSPORT": transport, "OMPI_MCA_odls_base_sigkill_timeout": "2"})
    end = time.monotonic() + 100
    while not os.path.exists(name + ".csv") or open(name + ".csv").read().count("\n") < 4:
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.01)
    return process


def children(parent):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1]) == parent:
                yield int(pid), dict(each.split(b"=", 1) for each in open(f"/proc/{pid}/environ", "rb").read().split(b"\0") if b"=" in each)
        except OSError:
            pass


def flights(name, ranks):
    """Returns the first line of each rank's file, which has events too."""
    heads = []
    for rank in ranks:
        first, *events = map(json.loads, open(f"{name}/flight/rank-{rank}.jsonl"))
        assert events and first["rank"] == rank and first["start"] < first["written"], (name, rank, first)
        heads.append(first)
    assert len({head["start"] for head in heads}) == 1, heads
    return heads


for transport in ("window", "messages", "nodes:2"):
    name = transport.replace(":", "")
    process = started(name, transport)
    open(f"{name}/step-{steps}", "w").close()  # rank 0 cannot name its checkpoint so
    _, err = process.communicate(timeout=200)
    assert process.returncode == 3, (name, process.returncode, err)
    lines = [line for line in err.splitlines() if line.startswith("example: error:")]
    assert len(lines) == 1 and "is not a folder" in lines[0], (name, err)
    for head in flights(name, range(ranks)):
        assert ("is not a folder" in head["reason"]) == (head["rank"] == 0), (name, head)
    print(f"{transport}: {ranks} flight recorders")

    name += "-killed"
    process = started(name, transport)
    pids = {int(environment[b"OMPI_COMM_WORLD_RANK"]): pid for pid, environment in children(process.pid)}
    os.kill(pids[1], signal.SIGKILL)
    _, err = process.communicate(timeout=200)
    assert process.returncode == 128 + signal.SIGKILL, (name, process.returncode, err)
    flights(name, [0, 2, 3])
    print(f"{transport}: those of the other ranks, when one was killed")
