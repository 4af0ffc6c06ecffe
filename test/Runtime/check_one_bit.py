"""check_one_bit.py GOLDEN RANKS < OUTPUT: compares what partita_rt_one_bit printed with GOLDEN: onebit_adam.json, onebit_lamb.json or zero_one_adam.json of test/Golden."""
import json
import sys

golden = json.load(open(sys.argv[1]))[sys.argv[2]]
printed = {(row["step"], row["tensor"], "p" in row): row for row in json.load(sys.stdin)}
largest, count = 0, 0
for row in golden:
    other = printed.pop((row["step"], row["tensor"], "p" in row))
    for name in row.keys() - {"step", "tensor"}:
        assert len(row[name]) == len(other[name]), (row["step"], row["tensor"], name)
        largest = max([largest] + [abs(a - b) for a, b in zip(row[name], other[name])])
        count += len(row[name])
assert not printed, printed.keys()
print("%d numbers, %s" % (count, "all within 1e-6" if largest <= 1e-6 else "largest difference %g" % largest))
sys.exit(largest > 1e-6)
