"""No two buffers of a program's arena that live at the same time may share bytes, all lie inside the arena,
every offset is a multiple of 64, and the arena is no larger than its last buffer's end."""
import json
import sys

memory = json.load(open(sys.argv[1] + "/manifest.json"))["memory"]
buffers = [b for b in memory["ledger"] if "begin" in b]
arena = memory["functions"]["train_step"]["arena"]
assert len(buffers) > 50, "the ledger lists the buffers"
for b in buffers:
    assert b["offset"] % 64 == 0 and 0 <= b["offset"] and b["offset"] + b["bytes"] <= memory["arena"], b
clashes = 0
for i, a in enumerate(buffers):
    for b in buffers[:i]:
        alive = a["begin"] <= b["end"] and b["begin"] <= a["end"]
        apart = a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]
        if alive and not apart:
            clashes += 1
            print("clash:", a, b)
assert clashes == 0
peak = memory["functions"]["train_step"]["peak"]
assert peak <= arena, (peak, arena)
assert arena <= 1.25 * peak, f"the arena of {arena} bytes wastes more than a quarter over the peak of {peak}"
assert sum(kind["at_peak"] for kind in memory["functions"]["train_step"]["kinds"]) == peak
print("no overlap,", len(buffers), "buffers,", arena, "of", peak)
