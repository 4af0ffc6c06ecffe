"""Data for columns.test: files with columns that the example's program does not read."""
import numpy as np
from tensor_files import write_tensors

tokens = np.arange(16 * 16).reshape(16, 16)
write_tensors("label.safetensors", {"input_ids": tokens, "label": tokens})
write_tensors("labels.safetensors", {"input_ids": tokens, "labels": tokens})
others = {"input_ids": tokens, "labels": tokens, "label": tokens, "attention_mask": tokens, "red\x1b[31m": tokens}
write_tensors("others.safetensors", others)
write_tensors("many.safetensors", {"input_ids": tokens, "labels": tokens, **{f"c{i:02}": tokens[:, 0] for i in range(100)}})
