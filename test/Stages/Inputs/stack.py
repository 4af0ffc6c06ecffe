"""A model of any number of layers, as the compiler has it before it is partitioned: stack.py LAYERS MICRO_BATCHES

An embedding and a head with one table, layers with residuals in between, and the first layer's result again in the last
layer but one: values that several chunks and stages share and pass on. Layers are marked, so that each is one.
"""
import sys


def functions(parameters, body, ids, logits, micro_batches, at=""):
    """The parameters, @forward and @train_step of a body that computes %logits from %ids. `parameters`: types by name; `at`: attributes of
    the objective's ops."""
    reads = [f"%{name} = train.read @{name} : {type}" for name, type in parameters.items()]
    yield from (f"train.parameter @{name} : {type} fill(<0.0, normal 0.5>)" for name, type in parameters.items())
    yield f"func.func @forward(%ids: {ids}) -> {logits} attributes {{train.entry_point = #train.entry_point<forward>}} {{"
    yield from reads + body
    yield f"return %logits : {logits}"
    yield "}"
    batch = ids.replace("<", f"<{micro_batches}x")
    yield f"func.func @train_step(%all: {batch}) -> tensor<f32> attributes {{train.entry_point = #train.entry_point<train_step>}} {{"
    yield from reads
    yield f"%loss = train.accumulate (%ids = %all) : ({batch}) -> tensor<f32> {{"
    yield from body
    yield f"%squashed = tx.tanh %logits {at}: ({logits}) -> {logits}"
    yield f"%part = tx.reduce_sum %squashed [0, 1] {at}: {logits} -> tensor<f32>"
    yield "train.yield %part : tensor<f32>"
    yield "}"
    yield "train.minimize %loss : tensor<f32>"
    yield "return %loss : tensor<f32>"
    yield "}"


def program(layers, micro_batches):
    width, rows, tokens = 4, 8, 3
    value, matrix, table = (f"tensor<{size}xf32>" for size in (f"{tokens}x{width}", f"{width}x{width}", f"{rows}x{width}"))
    logits = f"tensor<{tokens}x{rows}xf32>"
    ids = f"tensor<{tokens}xi64>"

    def at(layer):
        return f"{{train.layer = #train.layer<{layer} of {layers}>}}"

    def body():
        yield f"%x0 = tx.embedding %table, %ids {at(-1)} : ({table}, {ids}) -> {value}"
        for layer in range(layers):
            yield f"%m{layer} = tx.matmul %x{layer}, %w{layer} {at(layer)} : ({value}, {matrix}) -> {value}"
            yield f"%t{layer} = tx.tanh %m{layer} {at(layer)} : ({value}) -> {value}"
            last = f"%r{layer}" if layer == layers - 2 else f"%x{layer + 1}"
            yield f"{last} = tx.add %x{layer}, %t{layer} {at(layer)} : ({value}, {value}) -> {value}"
            if layer == layers - 2:
                yield f"%x{layer + 1} = tx.add {last}, %t0 {at(layer)} : ({value}, {value}) -> {value}"
        yield f"%turned = tx.transpose %table [1, 0] {at(-2)} : {table} -> tensor<{width}x{rows}xf32>"
        yield f"%logits = tx.matmul %x{layers}, %turned {at(-2)} : ({value}, tensor<{width}x{rows}xf32>) -> {logits}"

    parameters = {"table": table, **{f"w{layer}": matrix for layer in range(layers)}}
    return functions(parameters, list(body()), ids, logits, micro_batches, at(-2) + " ")


if __name__ == "__main__":
    print("\n".join(program(int(sys.argv[1]), int(sys.argv[2]))))
