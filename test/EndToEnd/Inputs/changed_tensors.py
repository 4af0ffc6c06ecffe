"""changed_tensors.py BEFORE.onnx AFTER.onnx: the float initializers of more than one element that differ, and those that
do not. What is a table of the model stays, what is a parameter changes."""
import sys

import numpy
import onnx
from onnx import numpy_helper

before, after = ({tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load(path).graph.initializer}
                 for path in sys.argv[1:])
for name, values in sorted(before.items()):
    if values.dtype == numpy.float32 and values.size > 1:
        print("same" if numpy.array_equal(values, after[name]) else "changed", name, "x".join(map(str, values.shape)))
