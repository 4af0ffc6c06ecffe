"""state_bytes.py MODEL LIMIT STAGES RANKS...: parameters and optimizer states of a rank, summed from the program's planned buffers, against the
formulas of the ZeRO paper (float32 with AdamW: 4 bytes of parameter and 8 of states each, what a stage splits divided by the ranks),
exactly: with each tensor's padding and alignment; together they are at most LIMIT of the whole."""
import json, math, re, subprocess, sys

model, limit, stages = sys.argv[1], float(sys.argv[2]), sys.argv[3].split(",")


def run(*command):
    done = subprocess.run(("partita",) + command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


module = run("import", model, "--dim", "batch=8", "--dim", "sequence=16")
shapes = re.findall(r"train\.parameter @\S+ : tensor<([0-9x]+)xf32>", module)
sizes = [math.prod(int(d) for d in shape.split("x")) for shape in shapes]
exact = sum(sizes)
worst = 0
for ranks in map(int, sys.argv[4:]):
    pieces = sum(-(-4 * -(-size // ranks) // 16) * 16 for size in sizes)  # padded to the ranks, aligned to 16 bytes
    wholes = sum(-(-4 * size // 16) * 16 for size in sizes)
    for stage, parameters, states in ((0, wholes, 2 * wholes), (1, wholes, 2 * pieces), (2, wholes, 2 * pieces), (3, pieces, 2 * pieces)):
        if str(stage) not in stages or (ranks == 1 and stage > 0):
            continue
        memory = json.loads(run("explain", model, "--dim", f"batch={8 * ranks}", "--dim", "sequence=16", "--mesh", f"dp={ranks}",
                                "--zero-stage", str(stage), "--memory", "--json"))["memory"]
        assert (memory["parameters"], memory["optimizer_states"]) == (parameters, states), (ranks, stage, memory["parameters"], parameters)
        divided = {0: 0, 1: 8, 2: 8, 3: 12}[stage]
        formula = exact * (12 - divided + divided / ranks)
        shares = sum((4 * size // part) for size in sizes for part in [ranks if stage == 3 else 1] + 2 * [ranks if stage else 1])
        assert abs(memory["padding"] - (parameters + states - shares)) < 4 * len(sizes), (memory["padding"], parameters + states - shares)
        worst = max(worst, (parameters + states) / formula - 1)
assert worst <= limit, worst
print(f"state bytes by the formulas: {len(sizes)} tensors, {exact} elements, padding and alignment at most {100 * worst:.3f} %")
