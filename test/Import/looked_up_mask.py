"""Writes two models of one attention whose mask of keys is looked up by positions: dynamo.onnx and torchscript.onnx,
as newer Transformers are exported.

usage: looked_up_mask.py FOLDER
"""
import os
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "..", "Raise", "Spellings"))
import onnx_writer as onnx
import run_spellings


class Graph(run_spellings.Graph):
    def __getattr__(self, op):
        return lambda *operands, **attributes: self.node(op, *operands, **attributes)

    def named(self, name, kind, shape):
        self.inputs.append(onnx.value(name, kind, shape))
        return run_spellings.Value(self, name)


def attention(looks_up):
    g = Graph()
    x = g.named("x", onnx.FLOAT, ["batch", "sequence", 8])
    mask = g.Cast(g.named("attention_mask", onnx.INT64, ["batch", "sequence"]), to=onnx.BOOL)
    heads = lambda t: g.Transpose(g.Reshape(t, [0, 0, 2, 4]), perm=[0, 2, 1, 3])
    q, k, v = (heads(g.MatMul(x, g.weight(8, 8))) for _ in range(3))
    count = lambda of, axis: g.Range(g.table(0), g.Gather(g.Shape(of), g.table(axis), axis=0), g.table(1))
    sample, key, query = g.Unsqueeze(count(x, 0), [1, 2, 3]), g.Unsqueeze(count(mask, 1), [0, 1, 2]), g.Unsqueeze(count(mask, 1), [0, 1, 3])
    seen = g.And(g.LessOrEqual(key, query), looks_up(g, mask, sample, key))
    scores = g.MatMul(q, g.Transpose(k, perm=[0, 1, 3, 2])) * 0.5 + g.Where(seen, g.table(0.0), g.table(-3.4028235e38))
    y = g.Reshape(g.Transpose(g.MatMul(g.Softmax(scores, axis=-1), v), perm=[0, 2, 1, 3]), [0, 0, 8])
    g.result(g.MatMul(y, g.weight(8, 8)))
    return g


def by_tuples(g, mask, sample, key):
    shape = g.Shape(g.Max(sample, key))
    columns = [g.Unsqueeze(g.Expand(each, shape), [-1]) for each in (sample, key)]
    return g.GatherND(mask, g.Concat(*columns, axis=-1))


def in_one_row(g, mask, sample, key):
    start = g.Mul(sample, g.Gather(g.Shape(mask), [1], axis=0))
    at = g.Add(key, start)
    return g.Reshape(g.Reshape(g.Gather(g.Flatten(mask, axis=2), at, axis=0), [-1]), g.Shape(at))


for name, looks_up in dict(dynamo=by_tuples, torchscript=in_one_row).items():
    attention(looks_up).save(os.path.join(sys.argv[1], name + ".onnx"))
