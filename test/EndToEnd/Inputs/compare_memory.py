# compare_memory.py COMPILE.txt RUN.txt MANIFEST: the three announce the same bytes and the same parts of them, and no two
# buffers of the ledger that live at once overlap.
import json
import re
import sys

PATTERN = r"([\d,]+) bytes per rank: ([\d,]+) persistent, ([\d,]+) arena, ([\d,]+) inputs\n"


def numbers(path):
    with open(path) as file:
        return [int(x.replace(",", "")) for x in re.search(PATTERN, file.read()).groups()]


with open(sys.argv[3]) as file:
    memory = json.load(file)["memory"]
expected = [memory["persistent"], memory["arena"], memory["inputs"]]
expected = [sum(expected), *expected]
assert numbers(sys.argv[1]) == expected == numbers(sys.argv[2]), (numbers(sys.argv[1]), numbers(sys.argv[2]), expected)

functions = {}
for buffer in memory["ledger"]:
    if "offset" in buffer and "begin" in buffer:
        functions.setdefault(buffer.get("function", ""), []).append(buffer)
checked = 0
for buffers in functions.values():
    for i, a in enumerate(buffers):
        assert a["offset"] + a["bytes"] <= memory["arena"], a
        for b in buffers[:i]:
            together = a["begin"] <= b["end"] and b["begin"] <= a["end"]
            apart = a["offset"] + a["bytes"] <= b["offset"] or b["offset"] + b["bytes"] <= a["offset"]
            assert apart or not together, (a, b)
            checked += 1
assert checked > 1000, checked
print(f"{expected[1]} persistent and {expected[2]} arena bytes; {checked} pairs of buffers do not overlap")
