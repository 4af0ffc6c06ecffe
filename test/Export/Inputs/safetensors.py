# Small tools of the tests: safetensors and the tensors of an ONNX file, with numpy alone.
import json
import struct

import numpy as np

TYPES = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "I32": np.int32}


def write_safetensors(path, tensors, metadata=None):
    header, data = {"__metadata__": metadata or {}}, b""
    for name, array in tensors.items():
        bytes_ = np.ascontiguousarray(array).tobytes()
        dtype = next(key for key, value in TYPES.items() if array.dtype == value)
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    result = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            result[name] = np.frombuffer(body[begin:end], TYPES[entry["dtype"]]).reshape(entry["shape"])
    return result


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
    import os

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
