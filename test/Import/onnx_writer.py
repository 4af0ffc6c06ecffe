"""Writes ONNX files by hand: the protobuf wire format, no onnx package.

A message is a list of (field number, value): an int is a varint, a float 32 bits, bytes and str
are length-delimited, a list is a nested message. So a test can write any file, wrong ones too:

    from onnx_writer import *
    save("m.onnx", model(graph(
        [node("Add", ["x", "w"], ["y"])],
        inputs=[value("x", FLOAT, ["batch", 4])], outputs=[value("y", FLOAT, ["batch", 4])],
        initializers=[tensor("w", FLOAT, [4], floats([1, 2, 3, 4]))])))
"""
import struct

FLOAT, UINT8, INT8, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE, BFLOAT16 = 1, 2, 3, 6, 7, 8, 9, 10, 11, 16


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode(message):
    out = bytearray()
    for number, value in message:
        if isinstance(value, (bool, int)):
            out += varint(number << 3) + varint(int(value))
        elif isinstance(value, float):
            out += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            data = encode(value) if isinstance(value, list) else value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return bytes(out)


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def int64s(values):
    return struct.pack(f"<{len(values)}q", *values)


def bools(values):
    return bytes(int(v) for v in values)


def tensor(name, dtype, dims, raw=None, extra=()):
    """raw None: the tensor is declared without values. extra: more fields of the message."""
    return [(1, d) for d in dims] + [(2, dtype), (8, name)] + ([] if raw is None else [(9, raw)]) + list(extra)


def external(name, dtype, dims, location, offset=None, length=None):
    entries = [("location", location)]
    entries += [] if offset is None else [("offset", str(offset))]
    entries += [] if length is None else [("length", str(length))]
    return tensor(name, dtype, dims, None, [(13, [(1, k), (2, v)]) for k, v in entries] + [(14, 1)])


def ints(name, values):
    """A 1-D int64 tensor."""
    return tensor(name, INT64, [len(values)], int64s(values))


def attribute(name, value):
    if isinstance(value, dict):  # {"graph": ...}, {"tensor": ...}, {"ref": ...}
        kind, inner = next(iter(value.items()))
        fields = {"graph": [(6, inner), (20, 5)], "tensor": [(5, inner), (20, 4)], "ref": [(21, inner), (20, 2)]}[kind]
    elif isinstance(value, float):
        fields = [(2, value), (20, 1)]
    elif isinstance(value, int):
        fields = [(3, value), (20, 2)]
    elif isinstance(value, (str, bytes)):
        fields = [(4, value), (20, 3)]
    elif value and isinstance(value[0], float):
        fields = [(7, v) for v in value] + [(20, 6)]
    else:
        fields = [(8, v) for v in value] + [(20, 7)]
    return [(1, name)] + fields


def node(op, inputs, outputs, name=None, domain=None, **attributes):
    message = [(1, i) for i in inputs] + [(2, o) for o in outputs]
    message += [(3, name if name is not None else f"/{op}")] + [(4, op)]
    message += [(5, attribute(k, v)) for k, v in attributes.items()]
    return message + ([] if domain is None else [(7, domain)])


def constant(name, dtype, dims, raw):
    return node("Constant", [], [name], f"/{name}", value={"tensor": tensor("", dtype, dims, raw)})


def value(name, dtype, dims):
    """A dimension is a number, a name, or None."""
    shape = [(1, [] if d is None else [(1, d)] if isinstance(d, int) else [(2, d)]) for d in dims]
    return [(1, name), (2, [(1, [(1, dtype), (2, shape)])])]


def graph(nodes, inputs=(), outputs=(), initializers=(), name="g"):
    return ([(1, n) for n in nodes] + [(2, name)] + [(5, t) for t in initializers]
            + [(11, v) for v in inputs] + [(12, v) for v in outputs])


def function(name, inputs, outputs, nodes, domain="local", attributes=(), defaults=(), opset=17):
    return ([(1, name)] + [(4, i) for i in inputs] + [(5, o) for o in outputs] + [(6, a) for a in attributes]
            + [(7, n) for n in nodes] + [(9, [(1, ""), (2, opset)]), (9, [(1, "local"), (2, 1)]), (10, domain)]
            + [(11, d) for d in defaults])


