"""inject.py FAULT IN.mlir OUT.mlir: a mistake that people make by hand, put into a differentiated program."""

import re
import sys

fault, source, target = sys.argv[1:]
with open(source) as file:
    text = file.read()
UPDATE = r"train\.update @{}, %\S+ by (%\S+) (?:{{.*}} )?: \S+, (\S+)"


def gradient(parameter):
    """Where the gradient of a parameter stands in the text; its name; its type."""
    match = re.search(UPDATE.format(re.escape(parameter)), text)
    return match.span(1), match[1], match[2]


def replace(span, new):
    return text[: span[0]] + new + text[span[1] :]


BIASES = "transformer.h.0.ln_1.bias", "transformer.h.0.ln_2.bias"
if fault == "swapped":  # two gradients of one shape
    (first, a, _), (second, b, _) = map(gradient, BIASES)
    text = replace(second, a)
    text = replace(first, b)
elif fault == "doubled":  # a mean taken for a sum
    span, name, kind = gradient("transformer.h.1.mlp.c_fc.weight")
    line = text.rindex("\n", 0, span[0]) + 1
    text = replace(span, "%doubled")
    layer = re.search(r"train\.layer = #train\.layer<[^>]*>", text[line:])[0]
    text = text[:line] + f"    %doubled = tx.add {name}, {name} {{train.backward, {layer}}} : ({kind}, {kind}) -> {kind}\n" + text[line:]
elif fault == "offset":  # the values of a fused projection taken for its keys
    start = text.index("func.func @forward")
    text = text[:start] + text[start:].replace("[0, 0, 32] by", "[0, 0, 64] by", 1)
elif fault == "unreduced":  # the sum over ranks left out
    _, name, _ = gradient(BIASES[0])
    part, kind = re.search(rf"{name} = par\.all_reduce (\S+) over .* : (tensor<.*>) -> ", text).groups()
    text = re.sub(rf"by {name} ({{.*}} )?: (\S+), \S+", rf"by {part} \1: \2, {kind}", text)
elif fault == "faster":  # Lion moves one bias twice as far
    start = text.index("func.func @train_step")
    name = re.search(r"(%\d+) = train\.read @transformer\.h\.0\.attn\.c_attn\.bias ", text[start:])[1]
    text, count = re.subn(rf"(train\.lion {name}, .*){{", r"\1{rate_scale = 2.0 : f64, ", text)
    assert count == 1, count
elif fault == "initial":  # one parameter starts as another
    text, count = re.subn(f"train.initial_value @{re.escape(BIASES[0])} ", f"train.initial_value @{BIASES[1]} ", text)
    assert count == 1, count
else:
    sys.exit(f"no fault '{fault}'")
with open(target, "w") as file:
    file.write(text)
