"""check_signals.py BIN MPIRUN...: the effects of SIGINT, SIGTERM, SIGHUP and SIGUSR1 on the example program. With a folder for
checkpoints all ranks save after the same step, and --resume from there gives the bits of an uninterrupted run; the exit
status is the signal's."""
import json, os, pathlib, re, signal, subprocess, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "Support"))
import supervised  # noqa: E402

bin, mpirun = sys.argv[1], sys.argv[2:]
two = bin + "/partita_rt_example_dp2"
training = ["--data", "text:/usr/share/common-licenses/GPL-3", "--init", "seed:3"]
endless = ["--steps", "100000000", "--print-every", "100000000"]


def until(condition, process):
    for _ in range(6000):
        if condition():
            return
        assert process.poll() is None, (process.returncode, process.communicate())
        time.sleep(0.02)
    raise AssertionError("nothing happens")


def steps(log):
    return max(0, len(open(log).read().splitlines()) - 1) if os.path.exists(log) else 0


def ranks(process):
    """Returns the processes that mpirun has started, by rank."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1]
            variables = open(f"/proc/{pid}/environ").read()
        except OSError:
            continue
        rank = re.search(r"OMPI_COMM_WORLD_RANK=(\d+)", variables)
        if int(parent) == process.pid and rank:
            found[int(rank[1])] = int(pid)
    return found


# RANK alone has no effect: the variables of the actual launcher decide which rank prints.
def start(name, *options, launcher=(), transport="", ignored=None):
    def prepare():
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
            signal.signal(each, signal.SIG_IGN if each == ignored else signal.SIG_DFL)
    process = subprocess.Popen([*launcher, two, *training, *endless, "--log", name + ".csv", *options], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env={**os.environ, "PARTITA_RT_TRANSPORT": transport, "RANK": "1"}, preexec_fn=prepare)
    until(lambda: steps(name + ".csv") >= 3, process)
    return process


def finished(name, process, number):
    """Returns how many steps an interrupted run has made and saved."""
    out, err = process.communicate(timeout=120)
    assert process.returncode in (-number, 128 + number), (process.returncode, err)
    lines = [line for line in err.splitlines() if line.startswith("example:")]
    called = signal.Signals(number).name
    assert lines == [f"example: {called}: finishing the step and writing a checkpoint to {name}; signal again after a second to stop at once"], err
    step = int(re.search(rf"checkpoint +{name}/step-\d+, step (\d+) of 100000000, ended by {called};", out)[1])
    header = open(f"{name}/step-{step}/checkpoint.safetensors", "rb").read()
    metadata = json.loads(header[8:8 + int.from_bytes(header[:8], "little")])["__metadata__"]
    assert int(metadata["step"]) == step == steps(name + ".csv"), (metadata, step)
    assert os.listdir(name) == [f"step-{step}"], os.listdir(name)
    return step


def run(*options):
    subprocess.run([two, *training[:2], *options], check=True, stdout=subprocess.PIPE, timeout=300)


for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    name = signal.Signals(number).name
    process = start(name, "--checkpoint", name, "--dump-parameters", "none")
    process.send_signal(number)
    step = finished(name, process, number)
    assert not os.path.exists("none")
    process = start("unsaved" + name)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    assert process.returncode == -number and err == f"example: ended by {name}\n", (process.returncode, err)
run("--checkpoint", name, "--resume", "--steps", str(step + 2), "--dump-parameters", "resumed")
run("--init", "seed:3", "--steps", str(step + 2), "--dump-parameters", "full")
assert open("resumed", "rb").read() == open("full", "rb").read()
process = start("unread", "--checkpoint", "unread")
process.stdout.close()
process.send_signal(signal.SIGINT)
process.wait(timeout=120)
assert process.returncode == -signal.SIGINT and [each.split("-")[0] for each in os.listdir("unread")] == ["step"], process.returncode
print("threads save, end, and can go on")

process = start("hangup", "--checkpoint", "hangup", ignored=signal.SIGHUP)
process.send_signal(signal.SIGHUP)
before = steps("hangup.csv")
until(lambda: steps("hangup.csv") > before + 3, process)
process.send_signal(signal.SIGTERM)
finished("hangup", process, signal.SIGTERM)
print("what is ignored stays ignored")

for transport in ("window", "messages"):
    process = start(transport, "--checkpoint", transport, launcher=mpirun, transport=transport)
    os.kill(ranks(process)[1], signal.SIGTERM)
    finished(transport, process, signal.SIGTERM)
    print(transport, "save together")

# After the last step, while rank 0 gives its checkpoint the name, which takes a while here. Rank 1 alone gets the signal: all end by it.
supervised.build_preload("slow_rename", "slow.so")
process = subprocess.Popen([*mpirun, "-x", "SLOW_RENAME=1.5", "-x", "LD_PRELOAD=" + os.path.abspath("slow.so"), two, *training, "--steps", "3", "--checkpoint", "late"],
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
until(lambda: os.path.exists("renaming"), process)
os.kill(ranks(process)[1], signal.SIGTERM)
out, err = process.communicate(timeout=120)
assert process.returncode == 128 + signal.SIGTERM and " died" not in err, (process.returncode, err)
assert "late/step-3, step 3 of 3, ended by SIGTERM;" in out and os.listdir("late") == ["step-3"], out
print("a signal to one rank after the last step ends all")

# A step that never finishes, since rank 1 is stopped: the second signal ends it. (Two signals within a second count as one.)
process = start("stopped", "--checkpoint", "stopped", launcher=mpirun)
pids = ranks(process)
os.kill(pids[1], signal.SIGSTOP)
os.kill(pids[0], signal.SIGTERM)
first = process.stderr.readline()
os.kill(pids[0], signal.SIGTERM)
time.sleep(1.1)
assert process.poll() is None
os.kill(pids[0], signal.SIGTERM)
_, err = process.communicate(timeout=120)
assert process.returncode == 128 + signal.SIGTERM and "finishing the step" in first and "example: ended by SIGTERM\n" in err, (process.returncode, first, err)
print("a second signal ends at once")
