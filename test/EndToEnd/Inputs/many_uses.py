"""Prints a module whose norms, a dozen, share one scale."""
ROWS = "4x6x8xf32"
print("""module {
  train.parameter @table : tensor<256x8xf32> fill(<0.0, normal 0.5>)
  train.parameter @scale : tensor<8xf32> fill(<1.0, normal 0.1>)
  func.func @forward(%ids: tensor<4x6xi64> {train.name = "input_ids"}) -> (tensor<4x6x256xf32> {train.name = "logits"}) attributes {train.entry_point = #train.entry_point<forward>} {
    %table = train.read @table : tensor<256x8xf32>
    %scale = train.read @scale : tensor<8xf32>
    %x0 = tx.embedding %table, %ids : (tensor<256x8xf32>, tensor<4x6xi64>) -> tensor<4x6x8xf32>""")
for i in range(12):
    print(f"    %y{i}, %r{i} = tx.rms_norm %x{i}, %scale eps 1.0e-6 : "
          f"(tensor<{ROWS}>, tensor<8xf32>) -> (tensor<{ROWS}>, tensor<4x6xf32>)")
    print(f"    %x{i + 1} = tx.add %x{i}, %y{i} : (tensor<{ROWS}>, tensor<{ROWS}>) -> tensor<{ROWS}>")
print(f"""    %logits = tx.matmul_nt %x12, %table : (tensor<{ROWS}>, tensor<256x8xf32>) -> tensor<4x6x256xf32>
    return %logits : tensor<4x6x256xf32>
  }}
}}""")