def model(graph, opset=17, functions=(), opsets=(), producer="onnx_writer"):
    imports = [("", opset)] + list(opsets) + ([("local", 1)] if functions else [])
    return ([(1, 8), (2, producer), (7, graph)] + [(8, [(1, d), (2, v)]) for d, v in imports]
            + [(25, f) for f in functions])


def sharding(tensor, devices, dims=(), groups=None):
    """How a node's tensor is spread: per axis its factors and in how many shards each is; groups: number -> devices."""
    return ([(1, tensor)] + [(2, d) for d in devices]
            + [(3, [(1, key)] + [(2, d) for d in group]) for key, group in (groups or {}).items()]
            + [(4, [(1, axis)] + [(2, [(2 if isinstance(size, str) else 1, size), (3, shards)]) for size, shards in factors])
               for axis, factors in dims])


def annotated(node, configuration, *shardings, stage=None):
    return node + [(10, [(1, configuration)] + [(2, s) for s in shardings] + ([] if stage is None else [(3, stage)]))]


def configured(model, *configurations):
    """A model with device configurations, which IR version 11 brought: (name, devices) or (name, devices, names)."""
    return [(1, 11)] + model[1:] + [(26, [(1, c[0]), (2, c[1])] + [(3, n) for n in (c[2] if len(c) > 2 else [])]) for c in configurations]


def save(path, message):
    data = message if isinstance(message, bytes) else encode(message)
    with open(path, "wb") as file:
        file.write(data)


def unary_model(op, dims=(2, 4), dtype=FLOAT, opset=17, result=None, **attributes):
    """x -> op -> y"""
    return model(graph([node(op, ["x"], ["y"], **attributes)], [value("x", dtype, dims)],
                       [value("y", dtype, result if result is not None else dims)]), opset)


def traced(node, operation, arguments="%x,", result="y", modules=()):
    """A node with what the exporter writes of the operation that it was made for, such as "aten.linear.default": its result
    in the program, and the modules around it, from the outermost below the model."""
    entries = [("pkg.torch.onnx.stack_trace", "File ..."),
               ("pkg.torch.onnx.fx_node", f"%{result} : [num_users=1] = call_function[target=torch.ops.{operation}](args = ({arguments}), kwargs = {{}})")]
    entries += [("pkg.torch.onnx.name_scopes", repr(["", *modules, result]))] if modules else []
    return node + [(9, [(1, key), (2, text)]) for key, text in entries]


def exported(graph, inputs, folded=None, kinds=None, updated=()):
    """A graph with the record that PyTorch's dynamo exporter leaves: of the program's inputs (kind, target), of folded
    tensors what each was computed from, of others their kind where it is not the one of their input, and of the buffers
    that forward() updates."""
    lines = [f"{'b' if kind == 'BUFFER' else 'p'}_{target.replace('.', '_')}: {kind} target='{target}'"
             + (" persistent=True" if kind == "BUFFER" else "") for kind, target in inputs]
    signature = "\n# inputs\n" + "\n".join(lines + ["x: USER_INPUT"]) + "\n\n# outputs\n"
    signature += "".join(f"add_{i}: BUFFER_MUTATION target='{target}'\n" for i, target in enumerate(updated)) + "y: USER_OUTPUT\n"
    kinds = {**{target: kind for kind, target in inputs}, **(kinds or {})}
    prefix = "pkg.torch.export.graph_signature.InputSpec."
    values = [(name, [(prefix + "kind", kind), (prefix + "persistent", "None")]) for name, kind in kinds.items()]
    values += [(name, [("pkg.onnxscript.optimizer.folded_from", source if isinstance(source, str) else repr(sorted(source)))])
               for name, source in (folded or {}).items()]
    return graph + [(13, [(1, name)] + [(4, [(1, k), (2, v)]) for k, v in entries]) for name, entries in values] \
        + [(16, [(1, "pkg.torch.export.ExportedProgram.graph_signature"), (2, signature)])]
