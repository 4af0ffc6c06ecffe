"""check_alignment.py MODULE [full]: where a tensor begins (not a view of another) is a multiple of 16 bytes in every memory space, so that
kernels read and write it in whole packs. With `full` views too, and rows: the bytes between neighbouring elements of each dimension but
the last, by a view's strides or a dense tensor's sizes. Dense tensors whose rows are not aligned are listed by type.

What is not read here: `input` and `control`, which a program gets from elsewhere, and addresses that kernels compute, as a part of a
row for a head. A number of a table of scales is a row of four floats."""
import collections
import math
import re
import sys

BYTES = {"f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i1": 1, "i8": 1, "f64": 8, "f8E4M3FN": 1, "f8E5M2": 1}
VIEWS = ("tx.slice", "tx.reshape", "tx.transpose", "tx.broadcast", "tx.concat", "par.", "zero.", "tx.split", "tx.expand")
SPACES = r"arena|persistent|in_flight|host|pinned"
TENSOR = re.compile(r"tensor<([^<>]*(?:<[^<>]*>)?[^<>]*)>")
OP = re.compile(r'^\s*((?:%\w+(?::\d+)?(?:, )?)*)(?: = )?"?([a-z_0-9]+\.[a-z_0-9]+)')


def fail(why, line):
    sys.exit(f"{why}: {line.strip()[:200]}")


def ops(lines):
    """(the line with its places, the op, its results' types); of an op with a region, the places are at the region's end."""
    opened = []
    for line in lines:
        if line.lstrip().startswith("return "):
            continue  # what it names has its place already
        body = re.sub(r'"[^"]*"', '""', line).split(" loc(")[0].rstrip()
        match = OP.match(line)
        if match:
            count = sum(int(each.partition(":")[2] or 1) for each in match[1].split(", ") if each)
            # What follows the last arrow are the results' types; where there is none, results come last. A token has no place; if
            # it is the only result, places are those of the operands.
            before, arrow, after = body.rpartition(" -> ")
            types = TENSOR.findall(after if arrow else body)
            op = match[2], (types or TENSOR.findall(before)) if arrow else types[len(types) - count:] if count else []
        elif body.lstrip().startswith("}"):
            op = opened.pop() if opened else None
        else:
            op = None
        if "rt.buffers" in line and not line.startswith("module"):
            if not op:
                fail("its beginning is not found", line)
            yield line, *op
        if body.endswith("{"):
            opened.append(op)


def parsed(type_, line):
    """The sizes and the element's bytes of 4x6xbf16, [8 @dp, 6]."""
    *sizes, element = type_.partition(",")[0].split("x")
    if element not in BYTES or not all(size.isdigit() for size in sizes):
        fail(f"tensor<{type_}> is of no known type", line)
    return list(map(int, sizes)), BYTES[element]


def main():
    text, full = open(sys.argv[1]).read(), "full" in sys.argv[2:]
    places = views = 0
    odd = collections.Counter()
    for line, op, types in ops(text.splitlines()):
        buffers = re.search(r"rt\.buffers = \[((?:#rt\.at<[^>]*>(?:, )?)*)\]", line)
        found = re.findall(r"#rt\.at<([^>]*)>", buffers[1])
        if len(found) != len(types):
            fail(f"{len(found)} places of {len(types)} results", line)
        for place, type_ in zip(found, types):
            if place == "none" or re.fullmatch(r"input \d+|control", place):
                continue
            at = re.fullmatch(rf"({SPACES}) (\d+)(?:, \[([\d, ]*)\])?", place)
            if not at:
                fail(f"'{place}' is no known place", line)
            strides = [int(each) for each in (at[3] or "").split(",") if each.strip()]
            is_view = bool(strides) or op.startswith(VIEWS)
            places += not is_view
            views += is_view
            sizes, size = parsed(type_, line)
            if (full or not is_view) and int(at[2]) % 16:
                fail(f"{at[1]} {at[2]} is no multiple of 16", line)
            for stride in strides if full else ():
                if stride > 1 and stride * size % 16:
                    fail(f"rows {stride} elements of {size} bytes apart", line)
            if not strides and math.prod(sizes[:-1]) > 1 and sizes[-1] * size % 16:
                odd[type_.partition(",")[0]] += 1
    if places <= 50:
        sys.exit("the module has no places")
    print(f"{places} tensors and {views} views, aligned")
    if full:
        print(f"dense rows: all but those of {', '.join(sorted(odd)) or 'none'}")


if __name__ == "__main__":
    main()
