"""Renames, transposes and drops tensors of a safetensors file.

    weights.py IN.safetensors OUT VARIANT
"""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Golden"))
import family_files  # noqa: E402
import numpy  # noqa: E402

source, target, variant = sys.argv[1:]
tensors = {name: value.astype(numpy.float32)
           for name, value in family_files.read_safetensors(source).items()}
if variant == "short":  # without the prefix of the whole model, as a library saves its base model
    tensors = {name.removeprefix("transformer."): value for name, value in tensors.items()}
elif variant == "transposed":  # all matrices that are not square
    tensors = {name: value.T if value.ndim == 2 and value.shape[0] != value.shape[1] else value
               for name, value in tensors.items()}
elif variant == "tied":  # the tied table by another name; it alone has its shape
    tensors["output.weight"] = tensors.pop("transformer.wte.weight")
elif variant == "square":  # one square matrix by another name
    tensors["square"] = tensors.pop("transformer.h.1.attn.c_proj.weight")
elif variant == "two":  # one norm under an end of its name, in which another's name ends too
    tensors["ln_1.weight"] = tensors.pop("transformer.h.0.ln_1.weight")
    tensors["scale"] = tensors.pop("transformer.h.1.ln_1.weight")
elif variant == "longest":  # prefixes that are missing or there twice, and a tensor in whose name all others end
    tensors = {name.removeprefix("transformer."): value for name, value in tensors.items()}
    tensors["weight"] = numpy.zeros_like(tensors["ln_f.weight"])
    tensors["model.transformer.h.1.ln_1.weight"] = tensors.pop("h.1.ln_1.weight")
elif variant == "missing":
    del tensors["transformer.h.1.ln_1.weight"]
elif variant in ("ambiguous", "state"):
    for layer in "01":
        tensors[f"x.{layer}.scale"] = tensors.pop(f"transformer.h.{layer}.ln_1.weight")
elif variant == "shape":
    tensors["transformer.ln_f.weight"] = tensors["transformer.ln_f.weight"][:-1]
if variant in ("sharded", "outside", "unlisted"):  # as a library saves a large model
    names, stem = sorted(tensors), os.path.basename(target).removesuffix(".index.json")
    place = {name: f"{stem}-{1 + i % 2}.safetensors" for i, name in enumerate(names)}
    for file in set(place.values()):
        family_files.write_safetensors(os.path.join(os.path.dirname(target), file), {
            name: tensors[name] for name in names if place[name] == file})
    if variant == "outside":
        place[names[3]] = "../" + place[names[3]]
    elif variant == "unlisted":
        place["head.bias"] = place[names[0]]
    with open(target, "w") as index:
        json.dump({"metadata": {"total_size": 1}, "weight_map": place}, index)
else:
    family_files.write_safetensors(target, tensors)
if variant == "state":  # a checkpoint, of the format without checksums
    with open(target, "rb") as file:
        data = file.read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.dumps(json.loads(data[8:8 + length]) | {"__metadata__": {"format": "partita checkpoint 1"}}).encode()
    with open(target, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + data[8 + length:])
