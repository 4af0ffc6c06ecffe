"""fewer_tokens.py MODEL.onnx TOKENS OUT.onnx: a model without values (--init), with that many rows of its tables of tokens."""
import sys

import onnx

source, tokens, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
model = onnx.load(source)
graph = model.graph
scores = graph.output[0].type.tensor_type.shape.dim[2]
for tensor in graph.initializer:
    if tensor.dims and tensor.dims[0] == scores.dim_value and ("embed" in tensor.name or "head" in tensor.name):
        tensor.dims[0] = tokens
scores.dim_value = tokens
del graph.value_info[:]
onnx.save(model, out)
