"""A file of columns with labels none of which counts, without an attention mask.

    ignore_all.py DATA.safetensors OUT.safetensors
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "Golden"))
import family_files  # noqa: E402
import numpy  # noqa: E402

columns = {name: column.astype(numpy.int64)
           for name, column in family_files.read_safetensors(sys.argv[1]).items()}
columns["labels"][:] = -100
columns.pop("attention_mask")
family_files.write_safetensors(sys.argv[2], columns)
