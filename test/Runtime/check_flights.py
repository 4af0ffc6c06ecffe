"""check_flights.py BIN MPIRUN...: after an error of one rank, each rank of mpirun has written its flight recorder, on that rank's
node and on another one."""
import json, os, subprocess, sys, time

bin, mpirun = sys.argv[1], sys.argv[2:]
training = ["--data", "text:/usr/share/common-licenses/GPL-3", "--init", "seed:3"]
ranks, steps = 4, 1000
for transport in ("window", "messages", "nodes:2"):
    name = transport.replace(":", "")
    process = subprocess.Popen([*mpirun, "-np", str(ranks), f"{bin}/partita_rt_example_dp4", *training, "--checkpoint", name, "--log", name + ".csv",
                                "--steps", str(steps)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "PARTITA_RT_TRANSPORT": transport})
    end = time.monotonic() + 100
    while not os.path.exists(name + ".csv") or open(name + ".csv").read().count("\n") < 4:
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.01)
    open(f"{name}/step-{steps}", "w").close()  # rank 0 cannot name its checkpoint so
    _, err = process.communicate(timeout=200)
    assert process.returncode == 3, (name, process.returncode, err)
    lines = [line for line in err.splitlines() if line.startswith("example: error:")]
    assert len(lines) == 1 and "is not a folder" in lines[0], (name, err)
    for rank in range(ranks):
        first, *events = map(json.loads, open(f"{name}/flight/rank-{rank}.jsonl"))
        assert events and ("is not a folder" in first["reason"]) == (rank == 0), (name, rank, first)
    print(f"{transport}: {ranks} flight recorders")
