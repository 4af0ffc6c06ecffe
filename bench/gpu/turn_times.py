#!/usr/bin/env python3
"""How busy multiprocessors are while blocks take turns in attention's backward pass: an event model of
attention_joint.cuh, without a GPU.

    bench/gpu/turn_times.py HEADS KEYS QUERIES GROUPS DIM [--full]    # heads of keys; causal unless --full

A block computes a tile of keys, step by step, a tile of queries each. A step takes one unit of time. After a quarter of it, it needs
what the item of the tile of keys before has added to its tile of queries, and others see its own a third of a step after its end.
Both are guesses: no GPU has been measured.
"""

import heapq
import sys

NEEDS, SEEN = 0.25, 1 / 3  # steps
MULTIPROCESSORS, KEYS_OF_TILE = 132, 128


def items_in_order(heads, tiles, together):
    """Yields (head, tile of keys) as blocks draw them."""
    for first in range(0, heads, together):
        for tile in range(tiles):
            for head in range(first, min(first + together, heads)):
                yield head, tile


def places_of(tile, queries, keys, rows, groups, causal):
    """Returns the tiles of queries, per head of the group, that pass a tile of keys, in their order."""
    first = max(0, tile * KEYS_OF_TILE - (keys - queries)) // rows if causal else 0
    return [(query, head) for query in reversed(range(first, -(-queries // rows))) for head in reversed(range(groups))]


def busy(heads, keys, queries, groups, dim, slots, together, causal=True, blocks=MULTIPROCESSORS):
    """Returns the part of all blocks' time in which they compute. heads: of keys."""
    rows, tiles = (128 if dim == 64 else 64), -(-keys // KEYS_OF_TILE)
    free = [(0.0, block) for block in range(min(blocks, heads * tiles))]
    added, done, steps, last = [{} for _ in range(heads)], [0.0] * heads, 0, 0.0
    for head, tile in items_in_order(heads, tiles, together):
        time, block = heapq.heappop(free)
        slot_is_free = done[head - slots] if head >= slots else 0.0
        seen = {}
        for place in places_of(tile, queries, keys, rows, groups, causal):
            time = max(time, added[head].get(place, slot_is_free) - NEEDS) + 1
            seen[place] = time + SEEN
            steps += 1
        added[head].update(seen)
        done[head] = max(done[head], time + SEEN)
        last = max(last, time)
        heapq.heappush(free, (time, block))
    return steps / (blocks * last)


def slots_of(heads, keys, queries, groups, dim):
    """Returns attentionTurnSlots of workspaces.h, 0 if it is by tiles, and the heads that alternate."""
    rows, tiles = (128 if dim == 64 else 64), -(-keys // KEYS_OF_TILE)
    if heads * tiles < 2 * MULTIPROCESSORS:
        return 0, 0
    cached = (40 << 20) // (4 * groups * -(-queries // rows) * rows * dim)
    slots = min(heads, max(cached, -(-2 * MULTIPROCESSORS // tiles)))
    return slots, heads if slots == heads else max(1, slots // 2)


def main():
    numbers = [each for each in sys.argv[1:] if each.isdigit()]
    if len(numbers) != 5 or len(sys.argv) - 1 - len(numbers) != ("--full" in sys.argv):
        sys.exit(__doc__.strip())
    shape = [int(each) for each in numbers]
    slots, together = slots_of(*shape)
    if not slots:
        sys.exit("fewer than two tiles of keys for each multiprocessor: by tiles")
    print(f"{slots} slots, {together} heads together: {busy(*shape, slots, together, '--full' not in sys.argv):.2f} busy")


if __name__ == "__main__":
    main()
