"""Moves one element in the middle of one tensor by a share of the tensor's largest.

    wrong_element.py IN.safetensors OUT.safetensors SHARE
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Golden"))
import family_files  # noqa: E402
import numpy  # noqa: E402

source, target, share = sys.argv[1:]
tensors = {name: value.astype(numpy.float32)
           for name, value in family_files.read_safetensors(source).items()}
tensor = tensors["transformer.h.1.mlp.c_fc.weight"]
tensor[tensor.shape[0] // 2, 7] += float(share) * numpy.abs(tensor).max()
family_files.write_safetensors(target, tensors)
