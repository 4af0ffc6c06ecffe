"""Prints for models of six layers how many stages note-costs measures, and whether it finds the costs that it finds if every layer is measured."""
import re
import subprocess
import sys

LAYERS = 6
X, W = "tensor<2x4xf32>", "tensor<4x4xf32>"


def model(frozen=None, shared=(), leaky=None, skip=None, reach=1):
    """A layer: x + tanh(dropout(x W)). Layer `frozen` has a frozen weight; the `shared` layers one weight; `leaky` another function; layer
    `skip[1]` also reads what layer `skip[0]` returns, and each layer what those up to `reach` layers before it return."""
    weight = {i: shared[0] if i in shared else i for i in range(LAYERS)}
    text = [f"train.parameter @w{i} : {W}" + (" frozen" if i == frozen else "") for i in sorted(set(weight.values()))]
    text += [f"func.func @train_step(%xs: tensor<4x2x4xf32>) -> tensor<f32> attributes {{train.entry_point = #train.entry_point<train_step>}} {{",
             "%key = train.random_key : tensor<i64>", "%numbers = tx.iota 0.0, 1.0 : tensor<4xi64>"]
    text += [f"%w{i} = train.read @w{i} : {W}" for i in sorted(set(weight.values()))]
    text += ["%loss = train.accumulate (%x = %xs, %micro = %numbers) : (tensor<4x2x4xf32>, tensor<4xi64>) -> tensor<f32> {"]
    before = ["%x"]
    for i in range(LAYERS):
        layer = f"{{train.layer = #train.layer<{i} of {LAYERS}>}}"
        text += [f"%m{i} = tx.matmul {before[-1]}, %w{weight[i]} {layer} : ({X}, {W}) -> {X}",
                 f"%d{i} = tx.dropout %m{i} ratio 0.1 id {i} key %key micro %micro {layer} : ({X}, tensor<i64>, tensor<i64>) -> {X}",
                 f"%t{i} = tx.{'exp' if i == leaky else 'tanh'} %d{i} {layer} : ({X}) -> {X}"]
        read = before[-reach:] + ([f"%r{skip[0]}"] if skip and i == skip[1] else [])
        sum_ = f"%t{i}"
        for number, value in enumerate(read):
            name = f"%r{i}" if number == len(read) - 1 else f"%s{i}_{number}"
            text.append(f"{name} = tx.add {sum_}, {value} {layer} : ({X}, {X}) -> {X}")
            sum_ = name
        before.append(sum_)
    after = f"{{train.layer = #train.layer<-2 of {LAYERS}>}}"
    return "\n".join(text + [f"%l = tx.reduce_sum {before[-1]} [0, 1] {after} : {X} -> tensor<f32>", "train.yield %l : tensor<f32>", "}",
                             "train.minimize %loss : tensor<f32>", "return %loss : tensor<f32>", "}"])


def costs(text, schedule, options):
    done = subprocess.run(["partita-opt", "--note-flops", f"--choose-schedule=stages=2 schedule={schedule}", f"--note-costs={options}",
                           "--pass-statistics"], input=text, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    measured = re.search(r"note-costs: (\d+) measured", done.stderr)
    return int(measured[1]), re.findall(r"#train.span<.*?>", done.stdout)


for name, options in {"alike": {}, "frozen": {"frozen": 3}, "shared": {"shared": (2, 3)}, "function": {"leaky": 3}, "skip": {"skip": (2, 4)},
                      "reach": {"reach": 2}}.items():
    for schedule in "gpipe", "zb-h1":
        text = model(**options)
        once, spans = costs(text, schedule, "")
        each, expected = costs(text, schedule, "budget=1000000000")
        print(f"{name} {schedule}: {once} of {each} measured, {len(spans)} spans,", "same costs" if spans == expected else f"not {expected}")
