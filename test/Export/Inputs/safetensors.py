# Small tools of the tests: checkpoints in pieces, damaged or with checksums, and the tensors of an ONNX file.
import json
import os
import struct

import numpy as np
from tensor_files import TYPES, block_checksums, crc32c, read_tensors, split, write_tensors as write_safetensors


def with_checksum(text):
    """A JSON text whose "crc32c" is eight zeros, with what it is."""
    zeros = b'"crc32c": "00000000"'
    assert text.count(zeros) == 1
    return text.replace(zeros, b'"crc32c": "%s"' % crc32c(text).encode())


def add_checksums(folder, version="3"):
    """A checkpoint of format 1, as it is of format 2, sharded of format 2 or 3: by runtime/common/checkpoint/README.md."""
    headers = {}
    for name in sorted(os.listdir(folder)):
        path = f"{folder}/{name}"
        if name.endswith(".safetensors"):
            text, data = split(path)
            header = json.loads(text)
            metadata = header.setdefault("__metadata__", {})
            metadata["format"] = {"partita checkpoint 1": "partita checkpoint 2"}.get(metadata.get("format"), f"partita sharded checkpoint {version}")
            metadata["block_crc32c"] = block_checksums([entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"], data)
            metadata["crc32c"] = "00000000"
            text = with_checksum(json.dumps(header).encode())
            headers[name] = json.loads(text)["__metadata__"]["crc32c"]
            with open(path, "wb") as file:
                file.write(struct.pack("<Q", len(text)) + text + data)
    path = f"{folder}/checkpoint.safetensors.index.json"
    if os.path.exists(path):
        with open(path) as file:
            index = json.load(file)
        index["metadata"].update(format=f"partita sharded checkpoint {version}", crc32c="00000000")
        for file in index["files"]:
            file["bytes"] = os.path.getsize(f"{folder}/{file['name']}")
            if version == "3":
                file["header_crc32c"] = headers[file["name"]]
        with open(path, "wb") as file:
            file.write(with_checksum(json.dumps(index, indent=1).encode()))


def damage(path, at, bit=0):
    """Flips a bit of the byte at `at`; of the last ones where that is negative, of the data for "data:N"."""
    with open(path, "r+b") as file:
        if at.startswith("data:"):
            at = struct.unpack("<Q", file.read(8))[0] + 8 + int(at[5:])
        file.seek(int(at), os.SEEK_END if int(at) < 0 else os.SEEK_SET)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1 << int(bit)]))


def read_safetensors(path):
    return read_tensors(path)[0]


def split_checkpoint(folder):
    """Puts DIR/checkpoint.safetensors into the pieces of two ranks: rows, columns in two blocks, or flat pieces."""
    names = [f"checkpoint-0123456789abcdef-{i + 1:05}-of-00002.safetensors" for i in range(2)]
    files, entries = ({}, {}), {}
    for number, (name, array) in enumerate(read_safetensors(f"{folder}/checkpoint.safetensors").items()):
        shards = []
        for rank in range(2):
            dims, chosen = [[0, size] for size in array.shape], array
            if array.ndim == 0:
                if rank == 1:
                    continue
            elif number % 3 == 0 and array.shape[0] > 1:
                middle = (array.shape[0] + 1) // 2
                dims[0] = [0, middle] if rank == 0 else [middle, array.shape[0]]
            elif number % 3 == 1 and array.ndim == 2 and array.shape[1] % 4 == 0:
                part = array.shape[1] // 4
                dims[1] = [rank * part, (rank + 1) * part, (rank + 2) * part, (rank + 3) * part]
            shard = {"file": rank + 1, "slices": dims}
            chosen = array[np.ix_(*(np.concatenate([np.arange(*dim[i : i + 2]) for i in range(0, len(dim), 2)]) for dim in dims))] if dims else array
            if array.ndim and chosen.size == array.size:
                middle = array.size // 2 + 1
                shard["elements"] = [0, middle] if rank == 0 else [middle, array.size]
                chosen = array.reshape(-1)[slice(*shard["elements"])]
            shards.append(shard)
            files[rank][name] = chosen
        dtype = next(key for key, value in TYPES.items() if array.dtype == value)
        entries[name] = {"dtype": dtype, "shape": list(array.shape), "shards": shards}
    for name, tensors in zip(names, files):
        write_safetensors(f"{folder}/{name}", tensors, {"save": "0123456789abcdef"})
    index = {
        "metadata": {"format": "partita sharded checkpoint 1", "save": "0123456789abcdef", "step": "1", "seed": "1"},
        "files": [{"name": name, "bytes": os.path.getsize(f"{folder}/{name}")} for name in names],
        "tensors": entries,
    }
    os.remove(f"{folder}/checkpoint.safetensors")
    with open(f"{folder}/checkpoint.safetensors.index.json", "w") as file:
        json.dump(index, file, indent=1)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def fields(data):
    """The (number, value or bytes) pairs of a protobuf message."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
            assert len(value) == length
        else:
            width = 8 if tag & 7 == 1 else 4
            value, at = data[at : at + width], at + width
        yield tag >> 3, value


def onnx_tensors(path):
    """Name -> dict of an ONNX file's initializers: dims, type, raw (or None), external (dict)."""
    result = {}
    with open(path, "rb") as file:
        model = file.read()
    for number, graph in fields(model):
        if number != 7:
            continue
        for inner, tensor in fields(graph):
            if inner != 5:
                continue
            entry = {"dims": [], "type": 0, "raw": None, "external": {}}
            name = None
            for key, value in fields(tensor):
                if key == 1:
                    entry["dims"] += [value] if isinstance(value, int) else unpack(value)
                elif key == 2:
                    entry["type"] = value
                elif key == 8:
                    name = value.decode(errors="surrogateescape")
                elif key == 9:
                    entry["raw"] = value
                elif key == 13:
                    pair = dict(fields(value))
                    entry["external"][pair[1].decode()] = pair[2].decode()
            if entry["external"]:
                with open(os.path.join(os.path.dirname(path), entry["external"]["location"]), "rb") as file:
                    file.seek(int(entry["external"].get("offset", 0)))
                    entry["raw"] = file.read(int(entry["external"]["length"]))
            result[name] = entry
    return result


def unpack(data):
    values, at = [], 0
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values
