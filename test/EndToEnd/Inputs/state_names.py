# state_names.py IN OUT: the same model with parameters that are called like another's optimizer states; equal lengths, so that the file stays valid.
import sys

with open(sys.argv[1], "rb") as file:
    model = file.read()
NAME = b"w" * len(b"transformer.h.0.ln_1.bias")
for old, new in (
    (b"transformer.h.0.ln_1.bias", NAME),
    (b"transformer.h.0.ln_1.weight", NAME + b".m"),
    (b"transformer.h.0.ln_2.weight", NAME + b".v"),
    (b"transformer.h.0.attn.c_proj.bias", NAME + b".master"),
    (b"transformer.h.1.attn.c_proj.bias", NAME + b".state."),
):
    assert len(old) == len(new) and old in model, old
    model = model.replace(old, new)
with open(sys.argv[2], "wb") as file:
    file.write(model)
