"""--context-parallel auto takes what sends fewer bytes: those that the census of a ring and of an exchange of heads shows.

Usage: context_auto.py DATA. Prints a line per plan: model, mesh, bytes in a ring, bytes if heads are exchanged, auto's choice.
"""
import re
import subprocess
import sys

LLAMA, T5 = "families/llama_dynamo", "families/t5_dynamo"
PLANS = [  # model, ranks of cp, further options
    ("families/gpt2_dynamo", 2, []), (LLAMA, 2, []), (LLAMA, 4, []), (LLAMA, 2, ["--precision", "bfloat16"]),
    ("families/mistral_dynamo", 4, ["--dim", "sequence=64"]), ("further/falcon_dynamo", 2, []), ("further/bloom_dynamo", 4, []),
    (T5, 2, ["--dim", "decoder_sequence=8"]), (T5, 4, ["--dim", "sequence=128", "--dim", "decoder_sequence=32"]),
    ("families/gpt2_dynamo", 4, ["--dim", "sequence=32", "--sparse-attention", "mode=sliding-window,block=2"]),
]
LINE = re.compile(r"(?:forward|backward) +\d+ x (shift|all_to_all|all_gather|reduce_scatter) over cp, ([\d,]+) bytes")


def census(model, ranks, options, way):
    """Returns the bytes that a rank sends, and whether it shifts."""
    if "sequence=" not in " ".join(options).replace("decoder_sequence=", ""):
        options = [*options, "--dim", "sequence=16"]
    done = subprocess.run(["partita", "explain", f"{sys.argv[1]}/{model}.onnx", "--dim", "batch=4", "--mesh", f"cp={ranks}", "--context-parallel", way, *options],
                          capture_output=True, text=True, check=True)
    rows = [(kind, int(size.replace(",", ""))) for kind, size in LINE.findall(done.stdout)]
    assert rows
    # Collectives count their full value, of which a rank has its own part already; an exchange, what it has.
    sent = sum(size if kind == "shift" else size * (ranks - 1) / ranks for kind, size in rows)
    return sent, any(kind == "shift" for kind, _ in rows)


for model, ranks, options in PLANS:
    ring, exchanged = (census(model, ranks, options, way)[0] for way in ("ring", "all-to-all"))
    sent, shifts = census(model, ranks, options, "auto")
    print(model, f"cp={ranks}", *options, f"{ring:.0f} {exchanged:.0f}", "ring" if shifts else "all-to-all")
    assert sent == min(ring, exchanged), "auto takes what sends more"
