"""ledger.py EXPLAINED.json PICTURE.svg LAYERS: adds up the ledger's buffers by itself, op by op, and holds the peak, the kinds,
the activations by layer, the arena and every column of the picture against the sums."""
import json
import os
import re
import sys
import xml.etree.ElementTree as xml

KINDS = ["parameter", "state", "gathered", "gradient", "activation", "communication", "workspace"]
COLUMNS = 800


def align(size):
    return (size + 63) // 64 * 64


def live_by_kind(buffers, ops):
    """Bytes by kind at each op; the same summed from the places that the offsets name: no byte counts twice."""
    result = [dict.fromkeys(KINDS, 0) for _ in range(ops)]
    spans = [[] for _ in range(ops)]
    for b in buffers:
        for op in range(b["begin"], b["end"] + 1):
            result[op][b["kind"]] += align(b["bytes"])
            spans[op].append((b["offset"], b["offset"] + align(b["bytes"])))
    for op, taken in enumerate(spans):
        taken.sort()
        assert all(a[1] <= b[0] for a, b in zip(taken, taken[1:])), op
        assert sum(end - begin for begin, end in taken) == sum(result[op].values()), op
    return result


def outline(path, ops):
    """A path of M, H and V in numbers of ops and bytes as the height at each op."""
    steps = re.findall(r"([MHVZ])([\d ]*)", path)
    assert steps[0] == ("M", "0 0") and steps[-1] == ("Z", "") and steps[-2] == ("V", "0"), steps[:1] + steps[-2:]
    heights, height = [], 0
    for letter, number in steps[1:-2]:
        if letter == "V":
            height = int(number)
        else:
            heights += [height] * (int(number) - len(heights))
    assert len(heights) == ops, (len(heights), ops)
    return heights


def check_function(function, buffers, layers):
    ops, at, peak = function["ops"], function["at"], function["peak"]
    live = live_by_kind(buffers, ops)
    totals = [sum(sums.values()) for sums in live]
    assert peak == max(totals) and at["op"] == totals.index(peak), (peak, max(totals), at)
    assert function["arena"] == max(b["offset"] + align(b["bytes"]) for b in buffers)
    assert function["fragmentation"] == function["arena"] - peak >= 0
    used = [kind for kind in KINDS if any(sums[kind] for sums in live)]
    assert [k["kind"] for k in function["kinds"]] == used
    for k in function["kinds"]:
        sizes = [sums[k["kind"]] for sums in live]
        assert (k["at_peak"], k["largest"], k["largest_at"]) == (sizes[at["op"]], max(sizes), sizes.index(max(sizes))), k
    alive = [b for b in buffers if b["begin"] <= at["op"] <= b["end"]]
    for row in function["activations"]:
        of = [b for b in buffers if b["kind"] == "activation" and b["place_number"] == row["place_number"]]
        for direction in "forward", "backward":
            assert row[direction] == sum(align(b["bytes"]) for b in of if b in alive and b["direction"] == direction), row
        assert row["largest"] == max(sum(v.values()) for v in live_by_kind(of, ops)), row
    sums = sum(row["forward"] + row["backward"] for row in function["activations"])
    assert sums == live[at["op"]]["activation"], (sums, live[at["op"]])
    assert sorted(r["place_number"] for r in function["activations"] if r["place_number"] >= 0) == list(range(layers))
    sizes = [b["bytes"] for b in function["holders"]]
    assert sizes == sorted((b["bytes"] for b in alive), reverse=True)[:10]
    return live


def check_picture(path, memory, function, live):
    assert os.path.getsize(path) < 200_000, os.path.getsize(path)
    root = xml.parse(path).getroot()
    assert not re.search(r"(href|url\(|<script|@import)", open(path).read()), "needs nothing but itself"
    name = "{http://www.w3.org/2000/svg}"
    ops = function["ops"]
    outlines = {p.get("data-kind"): outline(p.get("d"), ops) for p in root.iter(name + "path")}
    held = dict.fromkeys(KINDS, 0)
    for kind in memory["kinds"]:
        held[kind["kind"]] = kind["bytes"]
    assert sum(held.values()) == memory["persistent"] and held["parameter"] == memory["parameters"]
    width = -(-ops // COLUMNS)
    shown = [kind for kind in KINDS if kind in outlines]
    assert shown == [kind for kind in KINDS if held[kind] or any(sums[kind] for sums in live)], shown
    for begin in range(0, ops, width):
        fullest = max(live[begin : begin + width], key=lambda sums: sum(sums.values()))
        height = 0
        for kind in shown:
            height += held[kind] + fullest[kind]
            for op in range(begin, min(begin + width, ops)):
                assert outlines[kind][op] == height, (kind, op, outlines[kind][op], height)
    (circle,) = root.iter(name + "circle")
    peak = memory["persistent"] + function["peak"]
    assert (int(circle.get("data-op")), int(circle.get("data-bytes"))) == (function["at"]["op"], peak)
    assert max(outlines[shown[-1]]) == peak
    return len(list(range(0, ops, width)))


with open(sys.argv[1]) as file:
    memory = json.load(file)["memory"]
name = memory["ledger_of"]
buffers = [b for b in memory["ledger"] if b.get("function") == name]
live = check_function(memory["functions"][name], buffers, int(sys.argv[3]))
persistent = [b for b in memory["ledger"] if "begin" not in b]
for kind in memory["kinds"]:
    own = [b for b in persistent if b["kind"] == kind["kind"]]
    assert (kind["buffers"], kind["bytes"]) == (len(own), sum(align(b["bytes"]) for b in own)), kind
columns = check_picture(sys.argv[2], memory, memory["functions"][name], live)
function = memory["functions"][name]
print(f"{function['ops']} ops in {columns} columns, {len(buffers)} buffers, kinds: {' '.join(k['kind'] for k in function['kinds'])}")
