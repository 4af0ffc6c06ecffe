"""Data for a model whose loss compares each token's scores with the next of its labels, and the same
for an objective that compares them with the label of the same place.

    shifted_labels.py DATA.safetensors OWN.safetensors NEXT.safetensors
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Golden"))
import family_files  # noqa: E402
import numpy  # noqa: E402

source, own, following = sys.argv[1:]
ids = family_files.read_safetensors(source)["input_ids"].astype(numpy.int64)
labels = ids.copy()
labels[1, 5:] = -100
family_files.write_safetensors(own, {"input_ids": ids, "labels": labels})
following_labels = numpy.pad(labels[:, 1:], ((0, 0), (0, 1)), constant_values=-100)
family_files.write_safetensors(following, {"input_ids": ids, "labels": following_labels})
