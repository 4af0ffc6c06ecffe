"""Writes the seed corpus of import_fuzzer: every model of the importer's tests, every node test that ./check
runs, and every exported Transformer of test/Data. Values of large weights are left out, as an exporter
may; and of more than LONGEST bytes of nodes the last ones, which repeat the first layers.

usage: make_corpus.py FOLDER
"""
import glob
import os
import re
import shutil
import sys
import zipfile

here = os.path.dirname(os.path.abspath(__file__))
tests = os.path.join(here, "..", "Import")
sys.path.insert(0, tests)
import onnx_writer

folder = sys.argv[1]
LONGEST, FEW, TABLE = 60000, 1000, 10000  # bytes


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def fields(data):
    """(number, the field's bytes, its contents) of every field of a message; contents: of length-delimited ones."""
    at = 0
    while at < len(data):
        begin = at
        tag, at = varint(data, at)
        contents, kind = None, tag & 7
        if kind == 0:
            _, at = varint(data, at)
        elif kind == 2:
            size, at = varint(data, at)
            contents, at = data[at:at + size], at + size
        else:
            at += 8 if kind == 1 else 4
        yield tag >> 3, data[begin:at], contents


def field(number, contents):
    out, size = bytearray([number << 3 | 2]), len(contents)
    while size > 127:
        out.append(size & 127 | 128)
        size >>= 7
    return bytes(out) + bytes([size]) + contents


def without_values(tensor):
    """The tensor without its values, if it is a large one of floats: raw_data 9, data_type 2 = 1, 10, 11, 16."""
    parts = list(fields(tensor))
    # Of a small matrix they stay: an import compares those of tables with others', as which they may be written again.
    if sum(number == 1 for number, _, _ in parts) == 2 and len(tensor) < TABLE:
        return tensor
    is_float = any(number == 2 and part[-1] in (1, 10, 11, 16) for number, part, _ in parts)
    if not is_float or len(tensor) < FEW:
        return tensor
    return b"".join(part for number, part, _ in parts if number != 9)


def shortened(model):
    """A ModelProto (graph 7) with less of its graph: node 1; initializer 5, those in use; value_info 13, which nobody reads."""
    out = bytearray()
    for number, part, contents in fields(model):
        if number != 7:
            out += part
            continue
        graph, length, used = bytearray(), 0, set()
        parts = list(fields(contents))
        for inner, text, node in parts:  # nodes come before or after the initializers
            length += len(text) if inner == 1 else 0
            if inner == 1 and length <= LONGEST:
                used.update(name for member, _, name in fields(node) if member == 1)
                graph += text
        for inner, text, tensor in parts:
            if inner == 5 and any(member == 8 and name in used for member, _, name in fields(tensor)):
                graph += field(5, without_values(tensor))
            elif inner not in (1, 5, 13):
                graph += text
        out += field(7, bytes(graph))
    return bytes(out)


shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
for test in sorted(os.listdir(tests)):
    if not test.endswith(".test"):
        continue
    parts = re.split(r"^//--- (\S+)\n", open(os.path.join(tests, test)).read(), flags=re.M)
    for name, text in zip(parts[1::2], parts[2::2]):
        case = os.path.join(folder, "case")
        os.makedirs(case)
        scope = {key: getattr(onnx_writer, key) for key in dir(onnx_writer)}
        model = os.path.join(case, "model.onnx")
        scope.update(output=model, folder=case, os=os)
        exec(compile(text, test + ":" + name, "exec"), scope)
        if os.path.isfile(model):
            os.rename(model, os.path.join(folder, f"{test[:-5]}-{name}"))
        shutil.rmtree(case)
with zipfile.ZipFile(os.path.join(tests, "Nodes", "models.zip")) as models:
    models.extractall(folder)
for model in glob.glob(os.path.join(here, "..", "Data", "**", "*.onnx"), recursive=True):
    with open(model, "rb") as full, open(os.path.join(folder, os.path.basename(model)), "wb") as short:
        short.write(shortened(full.read()))
# What the fuzzer found once: an unknown field of a type claims 300 KB of a file of 115 bytes.
with open(os.path.join(folder, "claimed-length"), "wb") as found:
    found.write(bytes.fromhex(
        "0808120b6f6e6e785f7772697465723a5c0a200a07353535353535780a076e6f7468496e671201791a042f4164642203416464"
        "1201675a180a017812130a110801120d0a0b0880808080808080808001621b0a0179120a0affff7c0bb2f319c0fe120a0affff"
        "7c0bb2f319c00242040a001011"))
