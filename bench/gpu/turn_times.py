#!/usr/bin/env python3
"""How busy multiprocessors are while blocks take turns in attention's backward pass: an event model of
attention_joint.cuh, without a GPU.

    bench/gpu/turn_times.py HEADS KEYS QUERIES GROUPS DIM [--full] [--mma BLOCKS]    # heads of keys; causal unless --full

A block computes a tile of keys, step by step, a tile of queries each. A step takes one unit of time. After a part of it, it needs what
the item of the tile of keys before has added to its tile of queries, and others see its own some time after its end: see Form, by warp
groups or, with --mma, by mma.sync with as many blocks at once. Both are guesses: no GPU has been measured.
"""

import argparse
import collections
import heapq
import sys

MULTIPROCESSORS, KEYS_OF_TILE, CACHE = 132, 128, 40 << 20
# Rows: queries of a tile. When a step needs others' terms, from its beginning, and others see its own, from its end, in steps.
Form = collections.namedtuple("Form", "keys rows needs seen")


def by_groups(dim):
    return Form(KEYS_OF_TILE, 128 if dim == 64 else 64, 0.25, 1 / 3)


def by_mma(dim):
    """Terms are announced when the next step needs others' (attention_mma_joint_backward.cu), after the scores of its first part."""
    return Form(128, 64, 0.4, 0.5) if dim == 64 else Form(64, 64, 0.7, 0.8)


def items_in_order(heads, tiles, together):
    """Yields (head, tile of keys) as blocks draw them."""
    for first in range(0, heads, together):
        for tile in range(tiles):
            for head in range(first, min(first + together, heads)):
                yield head, tile


def places_of(tile, queries, keys, form, groups, causal):
    """Returns the tiles of queries, per head of the group, that pass a tile of keys, in their order."""
    first = max(0, tile * form.keys - (keys - queries)) // form.rows if causal else 0
    return [(query, head) for query in reversed(range(first, -(-queries // form.rows))) for head in reversed(range(groups))]


def busy(heads, keys, queries, groups, dim, slots, together, causal=True, blocks=MULTIPROCESSORS, form=None):
    """Returns the part of all blocks' time in which they compute. heads: of keys."""
    form = form or by_groups(dim)
    tiles = -(-keys // form.keys)
    free = [(0.0, block) for block in range(min(blocks, heads * tiles))]
    added, done, steps, last = [{} for _ in range(heads)], [0.0] * heads, 0, 0.0
    for head, tile in items_in_order(heads, tiles, together):
        time, block = heapq.heappop(free)
        slot_is_free = done[head - slots] if head >= slots else 0.0
        seen = {}
        for place in places_of(tile, queries, keys, form, groups, causal):
            time = max(time, added[head].get(place, slot_is_free) - form.needs) + 1
            seen[place] = time + form.seen
            steps += 1
        added[head].update(seen)
        done[head] = max(done[head], time + form.seen)
        last = max(last, time)
        heapq.heappush(free, (time, block))
    return steps / (blocks * last)


def bytes_of_sums(queries, groups, dim):
    """Returns those of attentionHeadSums of workspaces.h."""
    rows = by_groups(dim).rows
    return 4 * groups * -(-queries // rows) * rows * dim


def together_of(heads, slots):
    """Returns the heads that alternate (beginTurns in attention_joint.cuh)."""
    return heads if slots == heads else max(1, slots // 2)


def slots_of(heads, keys, queries, groups, dim):
    """Returns attentionTurnSlots of workspaces.h, 0 if it is by tiles, and the heads that alternate."""
    tiles = -(-keys // KEYS_OF_TILE)
    if heads * tiles < 2 * MULTIPROCESSORS:
        return 0, 0
    cached = CACHE // bytes_of_sums(queries, groups, dim)
    slots = min(heads, max(cached, -(-2 * MULTIPROCESSORS // tiles)))
    return slots, together_of(heads, slots)


def head_blocks(heads, queries, groups, dim):
    """Returns attentionHeadBlocks of workspaces.h."""
    blocks = min(heads, MULTIPROCESSORS)
    fills = 8 * heads >= 7 * -(-heads // MULTIPROCESSORS) * MULTIPROCESSORS
    return blocks if fills and blocks * bytes_of_sums(queries, groups, dim) <= CACHE else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("heads", "keys", "queries", "groups", "dim"):
        parser.add_argument(name, type=int)
    parser.add_argument("--full", action="store_true", help="not causal")
    parser.add_argument("--mma", type=int, metavar="BLOCKS", help="by mma.sync, with so many blocks at once")
    arguments = parser.parse_args()
    shape = arguments.heads, arguments.keys, arguments.queries, arguments.groups, arguments.dim
    if min(*shape, 1 if arguments.mma is None else arguments.mma) < 1:
        parser.error("numbers must be above 0")
    if arguments.dim not in (64, 128):
        parser.error("heads have 64 or 128 elements; others are by tiles")
    slots, together = slots_of(*shape)
    heads = head_blocks(arguments.heads, arguments.queries, arguments.groups, arguments.dim)
    if heads and arguments.mma is None:
        sys.exit("by heads: no block waits")
    if heads:
        slots, together = heads, together_of(arguments.heads, heads)
    if not slots:
        sys.exit("fewer than two tiles of keys for each multiprocessor: by tiles")
    form, blocks = (by_groups(arguments.dim), MULTIPROCESSORS) if arguments.mma is None else (by_mma(arguments.dim), arguments.mma)
    part = busy(*shape, slots, together, not arguments.full, blocks, form)
    few = arguments.mma is not None and slots * -(-arguments.keys // form.keys) < 4 * MULTIPROCESSORS  # attentionMmaSlots
    print(f"{slots} slots, {together} heads together: {part:.2f} busy{'; programs go by tiles' if few else ''}")


if __name__ == "__main__":
    main()
