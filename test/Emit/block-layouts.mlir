// RUN: partita-opt %s --rt-to-emitc | FileCheck %s

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
rt.block_layouts @attention_blocks <2, [band 0 to 0, rows 0 to 2 by 2 width 1, block 1 3, block 3 0] lower> of 8
