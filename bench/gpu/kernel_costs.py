"""The work and traffic of each kernel of a training step, from its launch's arguments: elements, bytes, FLOPs.

Each row of KERNELS is a kernel's name without template arguments. The shapes are those of the launch; bytes
are what must be read and written once, even if it stays in a cache for the next kernel.
"""

import dataclasses
import re
from typing import Callable, Optional

import sass
import turn_times

SIZES = {"partita_rt::BFloat16": 2, "partita_rt::Half": 2, "float": 4, "double": 8, "long": 8, "int": 4,
         "unsigned char": 1, "unsigned short": 2, "unsigned int": 4, "unsigned long": 8}


class Launch:
    """A recorded launch, with its instance's template arguments."""

    def __init__(self, line):
        self.symbol, self.grid, self.block = line["symbol"], line["grid"], line["block"]
        self.shared, self.arguments = line["shared"], line["arguments"]
        name, _, rest = self.symbol.replace("(anonymous namespace)", "anonymous").partition("<")
        self.name = name.split("(")[0].split("::")[-1]
        self.instance = rest[:rest.rfind(">(")] if rest else ""

    def __getitem__(self, number):
        return self.arguments[number]

    def threads(self):
        return self.block[0] * self.block[1] * self.block[2]

    def blocks(self):
        return self.grid[0] * self.grid[1] * self.grid[2]

    def first_type(self):
        """Returns the bytes per element of the first template argument."""
        return SIZES[top_level(self.instance)[0]]


def top_level(text):
    """Splits template arguments at the outermost commas."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


class Operand:
    """partita_rt::cuda::Operand<T, step, outer, updated> of emitted kernels."""

    def __init__(self, text):
        type_, self.step, self.outer, updated = top_level(re.search(r"Operand<(.*)>", text)[1])
        self.size = SIZES[type_.removesuffix(" const")]
        self.moves = 1 if type_.endswith(" const") else 2 if updated == "true" else 1


def operands_of(launch):
    return [Operand(each) for each in top_level(launch.instance) if "::Operand<" in each]


# Emitted kernels, and elementwise ones.

def map_sizes(launch):
    loops = int(top_level(launch.instance)[1])
    return [size & 0xffffffffffffffff for size in launch[0][0:2 * loops:2]]


def map_elements(launch):
    product = 1
    for size in map_sizes(launch):
        product *= size
    return product


def map_bytes(launch):
    """An operand with a stride of 0 in an outer loop is read once for all of that loop's rows."""
    total = 0
    for operand, words in zip(operands_of(launch), launch.arguments[3:]):
        elements = map_sizes(launch)[-1] if operand.step == "1" else 1
        for size, stride in zip(map_sizes(launch)[:-1], words[1:1 + int(operand.outer)]):
            elements *= size if stride else 1
        total += elements * operand.size * operand.moves
    return total


def of_types(count):
    return lambda types: sum(SIZES[each] for each in types[:count])


BODIES = {"Iota": of_types(1), "Fill": of_types(1), "Convert": of_types(2),
          "Accumulate": lambda types: 2 * SIZES[types[0]] + SIZES[types[1]]}


def elementwise_bytes(launch):
    body = re.fullmatch(r"(?:\w+::)*(\w+)<(.*?)>", top_level(launch.instance)[1])
    if not body or body[1] not in BODIES:
        raise sass.Problem(f"kernel_costs.py does not know the bytes of elementwise<{launch.instance}>")
    return launch[0] * BODIES[body[1]](top_level(body[2]))


# Rows.

def norm_backward_bytes(launch):
    rows, width = launch[3][4:6]
    reads = 2 + (launch[5] == 1)  # dy, x, and dx if it is added to
    return rows * width * launch.first_type() * (reads + 1) + 8 * rows + 4 * launch[2] * launch.grid[0] * width


FORWARD_SHAPE, BACKWARD_SHAPE = 17, 34  # words before the shape in Forward and in PreparedBackward


