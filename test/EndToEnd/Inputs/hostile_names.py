# hostile_names.py IN OUT: the same model with other names; equal lengths, so that the file stays valid.
import sys

with open(sys.argv[1], "rb") as file:
    model = file.read()

HOSTILE = [
    b'"); abort(); ("',
    b"*/\n#error broken\n/*",
    b"\\\n??/\n%s%n{}\r\t",
    b"a\xff\xfe\x80 b'`$(false)",
    b"../../../../etc/passwd",
    b"R\"(x)\" \x01\x7f\x1b[31m",
]
renamed = 0
for layer in (b"0", b"1"):
    for part in (b"ln_1.weight", b"ln_1.bias", b"attn.c_attn.weight", b"attn.c_proj.bias", b"mlp.c_fc.weight", b"mlp.c_proj.bias"):
        old = b"transformer.h." + layer + b"." + part
        count = model.count(old)
        if not count:
            continue
        new = (HOSTILE[renamed % len(HOSTILE)] + b"_" * len(old))[: len(old) - 1] + layer
        model = model.replace(old, new)
        renamed += 1
assert renamed >= 6, renamed
with open(sys.argv[2], "wb") as file:
    file.write(model)
print(f"{renamed} names replaced")
