"""state_bytes.py MODEL LIMIT STAGES PRECISION RANKS...: parameters and optimizer states of a rank, summed from the program's planned buffers, against the
formulas of the ZeRO paper (float32 with AdamW: 4 bytes of parameter and 8 of states each; 16 bits: 2 and, with a master, 12; what a
stage splits divided by the ranks), exactly: with each tensor's padding and alignment; together they are at most LIMIT of the full state."""
import json, math, re, subprocess, sys

model, limit, stages, precision = sys.argv[1], float(sys.argv[2]), sys.argv[3].split(","), sys.argv[4]
width, states = (4, 2) if precision == "float32" else (2, 3)


def run(*command):
    done = subprocess.run(("partita",) + command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


module = run("import", model, "--dim", "batch=8", "--dim", "sequence=16")
shapes = re.findall(r"train\.parameter @\S+ : tensor<([0-9x]+)xf32>", module)
sizes = [math.prod(int(d) for d in shape.split("x")) for shape in shapes]
exact = sum(sizes)
worst = 0
for ranks in map(int, sys.argv[5:]):
    def full(bytes):  # aligned to 16
        return sum(-(-bytes * size // 16) * 16 for size in sizes)

    def shards(bytes):  # of sizes padded to the ranks
        return sum(-(-bytes * -(-size // ranks) // 16) * 16 for size in sizes)

    for stage, parameters, kept in ((0, full(width), full(4)), (1, full(width), shards(4)), (2, full(width), shards(4)),
                                    (3, shards(width), shards(4))):
        if str(stage) not in stages or (ranks == 1 and stage > 0):
            continue
        memory = json.loads(run("explain", model, "--dim", f"batch={8 * ranks}", "--dim", "sequence=16", "--mesh", f"dp={ranks}",
                                "--zero-stage", str(stage), "--precision", precision, "--memory", "--json"))["memory"]
        kept *= states
        assert (memory["parameters"], memory["optimizer_states"]) == (parameters, kept), (ranks, stage, memory["parameters"], parameters)
        formula = exact * ((width if stage < 3 else width / ranks) + 4 * states / (ranks if stage else 1))
        shares = sum((bytes * size // part) for size in sizes
                     for bytes, part in [(width, ranks if stage == 3 else 1)] + states * [(4, ranks if stage else 1)])
        assert abs(memory["padding"] - (parameters + kept - shares)) <= (1 + states) * len(sizes), (memory["padding"], parameters + kept - shares)
        worst = max(worst, (parameters + kept) / formula - 1)
assert worst <= limit, worst
print(f"state bytes by the formulas: {len(sizes)} tensors, {exact} elements, padding and alignment at most {100 * worst:.3f} %")
