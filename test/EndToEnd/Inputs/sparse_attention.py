"""sparse_attention.py FOLDER: programs with --sparse-attention train like dense ones whose model has the layout's mask, in every mode,
also for GPUs (on the simulated one of test/Support) and with sequences split over a ring of ranks.

The masks are built here from the definitions of DeepSpeed's SparsityConfig classes, block by block."""
import sys

import numpy

import checkpoints  # noqa: E402
import masked_model  # noqa: E402
from commands import build_for_simulated_gpu, call  # noqa: E402
from tensor_files import write_tensors  # noqa: E402

folder = sys.argv[1]
random = numpy.random.default_rng(1)
BATCH, LENGTH, WIDTH, VOCABULARY, HEADS, LAYERS, BLOCK = 4, 32, 16, 32, 4, 2, 4
BLOCKS = LENGTH // BLOCK


def mix64(x):
    x = (x + 0x9E3779B97F4A7C15) % 2**64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % 2**64
    return x ^ (x >> 31)


def drawn(layout, head, count, seed):
    """Random columns of each row: a sample without repetition (Floyd's algorithm) of numbers that depend on seed, head and row."""
    key = mix64(mix64(seed) + head)
    for row in range(BLOCKS):
        columns = []
        for last in range(BLOCKS - count, BLOCKS):
            column = mix64(key + row * BLOCKS + last) % (last + 1)
            columns.append(last if column in columns else column)
        layout[row, columns] = True


