"""write_nan.py FROM TO NAME: copies a safetensors file, with two elements of a tensor set to NaN."""

import sys

import numpy
from tensor_files import read_doubles, write_tensors

before, after, name = sys.argv[1:]
tensors = read_doubles(before)
tensors[name].flat[[0, -1]] = numpy.nan
write_tensors(after, tensors)
