# compare_logs.py TOLERANCE LOG LOG...: the losses of all steps, relative to the first log's; 0 means the
# same text, which is the same bits. The speed column may differ.
import csv
import sys


def read(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows, f"{path} is empty"
    return [(row["step"], row["loss"], row["validation_loss"]) for row in rows]


tolerance = float(sys.argv[1])
first = read(sys.argv[2])
worst = 0.0
for path in sys.argv[3:]:
    other = read(path)
    assert len(first) == len(other), f"{len(first)} steps in {sys.argv[2]}, {len(other)} in {path}"
    for a, b in zip(first, other):
        assert a[0] == b[0], f"step {a[0]} against {b[0]} in {path}"
        if tolerance == 0:
            assert a == b, f"{path}: {b} instead of {a}"
        for x, y in zip(a[1:], b[1:]):
            assert (x == "") == (y == ""), f"{path}: {b} instead of {a}"
            if x:
                worst = max(worst, abs(float(x) - float(y)) / abs(float(x)))
assert worst <= tolerance, f"losses differ by {worst:.3e}, more than {tolerance:g}"
print(f"{len(first)} steps equal, worst {worst:.1e}")
