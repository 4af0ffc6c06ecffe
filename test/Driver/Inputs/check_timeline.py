"""Checks the schedule of `partita explain --json` by itself, and against its picture.

    check_timeline.py EXPLAINED.json PICTURE.svg|- MICRO_BATCHES

Every stage runs every pass of every micro-batch once, one after the other; none begins before what it reads is there; all shares follow.
"""

import json
import sys
import xml.etree.ElementTree as xml

explained, picture, count = json.load(open(sys.argv[1])), sys.argv[2], int(sys.argv[3])
schedule, stages = explained["schedule"], explained["schedule"]["stages"]
ends = {(stage["stage"], slot["slot"]): slot["end"] for stage in stages for slot in stage["slots"]}
for stage in stages:
    slots, number = stage["slots"], stage["stage"]
    assert sorted(slot["slot"] for slot in slots) == sorted(f"{kind}{i}" for kind in "FB" for i in range(count)), slots
    costs = explained["stages"][number]["schedule"]["costs"]
    for before, slot in zip([{"end": 0}] + slots, slots):
        kind, micro = slot["slot"][0], slot["slot"][1:]
        needs = [before["end"]] + [ends[number, "F" + micro]] * (kind == "B")
        if kind == "F" and number > 0:
            needs.append(ends[number - 1, slot["slot"]])
        if kind == "B" and number + 1 < len(stages):
            needs.append(ends[number + 1, slot["slot"]])
        assert slot["begin"] == max(needs), (slot, needs)
        assert slot["end"] - slot["begin"] == costs["forward" if kind == "F" else "backward"][0] > 0
    assert stage["work"] == sum(slot["end"] - slot["begin"] for slot in slots)
    assert stage["waits"] == schedule["time"] - stage["work"]
slowest = max(stage["work"] for stage in stages)
assert schedule["time"] == max(ends.values()) and abs(schedule["bubble_share"] - (schedule["time"] / slowest - 1)) < 1e-12

if picture != "-":
    drawn = [each.attrib for each in xml.parse(picture).iter("{http://www.w3.org/2000/svg}rect") if "data-slot" in each.attrib]
    listed = [(stage["stage"], slot["slot"], slot["begin"], slot["end"]) for stage in stages for slot in stage["slots"]]
    assert [(int(a["data-stage"]), a["data-slot"], int(a["data-begin"]), int(a["data-end"])) for a in drawn] == listed
    for a in drawn:  # in proportion
        assert abs(float(a["width"]) - (int(a["data-end"]) - int(a["data-begin"])) * 890 / schedule["time"]) < 0.02, a
    print(len(drawn), "slots, drawn as they are listed")
