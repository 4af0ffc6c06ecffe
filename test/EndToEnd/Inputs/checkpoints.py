#!/usr/bin/env python3
"""Reads checkpoints of either form. checkpoints.py A B...: have all the bits of A, and its step, seed and data? Their checksums
are compared too, by what runtime/common/checkpoint/README.md says of them.

A and B are folders, or files; of a folder its newest checkpoint.
"""
import glob
import json
import os
import re
import sys

import numpy as np
import tensor_files
from tensor_files import TYPES, crc32c

CHECKS = False  # in Python they are slow


def check(text, metadata):
    """The checksum of a JSON text, which names it."""
    named = re.search(rb'"crc32c": ?"([0-9a-f]{8})"', text)
    assert named[1].decode() == metadata["crc32c"]
    assert crc32c(text[: named.start(1)] + b"00000000" + text[named.end(1) :]) == metadata["crc32c"]


def safetensors(path):
    """({name: array}, metadata) of one file."""
    tensors, metadata = tensor_files.read_tensors(path)
    if CHECKS:
        text, data = tensor_files.split(path)
        check(text, metadata)
        offsets = [entry["data_offsets"] for name, entry in json.loads(text).items() if name != "__metadata__"]
        assert tensor_files.block_checksums(offsets, data) == metadata["block_crc32c"], path
    return tensors, metadata


def gather(entry, shards):
    """A tensor from its shards, each element from one."""
    full, found = np.zeros(entry["shape"], TYPES[entry["dtype"]]), np.zeros(entry["shape"], int)
    numbers = np.arange(full.size).reshape(full.shape)
    for shard, values in zip(entry["shards"], shards):
        indices = [np.concatenate([np.arange(begin, end) for begin, end in zip(dim[::2], dim[1::2])]) for dim in shard["slices"]]
        chosen = (numbers[np.ix_(*indices)] if indices else numbers).reshape(-1)[slice(*shard.get("elements", [None]))]
        full.reshape(-1)[chosen] = values.reshape(-1)
        found.reshape(-1)[chosen] += 1
    assert (found == 1).all(), "an element is in no piece, or in two"
    return full


def read(path):
    """({name: array}, metadata) of a checkpoint."""
    if steps := glob.glob(os.path.join(path, "step-*")):
        path = max(steps, key=lambda step: int(step.rsplit("-", 1)[1]))
    if os.path.isdir(path):
        forms = [os.path.join(path, "checkpoint.safetensors" + end) for end in ("", ".index.json")]
        there = [form for form in forms if os.path.exists(form)]
        assert len(there) == 1, f"{path}: {len(there)} checkpoints"
        path = there[0]
    if not path.endswith(".json"):
        return safetensors(path)
    with open(path, "rb") as file:
        text = file.read()
    index = json.loads(text)
    if CHECKS:
        check(text, index["metadata"])
    files = [safetensors(os.path.join(os.path.dirname(path), file["name"])) for file in index["files"]]
    assert all(metadata["save"] == index["metadata"]["save"] for _, metadata in files)
    assert [file["header_crc32c"] for file in index["files"]] == [metadata["crc32c"] for _, metadata in files]
    return {name: gather(entry, [files[shard["file"] - 1][0][name] for shard in entry["shards"]])
            for name, entry in index["tensors"].items()}, index["metadata"]


def same(a, b):
    """Why two checkpoints differ; None when they do not."""
    for key in ("samples_per_step", "step", "seed", "order", "data"):
        if a[1].get(key) != b[1].get(key):
            return f"{key} {a[1].get(key)} and {b[1].get(key)}"
    if a[0].keys() != b[0].keys():
        return f"other tensors: {sorted(a[0].keys() ^ b[0].keys())[:4]}"
    for name, values in a[0].items():
        if values.shape != b[0][name].shape or values.tobytes() != b[0][name].tobytes():
            return f"tensor {name}"
    return None


if __name__ == "__main__":
    CHECKS = True
    first = read(sys.argv[1])
    for path in sys.argv[2:]:
        if difference := same(first, read(path)):
            sys.exit(f"{sys.argv[1]} and {path} differ: {difference}")
