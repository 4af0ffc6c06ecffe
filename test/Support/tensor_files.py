"""safetensors files, read and written with numpy alone, and their checksums."""
import json

import numpy

# bfloat16: its bits.
TYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "F16": "<f2", "BF16": "<u2", "BOOL": "?"}


def split(path):
    """Returns a file's header as text, and its data."""
    with open(path, "rb") as file:
        return file.read(int.from_bytes(file.read(8), "little")), file.read()


def read_tensors(path):
    """Returns ({name: array}, metadata)."""
    text, data = split(path)
    header = json.loads(text)
    metadata = header.pop("__metadata__", {})
    return {name: numpy.frombuffer(data[slice(*entry["data_offsets"])], TYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}, metadata


def read_doubles(path):
    """Returns {name: array}, all in float64."""
    tensors = read_tensors(path)[0]
    widened = {name: (value.astype(numpy.uint32) << 16).view(numpy.float32) if value.dtype == TYPES["BF16"] else value for name, value in tensors.items()}
    return {name: value.astype(numpy.float64) for name, value in widened.items()}


def write_tensors(path, tensors, metadata=None):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, array in tensors.items():
        values = numpy.ascontiguousarray(array).tobytes()
        kind = next(kind for kind, dtype in TYPES.items() if array.dtype == dtype)
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + data)


def crc_of_byte(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


CRC_TABLE = [crc_of_byte(byte) for byte in range(256)]


def crc32c(data):
    """Returns eight hexadecimal digits, as runtime/common/checkpoint/README.md has them."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 255]
    return f"{crc ^ 0xFFFFFFFF:08x}"


def block_checksums(offsets, data):
    """Returns those of a file's blocks of 65,536 bytes; `offsets`: where each tensor begins and ends."""
    return "".join(crc32c(data[at : min(at + 65536, end)]) for begin, end in sorted(offsets) for at in range(begin, end, 65536))
