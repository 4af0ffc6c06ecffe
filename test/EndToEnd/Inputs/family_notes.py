# family_notes.py TOOLS: which notes name which parameters, and which tensors differ, by tools/python/family_notes.py.
import sys

import numpy

sys.path.insert(0, sys.argv[1])
import family_notes  # noqa: E402

MODULE = r"""module attributes {train.notes = [#train.note<text = "tensor 'val_5' ... use --freeze 'val_5'", tensors = ["val_5", "a, \22b\22]"]>,
#train.note<text = "trained as one; export the model with optimize=False", tensors = ["w"], of_parameters = true>]} {
  train.parameter @w : tensor<2x3xf32> loc(#loc1)
  train.parameter @"x y" : tensor<2xf32> {train.tensors = [#train.stored<name = "val_5", origin = "v.weight", folded = moved>]} loc(#loc2)
  train.parameter @forward.parameter : tensor<2xf32> {train.name = "forward"} loc(#loc3)
"""
assert family_notes.noted_tensors(MODULE) == {"val_5", 'a, "b"]'}
assert family_notes.names_of_parameters(MODULE) == {"w": {"w"}, "x y": {"x y", "val_5", "v.weight"}, "forward": {"forward"}}

w, x = numpy.arange(6.0).reshape(2, 3), numpy.array([7.0, 8.0])
unfolded = {"w": w, "x": x, "forward": x}


def unexplained(**changes):
    found = family_notes.unexplained({**unfolded, **changes}, unfolded, MODULE, 1e-5)
    return found.split(",")[0]


assert unexplained() == "no tensor differs after one step"
assert unexplained(w=w + 1e-7) == unexplained()
assert unexplained(w=w + 1) == "no warning is about 'w'"
assert unexplained(w=w * numpy.nan) == "no warning is about 'w'"
assert unexplained(**{"x y": x + 1}) == ""
assert unexplained(**{"x y": x + 1, "forward": -x}) == "no warning is about 'forward'"
# Unfolded under another name: a transpose holds the same elements.
parameters = {"onnx::MatMul_1": w.T, "x": x, "forward": x, "x y": x + 1}
assert family_notes.unexplained(parameters, unfolded, MODULE, 1e-5) == ""
assert "'onnx::MatMul_1'" in family_notes.unexplained({**parameters, "onnx::MatMul_1": w.T + 0.5}, unfolded, MODULE, 1e-5)
