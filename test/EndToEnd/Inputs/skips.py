"""Prints a module of ten blocks with the skip connections of a U-shaped network: the output of one of the first five is added to the stream later,
joined with it and projected, multiplied by a gate that depends on the stream and added, or normalized and added."""
WIDTH, ROWS = 16, "4x8"
VALUE, WIDE = f"tensor<{ROWS}x{WIDTH}xf32>", f"tensor<{ROWS}x{2 * WIDTH}xf32>"
MATRIX, TALL, VECTOR = f"tensor<{WIDTH}x{WIDTH}xf32>", f"tensor<{2 * WIDTH}x{WIDTH}xf32>", f"tensor<{WIDTH}xf32>"
TABLE, LOGITS = f"tensor<64x{WIDTH}xf32>", f"tensor<{ROWS}x64xf32>"
parameters, body = [f"  train.parameter @table : {TABLE} fill(<0.0, normal 0.5>)"], []


def weight(name, type, fill="<0.0, normal 0.3>"):
    parameters.append(f"  train.parameter @{name} : {type} fill({fill})")
    return op(f"{name}_read", f"train.read @{name} : {type}")


def op(name, text, results=""):
    body.append(f'    %{name}{results} = {text} loc("{name}")')
    return f"%{name}" + "#0" * bool(results)


def binary(kind, name, a, b):
    return op(name, f"tx.{kind} {a}, {b} : ({VALUE}, {VALUE}) -> {VALUE}")


def unary(kind, name, x):
    return op(name, f"tx.{kind} {x} : ({VALUE}) -> {VALUE}")


def matmul(name, x, type=VALUE, matrix=MATRIX):
    return op(name, f"tx.matmul {x}, {weight(name + '_w', matrix)} : ({type}, {matrix}) -> {VALUE}")


def norm(name, x):
    gain = weight(name + "_gain", VECTOR, "<1.0, normal 0.1>")
    return op(name, f"tx.rms_norm {x}, {gain} eps 1.0e-6 : ({VALUE}, {VECTOR}) -> ({VALUE}, tensor<{ROWS}xf32>)", ":2")


def block(i, x):
    for half in "ab":
        inner = unary("gelu", f"{half}{i}_gelu", matmul(f"{half}{i}_up", norm(f"{half}{i}_norm", x)))
        x = binary("add", f"{half}{i}", x, matmul(f"{half}{i}_down", inner))
    return x


def connect(i, kind, x, skipped):
    if kind == "joined":
        both = op(f"join{i}", f"tx.concat {x}, {skipped} along 2 : ({VALUE}, {VALUE}) -> {WIDE}")
        return matmul(f"project{i}", both, WIDE, TALL)
    if kind == "gated":
        skipped = binary("mul", f"gated{i}", unary("sigmoid", f"gate{i}", matmul(f"gate{i}_in", x)), skipped)
    if kind == "normalized":
        skipped = norm(f"own{i}", skipped)
    return binary("add", f"skip{i}", x, skipped)


x, waiting = op("x", f"tx.embedding %table, %ids : ({TABLE}, tensor<{ROWS}xi64>) -> {VALUE}"), []
for i, kind in enumerate(["", "", "", "", "", "gated", "added", "joined", "gated", "normalized"]):
    x = block(i, connect(i, kind, x, waiting.pop()) if kind else x)
    if not kind:
        waiting.append(x)
logits = op("logits", f"tx.matmul {norm('last', x)}, {weight('head', f'tensor<{WIDTH}x64xf32>')} : ({VALUE}, tensor<{WIDTH}x64xf32>) -> {LOGITS}")
ids = f'%ids: tensor<{ROWS}xi64> {{train.name = "input_ids"}}'
print("module {", *parameters, f'  func.func @forward({ids}) -> ({LOGITS} {{train.name = "logits"}}) attributes '
      "{train.entry_point = #train.entry_point<forward>} {", f"    %table = train.read @table : {TABLE}", *body,
      f"    return {logits} : {LOGITS}", "  }", "}", sep="\n")
