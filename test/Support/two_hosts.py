"""Two hosts for tests: network namespaces of this machine, joined by a bridge. Needs root and Debian's package iproute2."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

from commands import call

MPIRUN = "mpirun --allow-run-as-root --oversubscribe --mca plm_rsh_agent {agent} --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0"
# Open MPI starts a daemon on each host, which ssh leaves to it; output goes through the daemons.
AGENT = """#!/bin/sh
host=$1; shift
number=${{host##*.1}}
exec ip netns exec {name}$number unshare --uts setsid -f sh -c "hostname host$number; $*" < /dev/null > /dev/null 2>&1
"""


class Hosts:
    """Two hosts at 10.77.0.10 and .11."""

    def __init__(self, folder):
        self.name, self.agent = f"pt{os.getpid()}-", folder / "agent"
        self.agent.write_text(AGENT.format(name=self.name))
        self.agent.chmod(0o755)
        self.bridge = f"ptb{os.getpid()}"

    def mpirun(self, slots, count):
        """Returns a launcher of ranks on "10.77.0.10:2,10.77.0.11:2", or on what stands for hosts and their number later."""
        return f"{MPIRUN.format(agent=self.agent)} --host {slots} -np {count}"

    def torchrun(self, slots, count):
        """Returns a launcher of ranks on "10.77.0.10:2,10.77.0.11:2", which reach each other over TCP."""
        return f"{sys.executable} {pathlib.Path(__file__).with_name('torchrun.py')} --plain --hosts {self.name} {slots} -np {count}"

    def start(self):
        call("ip", "link", "add", self.bridge, "type", "bridge")
        call("ip", "link", "set", self.bridge, "up")
        for number in (0, 1):
            host = f"{self.name}{number}"
            call("ip", "netns", "add", host)
            call("ip", "link", "add", self.cable(number), "type", "veth", "peer", "name", "eth0", "netns", host)
            call("ip", "link", "set", self.cable(number), "master", self.bridge, "up")
            call("ip", "-n", host, "address", "add", f"10.77.0.1{number}/24", "dev", "eth0")
            for device in ("eth0", "lo"):
                call("ip", "-n", host, "link", "set", device, "up")

    def cable(self, number):
        return f"ptv{os.getpid()}.{number}"

    def cut(self, number):
        call("ip", "link", "set", self.cable(number), "down")

    def join(self, number):
        call("ip", "link", "set", self.cable(number), "up")

    def processes(self, number):
        listed = subprocess.run(["ip", "netns", "pids", f"{self.name}{number}"], capture_output=True, text=True)
        return [int(process) for process in listed.stdout.split()]

    def kill(self, number):
        for process in self.processes(number):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)

    def slow(self, rate):
        """Limits both directions of host 1's cable to so many MBit/s; returns why it cannot."""
        return self.shape("tbf", "rate", f"{rate}mbit", "burst", "64kb", "latency", "50ms")

    def delay(self, milliseconds):
        """Lets every packet take so long in each direction of host 1's cable; returns why it cannot."""
        return self.shape("netem", "delay", f"{milliseconds}ms", "limit", "100000")

    def shape(self, kind, *options):
        if not shutil.which("tc"):
            return "tc not found: apt-get install iproute2"
        for where in ([], ["-n", f"{self.name}1"]):
            device = "eth0" if where else self.cable(1)
            done = subprocess.run(["tc", *where, "qdisc", "replace", "dev", device, "root", kind, *options], capture_output=True, text=True)
            if done.returncode:
                why = done.stderr.strip().splitlines()[0]
                return f"the kernel has no {kind} (CONFIG_NET_SCH_{kind.upper()})" if "kind is unknown" in why else why
        return ""

    def fast(self):
        for where in ([], ["-n", f"{self.name}1"]):
            subprocess.run(["tc", *where, "qdisc", "del", "dev", "eth0" if where else self.cable(1), "root"], capture_output=True)

    def stop(self):
        for number in (0, 1):
            self.kill(number)
            subprocess.run(["ip", "netns", "del", f"{self.name}{number}"], capture_output=True)
            subprocess.run(["ip", "link", "del", self.cable(number)], capture_output=True)
        subprocess.run(["ip", "link", "del", self.bridge], capture_output=True)

    def popen(self, words, **more):
        """Starts a command on host 0."""
        return subprocess.Popen(["ip", "netns", "exec", f"{self.name}0", "unshare", "--uts", "sh", "-c", 'hostname host0; exec "$@"', "sh",
                                 *[str(word) for word in words]], **{"text": True, **more})

    def run(self, words):
        """Runs a command on host 0; returns its lines on standard error."""
        process = self.popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, errors = process.communicate(timeout=300)
        if process.returncode:
            raise SystemExit(f"test/hosts: {' '.join(map(str, words))}: {process.returncode}\n{out}{errors}")
        return errors
