"""Compares what explain says that nodes send each other in a step with what the ranks count.
usage: sent_bytes.py MODEL FOLDER NAME MESH RANKS_PER_NODE LAUNCHER... [OPTIONS]"""
import math
import os
import re
import sys

from commands import call

model, folder, name, mesh, per_node, *rest = sys.argv[1:]
launchers = [each for each in rest if " " in each or "mpirun" in each]
options = rest[len(launchers):]
ranks, per_node = math.prod(int(each.split("=")[1]) for each in mesh.split(",")), int(per_node)
nodes = ranks // per_node
program = f"{folder}/{name}"
call("partita", "compile", model, "--dim", "batch=12", "--dim", "sequence=32", "--mesh", mesh, *options, "-o", program)


def number(text):
    return int(text.replace(",", ""))


def explained():
    """{steps: (bytes of a node on average, of the busiest one)}"""
    text = call("partita", "explain", program, "--ranks-per-node", per_node)
    tables = re.findall(r"^Bytes that .*? sends in train_step(.*), by shared memory and messages\n.*\n((?:  .*\n)+)", text, re.M)
    assert tables, text
    found = {}
    for steps, table in tables:
        total = number(re.search(r"^  in all +[\d,]+ +([\d,]+)$", table, re.M)[1])
        busiest = re.search(r"^  the busiest node +[\d,]+ +([\d,]+)$", table, re.M)
        found[steps] = total, number(busiest[1]) if busiest else total
    return found


def counted(launcher):
    """The same of a run, and what its stages send each other."""
    os.environ["PARTITA_RT_TRANSPORT"] = f"nodes:{per_node}"
    out = call(*launcher.split(), "-np", ranks, "partita", "run", program, "--data", "text:/usr/share/common-licenses/GPL-3", "--init", "seed:1", "--steps", 4,
               "--lr", "1e-6")
    lines = re.findall(rf"^(?:between nodes)? +(?:each of )?{nodes} nodes sends? ([\d,]+) bytes of (collectives|messages between stages) per step(.*?)"
                       r"(?: on average, the one of rank \d+ ([\d,]+))?$", out, re.M)
    assert bool(lines) == (nodes > 1), out
    found = {"collectives": {}, "messages between stages": {}}
    for mean, what, steps, most in lines:
        found[what][steps] = number(mean), number(most or mean)
    return found["collectives"], found["messages between stages"]


said = explained()
for launcher in launchers:
    title = "mpirun" if launcher.startswith("mpirun") else "torchrun"
    collectives, messages = counted(launcher)
    if nodes == 1:
        assert all(sent == (0, 0) for sent in said.values()), said
        print(f"{title}: one node")
        continue
    assert said == collectives, f"{title}: explained {said}, counted {collectives}"
    for steps, (mean, most) in collectives.items():
        print(f"{title}: {mean:,} bytes of collectives{steps}" + (f", {most:,} by the busiest node" if most != mean else ""))
    for mean, most in messages.values():  # a node is a stage, each of whose ranks sends what the census announces
        announced = re.findall(r" sent to stage \d+ over .*?, ([\d,]+) bytes", call("partita", "run", program, "--census"))
        assert mean == most == sum(map(number, announced)) * per_node // nodes, (announced, mean, most)
        print(f"{title}: messages: {mean:,}")
