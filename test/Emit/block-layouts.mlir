// RUN: partita-opt %s --rt-to-emitc | FileCheck %s
// RUN: (echo 'module attributes {rt.target = "cuda"} {'; cat %s; echo '}') | partita-opt --rt-to-emitc | FileCheck %s --check-prefix=CUDA

// Single blocks are listed twice: by row and by column.
// CHECK:      emitc.verbatim "// The layout of block-sparse attention: 4 x 4 blocks of 2 positions."
// CHECK-NEXT: emitc.verbatim "static BlockLayouts attention_blocks() {"
// CHECK-NEXT: emitc.verbatim "  static const BlockTerm terms[] = {"
// CHECK-NEXT: emitc.verbatim "      {BlockTermKind::Band, 0, 0}, {BlockTermKind::Rows, 0, 2, 2, 1},"
// CHECK-NEXT: emitc.verbatim "  };"
// CHECK-NEXT: emitc.verbatim "  static const BlockPair by_row[] = {"
// CHECK-NEXT: emitc.verbatim "      {1, 3}, {3, 0},"
// CHECK-NEXT: emitc.verbatim "  };"
// CHECK-NEXT: emitc.verbatim "  static const BlockPair by_column[] = {"
// CHECK-NEXT: emitc.verbatim "      {3, 0}, {1, 3},"
// CHECK-NEXT: emitc.verbatim "  };"
// CHECK-NEXT: emitc.verbatim "  static const BlockLayout layouts[] = {"
// CHECK-NEXT: emitc.verbatim "      {2, 4, true, 2, terms, 2, by_row, by_column},"
// CHECK-NEXT: emitc.verbatim "  };"
// CHECK-NEXT: emitc.verbatim "  return {layouts};"
// CHECK-NEXT: emitc.verbatim "}"

// On a GPU all tables are in its memory, and name each other there.
// CUDA:      emitc.verbatim "static __device__ const BlockTerm attention_blocks_terms[] = {"
// CUDA-NEXT: emitc.verbatim "    {BlockTermKind::Band, 0, 0}, {BlockTermKind::Rows, 0, 2, 2, 1},"
// CUDA-NEXT: emitc.verbatim "};"
// CUDA-NEXT: emitc.verbatim "static __device__ const BlockPair attention_blocks_by_row[] = {"
// CUDA-NEXT: emitc.verbatim "    {1, 3}, {3, 0},"
// CUDA-NEXT: emitc.verbatim "};"
// CUDA-NEXT: emitc.verbatim "static __device__ const BlockPair attention_blocks_by_column[] = {"
// CUDA-NEXT: emitc.verbatim "    {3, 0}, {1, 3},"
// CUDA-NEXT: emitc.verbatim "};"
// CUDA-NEXT: emitc.verbatim "static __device__ const BlockLayout attention_blocks_layouts[] = {"
// CUDA-NEXT: emitc.verbatim "    {2, 4, true, 2, attention_blocks_terms, 2, attention_blocks_by_row, attention_blocks_by_column},"
// CUDA-NEXT: emitc.verbatim "};"
// CUDA-NEXT: emitc.verbatim "static BlockLayouts attention_blocks() {"
// CUDA-NEXT: emitc.verbatim "  return {deviceTable(attention_blocks_layouts)};"
// CUDA-NEXT: emitc.verbatim "}"
rt.block_layouts @attention_blocks <2, [band 0 to 0, rows 0 to 2 by 2 width 1, block 1 3, block 3 0] lower> of 8
