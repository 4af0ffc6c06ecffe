"""Prints a model with skip connections over blocks, before its layers are found: skips.py KIND BLOCKS MICRO_BATCHES

A block is two residual sums, as in a Transformer. KIND is one of
  plain   none
  long    the second block's output is added before the last but one, the embedding before the head
  u       block i's output is joined with the stream before block n - 1 - i, and projected (U-ViT)
  norm    as u, but both values have a norm of their own before they are joined
  linear  block i's output goes through a norm and a projection of its own and is added before block n - 1 - i (U-Net)
  gate    as linear, but it is multiplied by a gate that depends on the stream
  sum     the outputs of all blocks are added one after the other, and the sum is projected
  twice   what a block begins with is added to its output: a sum within a layer
  uneven  as long, but no two blocks are equal
  part    the first four blocks are equal, the others are not, and a skip connection is over two of these
  mask    none, but every block reads a narrow value that depends on the input
u, norm, linear and gate have a block in the middle, u-even and so on have none: the innermost skip connection is over no block.
"""
import sys

import stack

WIDTH, ROWS, TOKENS = 4, 8, 3
VALUE, WIDE = f"tensor<{TOKENS}x{WIDTH}xf32>", f"tensor<{TOKENS}x{2 * WIDTH}xf32>"
MATRIX, TALL, TABLE = f"tensor<{WIDTH}x{WIDTH}xf32>", f"tensor<{2 * WIDTH}x{WIDTH}xf32>", f"tensor<{ROWS}x{WIDTH}xf32>"
MASKED = f"tensor<{TOKENS}x{WIDTH + 2}xf32>"
VECTOR = f"tensor<{WIDTH}xf32>"
IDS, LOGITS = f"tensor<{TOKENS}xi64>", f"tensor<{TOKENS}x{ROWS}xf32>"


FUNCTIONS = ["silu", "relu", "sigmoid", "gelu", "exp", "neg", "sqrt"]


class Model:
    def __init__(self):
        self.parameters, self.body = {}, []

    def weight(self, name, type):
        self.parameters[name] = type
        return f"%{name}"

    def op(self, name, text, results=""):
        self.body.append(f'%{name}{results} = {text} loc("{name}")')
        return f"%{name}" + "#0" * bool(results)

    def add(self, name, a, b):
        return self.op(name, f"tx.add {a}, {b} : ({VALUE}, {VALUE}) -> {VALUE}")

    def branch(self, name, x, function):
        """A matmul and what depends on its result, around which the stream goes."""
        y = self.op(f"{name}_matmul", f"tx.matmul {x}, {self.weight('w_' + name, MATRIX)} : ({VALUE}, {MATRIX}) -> {VALUE}")
        return self.add(name, x, self.op(f"{name}_{function}", f"tx.{function} {y} : ({VALUE}) -> {VALUE}"))

    def norm(self, name, x):
        gain = self.weight(f"g_{name}", VECTOR)
        return self.op(name, f"tx.rms_norm {x}, {gain} eps 1.0e-2 : ({VALUE}, {VECTOR}) -> ({VALUE}, tensor<{TOKENS}xf32>)", ":2")

    def joined(self, name, x, skipped):
        both = self.op(f"{name}_joined", f"tx.concat {x}, {skipped} along 1 : ({VALUE}, {VALUE}) -> {WIDE}")
        return self.op(name, f"tx.matmul {both}, {self.weight('w_' + name, TALL)} : ({WIDE}, {TALL}) -> {VALUE}")


def build(kind, blocks):
    kind, even = kind.removesuffix("-even"), kind.endswith("-even")
    model = Model()
    x = model.op("embedded", f"tx.embedding {model.weight('table', TABLE)}, %ids : ({TABLE}, {IDS}) -> {VALUE}")
    outputs = [x]
    if kind == "mask":
        narrow = f"tensor<{ROWS}x2xf32>"
        mask = model.op("mask", f"tx.embedding {model.weight('narrow', narrow)}, %ids : ({narrow}, {IDS}) -> tensor<{TOKENS}x2xf32>")
    for block in range(blocks):
        differs = kind == "uneven" or (kind == "part" and block >= 4)
        function = FUNCTIONS[block % len(FUNCTIONS)] if differs else "relu"
        if kind in ("long", "uneven") and block == blocks - 2:
            x = model.add("skip", x, outputs[2])
        if kind == "part" and block == 7:
            x = model.add("skip", x, outputs[5])
        if kind in ("u", "norm", "linear", "gate") and block > blocks // 2 - even:
            skipped = outputs[blocks - block]
            if kind in ("norm", "linear"):
                skipped = model.norm(f"own{block}", skipped)
            if kind == "norm":
                x = model.norm(f"other{block}", x)
            if kind == "linear":
                matrix = model.weight(f"w_own{block}", MATRIX)
                projected = model.op(f"projected{block}", f"tx.matmul {skipped}, {matrix} : ({VALUE}, {MATRIX}) -> {VALUE}")
                x = model.add(f"skip{block}", x, projected)
            elif kind == "gate":
                matrix = model.weight(f"w_gate{block}", MATRIX)
                y = model.op(f"gate{block}_matmul", f"tx.matmul {x}, {matrix} : ({VALUE}, {MATRIX}) -> {VALUE}")
                gate = model.op(f"gate{block}", f"tx.sigmoid {y} : ({VALUE}) -> {VALUE}")
                gated = model.op(f"gated{block}", f"tx.mul {gate}, {skipped} : ({VALUE}, {VALUE}) -> {VALUE}")
                x = model.add(f"skip{block}", x, gated)
            else:
                x = model.joined(f"skip{block}", x, skipped)
        before = x
        if kind == "mask":
            y = model.op(f"y{block}", f"tx.matmul {x}, {model.weight(f'w_y{block}', MATRIX)} : ({VALUE}, {MATRIX}) -> {VALUE}")
            both = model.op(f"both{block}", f"tx.concat {y}, {mask} along 1 : ({VALUE}, tensor<{TOKENS}x2xf32>) -> {MASKED}")
            masked = model.weight(f"w_both{block}", f"tensor<{WIDTH + 2}x{WIDTH}xf32>")
            y = model.op(f"z{block}", f"tx.matmul {both}, {masked} : ({MASKED}, tensor<{WIDTH + 2}x{WIDTH}xf32>) -> {VALUE}")
            x = model.add(f"m{block}", x, y)
        else:
            x = model.branch(f"b{block}", model.branch(f"a{block}", x, "tanh"), function)
        if kind == "twice":
            x = model.add(f"c{block}", x, before)
        outputs.append(x)
    if kind in ("long", "uneven"):
        x = model.add("last", x, outputs[0])
    if kind == "sum":
        x = outputs[1]
        for block in range(2, blocks + 1):
            x = model.add(f"sum{block}", x, outputs[block])
    model.op("logits", f"tx.matmul {x}, {model.weight('head', MATRIX.replace(f'{WIDTH}x{WIDTH}', f'{WIDTH}x{ROWS}'))} : "
             f"({VALUE}, tensor<{WIDTH}x{ROWS}xf32>) -> {LOGITS}")
    return model


def program(kind, blocks, micro_batches):
    model = build(kind, blocks)
    return stack.functions(model.parameters, model.body, IDS, LOGITS, micro_batches)


if __name__ == "__main__":
    print("\n".join(program(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
