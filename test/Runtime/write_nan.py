"""write_nan.py FROM TO NAME: copies a safetensors file, with two elements of a tensor set to NaN."""

import sys

import numpy
from family_files import read_safetensors, write_safetensors

before, after, name = sys.argv[1:]
tensors = {key: numpy.array(value) for key, value in read_safetensors(before).items()}
tensors[name].flat[[0, -1]] = numpy.nan
write_safetensors(after, tensors)