def attention_shape(launch, first):
    """Returns (batch * heads, sequence, keys, dim, groups, causal) from the call's AttentionShape."""
    batch, heads, sequence, keys, dim, value_dim, groups, flags = launch[0][first:first + 8]
    plan = int(re.search(r"(?:Group|Joint)Plan<(\d+)", launch.instance)[1])
    if {dim, value_dim} != {plan}:
        raise sass.Problem(f"{launch.name}: heads of {dim} by its arguments, of {plan} by its template: kernel_costs.py reads another word")
    return batch * heads, sequence, keys, dim, groups, bool(flags & 1)


def attention_flops(first, matmuls):
    """Returns the FLOPs of a number of matmuls of queries and keys; if causal half of them, as everywhere."""
    def flops(launch):
        heads, sequence, keys, dim, _, causal = attention_shape(launch, first)
        return matmuls * 2 * heads * sequence * keys * dim / (2 if causal else 1)
    return flops


def attention_bytes(first, of_queries, of_keys, numbers):
    """Returns the bytes of a number of arrays of [heads, sequence, dim], of keys, and of floats per query."""
    def bytes_(launch):
        heads, sequence, keys, dim, groups, _ = attention_shape(launch, first)
        rows = of_queries * heads * sequence + of_keys * heads // groups * keys
        return rows * dim * launch.first_type() + 4 * numbers * heads * sequence
    return bytes_


def attention_rows(launch):
    """Returns the queries of all heads."""
    batch, heads, sequence = launch[0][BACKWARD_SHAPE:BACKWARD_SHAPE + 3]
    return batch * heads * sequence


def scores(first):
    def elements(launch):
        heads, sequence, keys, _, _, causal = attention_shape(launch, first)
        return heads * sequence * keys // (2 if causal else 1)
    return elements


def pointer(number):
    """Returns the value of a pointer argument in a trace: separate memory, aligned to anything."""
    return number + 1 << 33


# Values of loads that loops or branches depend on.

def rows_of_updates(launch):
    """Returns a table of one endless tensor: its first block is 0, all other numbers of both arguments are
    2^48."""
    rows, first_blocks = pointer(0), pointer(1)
    return lambda address: 1 << 16 if rows <= address < pointer(2) and address % 8 == 4 and address != first_blocks + 4 else 0


def distinct(launch):
    """Returns distinct ids: embeddings of random tokens hardly repeat."""
    return lambda address: 1 << 20 | address // 4 & 0x7ffff


@dataclasses.dataclass
class Cost:
    group: str
    elements: Callable
    bytes: Callable
    flops: Optional[Callable] = None
    memory: Optional[Callable] = None
    items: Optional[Callable] = None  # Items that blocks draw, or None


def attention(group, first, matmuls, of_queries, of_keys, numbers):
    return Cost(group, scores(first), attention_bytes(first, of_queries, of_keys, numbers), attention_flops(first, matmuls))


@dataclasses.dataclass
class Items:
    """What the blocks of a launch draw, one after another."""
    count: int
    alike: list  # numbers of some that stand for all
    busy: float  # the part of the multiprocessors' time in which blocks do not wait


def is_by_turns(launch):
    """Do the blocks of a joint backward pass take turns (kTurns, its last template argument)?"""
    return top_level(launch.instance)[-1] == "true"


