"""one_bit.py RANKS FOLDER: 1-bit Adam's momenta as ops, against test/Golden/onebit_adam.json.

`make` writes all steps of make_onebit_adam.py in a row as FOLDER/RANKS.mlir, and its gradients; `compare` reads what partita-interp prints.

    one_bit.py 2 out make; partita-interp out/2.mlir --entry momenta --inputs out/2.txt | one_bit.py 2 out compare
"""
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent / "Golden"))
from make_onebit_adam import BETA1, FREEZE, SHOWN, SIZES, STEPS, numbers  # noqa: E402


def program(ranks):
    """All tensors in one bucket. In the warm-up, too, terms of momenta are summed, but exactly."""
    types = {}
    for name, n in SIZES.items():
        chunk = -(-n // ranks)
        types[name] = dict(full="tensor<%dxf32>" % n, local="tensor<1x%dxf32, #par.place<[%d @dp, %d]>>" % (n, ranks, n),
                           partial="tensor<%dxf32, #par.place<[%d], partial [dp]>>" % (n, n), server="tensor<%dxf32, #par.place<[%d], flat [dp]>>" % (chunk, n))
    lines, arguments, names = [], [], list(SIZES)
    of = lambda key: [types[name][key] for name in names]
    for name in names:
        for state, key in (("m", "full"), ("worker", "local"), ("server", "server")):
            arguments.append("%%%s_%s0: %s" % (state, name, types[name][key]))
    for step in range(1, STEPS + 1):
        before, after = ["%s_" + name + str(step - 1) for name in names], ["%s_" + name + str(step) for name in names]
        lines.append("%%t%d = tx.constant dense<%d.0> : tensor<f32> : tensor<f32>" % (step, step))
        for name in names:
            t = types[name]
            arguments.append("%%g_%s%d: %s" % (name, step, t["local"]))
            lines.append("%%s_%s%d = tx.reduce_sum %%g_%s%d [0] : %s -> %s" % (name, step, name, step, t["local"], t["partial"]))
            lines.append("%%x_%s%d = par.one_bit_term %%s_%s%d, %%m_%s%d at %%t%d : tensor<f32> over \"dp\" beta %.17g exact until 0 : %s, %s -> %s"
                         % (name, step, name, step, name, step - 1, step, BETA1, t["partial"], t["full"], t["partial"]))
        taken = ["%" + each % part for part, numbered in (("x", after), ("worker", before), ("server", before)) for each in numbered]
        made = ["%" + each % part for part in ("m", "worker", "server") for each in after]
        lines.append("%s = par.one_bit_all_reduce %s at %%t%d : tensor<f32> over \"dp\" exact until %d : (%s) -> (%s)"
                     % (", ".join(made), ", ".join(taken), step, FREEZE, ", ".join(of("partial") + of("local") + of("server")),
                        ", ".join(of("full") + of("local") + of("server"))))
    results = [("%%m_%s%d" % (name, step), types[name]["full"]) for step in SHOWN for name in names]
    for name in names:  # what all workers have not sent
        t = types[name]
        lines.append("%%unsent_%s = tx.reduce_sum %%worker_%s%d [0] : %s -> %s" % (name, name, STEPS, t["local"], t["partial"]))
        lines.append("%%sum_%s = par.all_reduce %%unsent_%s over \"dp\" : %s -> %s" % (name, name, t["partial"], t["full"]))
        results += [("%sum_" + name, t["full"]), ("%%server_%s%d" % (name, STEPS), t["server"])]
    values, kinds = zip(*results)
    return "module attributes {par.mesh = #par.mesh<dp = %d>} {\nfunc.func @momenta(%s) -> (%s) attributes {par.no_cotangents} {\n%s\nreturn %s : %s\n}\n}\n" % (
        ranks, ", ".join(arguments), ", ".join(kinds), "\n".join(lines), ", ".join(values), ", ".join(kinds))


def inputs(ranks):
    """The states, zeros, then all gradients: a rank's row is its share of the mean's."""
    for n in SIZES.values():
        yield from [0.0] * (n + ranks * n + n)
    for step in range(1, STEPS + 1):
        for index, n in enumerate(SIZES.values()):
            for rank in range(ranks):
                yield from numbers(step, rank, index, n) / ranks


def compare(ranks, text):
    """The rows of a worker's error add up to the algorithm's mean."""
    printed = [[float(number) for number in re.findall(r"-?\d[\d.e-]*", line.split(" = ", 1)[1])] for line in text.splitlines()]
    rows = json.load(open(pathlib.Path(__file__).parent.parent.parent / "Golden" / "onebit_adam.json"))[str(ranks)]
    expected = [row["m"] for step in SHOWN for name in SIZES for row in rows if row["step"] == step and row["tensor"] == name and "m" in row]
    expected += [row[key] for row in rows if "worker" in row for key in ("worker", "server")]
    count = 0
    assert len(printed) == len(expected), (len(printed), len(expected))
    for got, wanted in zip(printed, expected):
        assert len(got) == len(wanted) and all(abs(a - b) <= 1e-6 for a, b in zip(got, wanted)), (got, wanted)
        count += len(wanted)
    print("%d numbers within 1e-6" % count)


if __name__ == "__main__":
    ranks, folder = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    if sys.argv[3] == "compare":
        compare(ranks, sys.stdin.read())
    else:
        folder.mkdir(exist_ok=True)
        (folder / ("%d.mlir" % ranks)).write_text(program(ranks))
        (folder / ("%d.txt" % ranks)).write_text(" ".join("%.17g" % number for number in inputs(ranks)))
