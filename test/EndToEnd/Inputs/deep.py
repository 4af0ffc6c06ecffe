"""deep.py LAYERS: a module of as many residual layers, without weights."""
import sys

layers, rows, width = int(sys.argv[1]), 64, 32
small, large = f"tensor<{rows}x{width}xf32>", f"tensor<{rows}x{4 * width}xf32>"
up, down = f"tensor<{width}x{4 * width}xf32>", f"tensor<{4 * width}x{width}xf32>"
for i in range(layers):
    print(f"train.parameter @up{i} : {up}\ntrain.parameter @down{i} : {down}")
print(f"func.func @forward(%x: {small}) -> {small} attributes {{train.entry_point = #train.entry_point<forward>}} {{")
print(f'  %s = tx.relu %x : ({small}) -> {small} loc("start")')
before = "%s"
for i in range(layers):
    print(f"  %u{i} = train.read @up{i} : {up}\n  %d{i} = train.read @down{i} : {down}")
    print(f'  %a{i} = tx.matmul {before}, %u{i} : ({small}, {up}) -> {large} loc("/h.{i}/up")')
    print(f'  %b{i} = tx.gelu_tanh %a{i} : ({large}) -> {large} loc("/h.{i}/act")')
    print(f'  %c{i} = tx.matmul %b{i}, %d{i} : ({large}, {down}) -> {small} loc("/h.{i}/down")')
    print(f'  %y{i} = tx.add {before}, %c{i} : ({small}, {small}) -> {small} loc("/h.{i}/add")')
    before = f"%y{i}"
print(f"  return {before} : {small}\n}}")
