"""Reads the runtime's files: safetensors and CSV logs."""

import csv
import json
import struct

import numpy as np

TYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}


def safetensors(path):
    """Returns ({name: array}, metadata)."""
    data = open(path, "rb").read()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        raw = data[8 + length + begin : 8 + length + end]
        tensors[name] = np.frombuffer(raw, TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


def log(path):
    """Returns the rows of a --log file without the columns of times, which are not reproducible."""
    rows = list(csv.DictReader(open(path)))
    return [{key: row[key] for key in row if not key.endswith(("_per_second", "_seconds"))}
            for row in rows]
