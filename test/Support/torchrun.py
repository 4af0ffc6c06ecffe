"""Starts ranks as torchrun does, without torch: by environment variables, and again if one fails.

torchrun.py -np RANKS [--max-restarts N] [--plain] [--set RANK NAME=VALUE]... [--hosts NAME HOST:SLOTS,...] COMMAND...

torchrun's agent listens on MASTER_PORT itself; with --plain nobody does, and only RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT are set.
--set changes a variable of one rank. --hosts starts the ranks in the network namespaces NAME0, NAME1 of two_hosts.py, in the order in which they are
named. If a process fails, the others get SIGTERM, and SIGKILL 2 s later (torchrun: 30); then all start again, N times at most. Exit status: 0
if all have ended with 0, else 1 (with --hosts, those of the first host: it cannot know of others), with a line per rank on standard error: "torchrun: rank 1: exit status 3"."""

import argparse
import ctypes
import os
import signal
import socket
import subprocess
import sys
import time


def die_with_parent(parent=os.getpid()):
    """As torchrun's workers do: SIGTERM if it is gone."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def places(options):
    """Returns the host of each rank, and its number there."""
    if not options.hosts:
        return [("127.0.0.1", rank) for rank in range(options.np)]
    on = {}  # how many a host has so far: it may be named again
    found = []
    for host, count in (each.split(":") for each in options.hosts[1].split(",")):
        for _ in range(int(count)):
            found.append((host, on.get(host, 0)))
            on[host] = on.get(host, 0) + 1
    return found[: options.np]


def command_on(options, host):
    if not options.hosts:
        return options.command
    number = host.rsplit(".1", 1)[1]
    return ["ip", "netns", "exec", options.hosts[0] + number, "unshare", "--uts", "sh", "-c", 'hostname host$0; exec "$@"', number, *options.command]


def start(options, count, port):
    """Returns the processes of the first host."""
    processes, where = [], places(options)
    first = where[0][0]
    for rank, (host, local) in enumerate(where):
        environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(len(where)), LOCAL_RANK=str(local), MASTER_ADDR=first, MASTER_PORT=str(port))
        if not options.plain:
            environment |= {"LOCAL_WORLD_SIZE": str(options.np), "TORCHELASTIC_RUN_ID": f"test-{os.getpid()}", "TORCHELASTIC_RESTART_COUNT": str(count),
                            "TORCHELASTIC_MAX_RESTARTS": str(options.max_restarts), "TORCHELASTIC_USE_AGENT_STORE": "True"}
        for its, assignment in options.set:
            if int(its) == rank:
                name, value = assignment.split("=", 1)
                environment[name] = value
        own = host == first
        process = subprocess.Popen(command_on(options, host), env=environment, preexec_fn=die_with_parent if own else None, start_new_session=not own)
        if own:
            processes.append(process)
    return processes


def wait(processes):
    """Ends the others when one fails; did all end well?"""
    while any(process.poll() is None for process in processes) and not any(process.poll() for process in processes):
        time.sleep(0.02)
    if not any(process.poll() for process in processes):
        return True
    time.sleep(0.1)  # torchrun looks ten times a second
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    end = time.monotonic() + 2
    for process in processes:
        try:
            process.wait(max(0.01, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-np", type=int, required=True)
    parser.add_argument("--max-restarts", type=int, default=0)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--set", nargs=2, action="append", default=[], metavar=("RANK", "NAME=VALUE"))
    parser.add_argument("--hosts", nargs=2, metavar=("NAME", "HOST:SLOTS,..."))
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    store = socket.create_server(("127.0.0.1", 0))
    port = store.getsockname()[1]
    if options.plain:
        store.close()
    for count in range(options.max_restarts + 1):
        processes = start(options, count, port)
        if wait(processes):
            return 0
    for rank, process in enumerate(processes):
        print(f"torchrun: rank {rank}: exit status {process.returncode}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