def items_of_turns(launch):
    """Returns the Items of a joint backward pass by turns (Turns in attention_joint.cuh): tiles of keys, alike in all heads;
    None by heads."""
    if not is_by_turns(launch):
        return None
    heads, queries, keys, dim, groups, causal = attention_shape(launch, BACKWARD_SHAPE)
    slots, together = launch[2][1] & 0xffffffff, launch[2][1] >> 32
    tiles = -(-keys // turn_times.KEYS_OF_TILE)
    busy = turn_times.busy(heads // groups, keys, queries, groups, dim, slots, together, causal, launch.blocks())
    return Items(heads // groups * tiles, [tile * together for tile in range(tiles)], busy)


def joint_bytes(launch):
    """Returns the bytes of a joint backward pass; by turns, another kernel has read the forward pass's results."""
    of_queries, numbers = (3, 2) if is_by_turns(launch) else (4, 3)
    return attention_bytes(BACKWARD_SHAPE, of_queries, 4, numbers)(launch)


def one_item(number):
    """Returns the shared memory of a block that draws one item: what the thread loads first. What it loads later from other
    threads is beyond all items, or a float whose value does not count."""
    loads = iter([number])
    return lambda address: next(loads, 1 << 30)


def update_bytes(launch):
    return launch[2] * BLOCK * sum(each.size * each.moves for each in operands_of(launch))


def number(*factors):
    """Returns the product of arguments."""
    def product(launch):
        result = 1
        for factor in factors:
            result *= launch[factor]
        return result
    return product


def quantize_tiles_bytes(launch):
    """Rows if there are any, the transpose, and partial sums if there are any."""
    rows, width = launch[6], launch[7]
    written = 1 + (launch[0] == "*")
    partials = 4 * -(-rows // 128) * width if top_level(launch.instance)[0] == "true" else 0
    return rows * width * (SIZES[top_level(launch.instance)[2]] + written) + partials


def quantize_packs_bytes(launch):
    return launch[4] * sum(SIZES.get(each, 1) for each in top_level(launch.instance)[1:])


def tiles_elements(launch):
    """Returns the elements of all outer rows of two loops, whose first words are their sizes."""
    return launch[3][0] * launch[4][0] * launch.grid[2]


def of_blocks(per_block):
    return lambda launch: launch.blocks() * per_block


def tiny(group):
    return Cost(group, lambda launch: 1, lambda launch: 64)


FORWARD, BACKWARD, LOSS = "attention forward", "attention backward", "cross-entropy and its gradient"
QUANTIZATION = "quantization to 8 bits"
SUMS, ADAMW, OTHERS = "gradients of biases and of norms", "AdamW", "embeddings, norm of the gradients, others"
BLOCK = 4096  # kSquareSumBlock

KERNELS = {
    "forwardByGroups": attention(FORWARD, FORWARD_SHAPE, matmuls=2, of_queries=2, of_keys=2, numbers=1),
    # The sums of dq, which stay in the L2 cache, are not counted.
    "jointGradients": Cost(BACKWARD, scores(BACKWARD_SHAPE), joint_bytes, attention_flops(BACKWARD_SHAPE, matmuls=5), items=items_of_turns),
    # Of a joint pass by turns.
    "prepareQueries": Cost(BACKWARD, lambda l: attention_rows(l) * l[0][BACKWARD_SHAPE + 5],
                           lambda l: attention_rows(l) * (2 * l[0][BACKWARD_SHAPE + 5] * l.first_type() + 12)),
    "clearCounters": tiny(BACKWARD),
    # One of five matmuls is dQ's kernel's alone: scores and their gradients are counted with the keys'.
    "queryGradientsByGroups": attention(BACKWARD, BACKWARD_SHAPE, matmuls=1, of_queries=4, of_keys=2, numbers=3),
    "keyGradientsByGroups": attention(BACKWARD, BACKWARD_SHAPE, matmuls=4, of_queries=2, of_keys=4, numbers=2),
    "crossEntropyOfHeldRows": Cost(LOSS, lambda l: l.grid[0] * l[5], lambda l: 2 * l.first_type() * l.grid[0] * l[5]),
    "reduceRows": Cost(LOSS, number(2, 3, 4), lambda l: 4 * l[2] * l[3] * l[4]),
    "normForward": Cost("layer norm forward", number(6, 7), lambda l: l[6] * (2 * l[7] * l.first_type() + 8)),
    "normBackward": Cost("layer norm backward", lambda l: l[3][4] * l[3][5], norm_backward_bytes),
    "addPartials": Cost(SUMS, lambda l: l[2] * l[3] * l.grid[1], lambda l: 4 * l[2] * l[3] * l.grid[1]),
    "partialSums": Cost(SUMS, number(2, 3), lambda l: l[2] * l[3] * l.first_type() + 4 * l.grid[1] * l[3]),
    "sumFewRows": Cost(SUMS, number(2, 3), lambda l: l.grid[2] * l[3] * (l[2] * SIZES[top_level(l.instance)[1]] + l.first_type())),
    "quantizeTiles": Cost(QUANTIZATION, number(6, 7), quantize_tiles_bytes),
    "quantizePacks": Cost(QUANTIZATION, number(4), quantize_packs_bytes),
    "updateTensors": Cost(ADAMW, lambda l: l[2] * BLOCK, update_bytes, memory=rows_of_updates),
    "sumBlocks": Cost(OTHERS, of_blocks(BLOCK), lambda l: l.blocks() * (BLOCK * l.first_type() + 8)),
    "addBlocks": Cost(OTHERS, number(3), lambda l: 8 * l[3]),
    "copyRowsFrom": Cost(OTHERS, number(1, 2), lambda l: 2 * l.first_type() * l[1] * l[2]),
    "addToRows": Cost(OTHERS, number(4, 5), lambda l: l.first_type() * (2 * l[4] + l[3][0]) * l[5]),
    "mapPacks": Cost(OTHERS, map_elements, map_bytes),
    "copyElements": Cost(OTHERS, number(3), lambda l: 2 * l.first_type() * l[3]),
    "rotaryHalves": Cost(OTHERS, lambda l: 2 * l[2] * l[3], lambda l: 4 * SIZES[top_level(l.instance)[1]] * l[2] * l[3]),
    "transposeTiles": Cost(OTHERS, tiles_elements, lambda l: 2 * l.first_type() * tiles_elements(l)),
    "copyStridedRows": Cost(OTHERS, number(3, 4), lambda l: 2 * l.first_type() * l[3] * l[4]),
    "elementwise": Cost(OTHERS, number(0), elementwise_bytes),
    "listAdditions": Cost(OTHERS, number(2), lambda l: 16 * l[2]),
    "countDigits": Cost(OTHERS, number(2), lambda l: 4 * l[2]),
    "scanCounts": Cost(OTHERS, number(1), lambda l: 8 * l[1]),
    "scatterDigits": Cost(OTHERS, number(3), lambda l: 16 * l[3]),
    "sumTiles": Cost(OTHERS, number(4, 5), lambda l: 3 * l.first_type() * l[4] * l[5], memory=distinct),
    "joinTiles": Cost(OTHERS, number(3), lambda l: 4 * l[3], memory=distinct),
    "maxColumns": Cost(OTHERS, number(2, 3, 4), lambda l: l[2] * l[4] * (l[3] + 1) * l.first_type()),
    "countLabelsOnce": Cost(OTHERS, number(2), lambda l: 8 * l[2]),
    "addScalars": tiny(OTHERS), "findNonfinite": tiny(OTHERS), "writeField": tiny(OTHERS), "computeClipScale": tiny(OTHERS),
    "divide": tiny(OTHERS), "testFinite": tiny(OTHERS), "computeScale": tiny(OTHERS),
    "writeStepNumber": tiny(OTHERS),
}


def cost_of(launch):
    if launch.name not in KERNELS:
        raise sass.Problem(f"the program launches {launch.name}, which kernel_costs.py has no row for")
    return KERNELS[launch.name]


# Matmuls, which are cuBLASLt's: their code is not read.

def matmul_flops(line):
    m, n, k = line["matmul"]
    return 2 * m * n * k * line["batch"]


GELU_AUX = 128  # the bit of an epilogue that reads or writes an auxiliary matrix of D's shape


def matmul_output_bytes(line):
    m, n, _ = line["matmul"]
    return m * n * line["batch"] * line["bytes"][2] * (1 + line["adds"] + bool(line["epilogue"] & GELU_AUX))


def matmul_bytes(line):
    m, n, k = line["matmul"]
    return line["batch"] * (m * k * line["bytes"][0] + k * n * line["bytes"][1]) + matmul_output_bytes(line)
