"""check_alignment.py MODULE [full]: where a tensor begins (not a view of another) is a multiple of 16 bytes in every memory space, so that
kernels read and write it in whole packs. With `full` views too, and rows: every stride between rows is a multiple of 16 bytes."""
import re
import sys

text, full = open(sys.argv[1]).read(), "full" in sys.argv[2:]
BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i1": 1, "i8": 1, "f64": 8}
VIEWS = ("tx.slice", "tx.reshape", "tx.transpose", "tx.broadcast", "tx.concat", "par.", "zero.", "tx.split", "tx.expand")
places = views = 0
for line in text.splitlines():
    if "rt.buffers" not in line:
        continue
    op = re.search(r"(?:= )?\"?([a-z_]+\.[a-z_]+)", line)[1]
    results = re.findall(r"tensor<(?:[0-9]+x)*([a-z0-9]+)[,>]", line.rsplit("->", 1)[-1])
    size = BYTES[results[-1]] if results and results[-1] in BYTES else 4
    for space, offset, strides in re.findall(r"#rt\.at<(arena|persistent|in_flight|host|pinned) (\d+)(?:, \[([\d, ]*)\])?>", line):
        is_view = bool(strides) or op.startswith(VIEWS)
        places += not is_view
        views += is_view
        if (full or not is_view) and int(offset) % 16:
            sys.exit(f"{space} {offset} is no multiple of 16: {line.strip()[:200]}")
        for stride in map(int, filter(None, strides.split(","))) if full else ():
            if stride > 1 and stride * size % 16:
                sys.exit(f"rows {stride} elements of {size} bytes apart: {line.strip()[:200]}")
assert places > 50, "the module has places"
print(f"{places} tensors and {views} views, aligned")