def fixed(head):  # attention=unidirectional, four patterns
    layout = numpy.zeros((BLOCKS, BLOCKS), bool)
    for i in range(BLOCKS):
        layout[i, i // 4 * 4:i + 1] = True
    for first in range(3 - head % 4, BLOCKS, 4):
        layout[first:, first] = True
    return layout


def variable(head):  # windows 1 2 2 ..., global blocks 5 and 6 with rows, one random block
    window = [0, 1, 1, 2, 2, 3, 3, 4]
    layout = numpy.array([[a == b for b in window] for a in window])
    layout[:, 5:7] = layout[5:7] = True
    drawn(layout, 0, 1, 3)
    return layout


def sliding(width, before, after):
    return numpy.array([[-before <= j - i <= after for j in range(width)] for i in range(width)])


def bigbird(head):
    layout = sliding(BLOCKS, 1, 1)
    layout[0] = layout[:, 0] = True
    drawn(layout, head, 2, 5)
    return layout


def bslongformer(head):
    layout = sliding(BLOCKS, 2, 2)
    layout[3] = layout[:, 3] = True
    return layout


# name: option, the layout of a head, whether the model is causal, more options of both programs
CASES = {
    "fixed": ("mode=fixed,attention=unidirectional,different_layout_per_head=true,num_different_global_patterns=4", fixed, True, ["--mesh", "tp=2"]),
    "variable": ("mode=variable,local_window_blocks=1:2,global_block_indices=5,global_block_end_indices=7,num_random_blocks=1,"
                 "horizontal_global_attention=true,seed=3", variable, False, ["--mesh", "dp=2"]),
    "bigbird": ("mode=bigbird,num_random_blocks=2,different_layout_per_head=true,seed=5", bigbird, True, ["--mesh", "dp=2,tp=2"]),
    "bslongformer": ("mode=bslongformer,num_sliding_window_blocks=5,global_block_indices=3", bslongformer, False, []),
    "sliding-window": ("mode=sliding-window", lambda head: sliding(BLOCKS, 1, 0), True, ["--mesh", "pp=2", "--accumulate", "2"]),
    "bfloat16": ("mode=fixed,attention=unidirectional", lambda head: fixed(0), True, ["--precision", "bfloat16"]),
    "dense": ("mode=dense", lambda head: numpy.ones((BLOCKS, BLOCKS), bool), True, []),
}

weights = masked_model.weights(random, VOCABULARY, WIDTH, LAYERS, 0.5)
data = f"{folder}/data.safetensors"
TOKENS = random.integers(0, VOCABULARY, (BATCH, LENGTH))
write_tensors(data, {"input_ids": TOKENS, "labels": TOKENS})


def train(name, mask, options, cuda=False):
    """Returns the parameters after three updates."""
    model, program, parameters = (f"{folder}/{name}{suffix}" for suffix in (".onnx", "", ".safetensors"))
    masked_model.write(model, weights, mask, HEADS)
    batch = BATCH // 2 if "--accumulate" in options else BATCH
    call("partita", "compile", model, "--dim", f"batch={batch}", "--dim", f"sequence={LENGTH}", "--objective", "causal", "--optimizer", "sgd", "--lr", "0.1",
         *options, *(["--target", "cuda", "--no-build"] if cuda else []), "-o", program)
    if cuda:
        build_for_simulated_gpu(program)
    call("partita", "run", program, "--data", data, "--steps", "3", "--dump-parameters", parameters)
    return {name: (value.astype("u4") << 16).view("f4") if value.dtype == numpy.uint16 else value for name, value in checkpoints.read(parameters)[0].items()}


# of a case above: more options, another one for a GPU
FURTHER = {
    "fixed": {"fixed, cuda": (True, ["--mesh", "tp=2"]), "fixed, cp=2": (False, ["--mesh", "cp=2,tp=2", "--context-parallel", "ring"]),
              "fixed, cp=4": (False, ["--mesh", "cp=4", "--context-parallel", "ring"]),
              "fixed, cp=2, cuda": (True, ["--mesh", "cp=2,tp=2", "--context-parallel", "ring"])},
    "bigbird": {"bigbird, cp=2": (False, ["--mesh", "cp=2", "--context-parallel", "ring"])},
    "bslongformer": {"bslongformer, cp=4": (False, ["--mesh", "cp=4", "--context-parallel", "ring"])},
    "sliding-window": {"sliding-window, cp=4": (False, ["--mesh", "cp=4", "--context-parallel", "ring"])},
}


def check(name, found, expected, tolerance):
    """Compares parameters: the largest difference of an element beside the largest change, and the norm of each tensor's differences beside
    its own, of which 6e-8 is the rounding of an element. An update changes a parameter by less than its value, so the former counts more."""
    changed = max(numpy.abs(expected[each] - weights[each]).max() for each in weights)
    error = max(numpy.abs(found[each] - expected[each]).max() for each in weights)
    assert error < tolerance * changed, (name, error, changed)
    apart = max(numpy.linalg.norm(found[each] - expected[each]) / numpy.linalg.norm(expected[each]) for each in weights)
    assert apart < tolerance / 10, (name, apart)
    print(name, "agrees", flush=True)


for name, (option, layout, causal, options) in CASES.items():
    seen = numpy.tri(LENGTH, dtype=bool) if causal else numpy.ones((LENGTH, LENGTH), bool)
    model = numpy.broadcast_to(seen, (HEADS, LENGTH, LENGTH)).copy()
    blocks = numpy.stack([numpy.kron(layout(head), numpy.ones((BLOCK, BLOCK), bool)) for head in range(HEADS)])
    if layout(0).all():  # the same program's bits
        sparse, dense = train(name, model[:1], [*options, "--sparse-attention", f"{option},block={BLOCK}"]), train(f"{name}_without", model[:1], options)
        assert all((sparse[each] == dense[each]).all() for each in dense), name
    else:
        sparse, dense = train(name, model[:1], [*options, "--sparse-attention", f"{option},block={BLOCK}"]), train(f"{name}_mask", model & blocks, options)
    check(name, sparse, dense, 0.1 if name == "bfloat16" else 1e-5)
    if name in FURTHER:
        alone = train(f"{name}_alone", model[:1], ["--sparse-attention", f"{option},block={BLOCK}"])
        for number, (further, (cuda, more)) in enumerate(FURTHER[name].items()):
            found = train(f"{name}_{number}", model[:1], [*more, "--sparse-attention", f"{option},block={BLOCK}"], cuda)
            check(further, found, alone, 1e-5)
