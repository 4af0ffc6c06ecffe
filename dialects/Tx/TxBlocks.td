//===- TxBlocks.td - which blocks of attention are computed ---------------------------------------===//

#ifndef PARTITA_TX_BLOCKS
#define PARTITA_TX_BLOCKS

include "mlir/IR/AttrTypeBase.td"
include "dialects/Tx/TxBase.td"

def Tx_BlockPatternAttr : AttrDef<Tx_Dialect, "BlockPattern"> {
  let mnemonic = "block_pattern";
  let summary = "the computed blocks of one head: a union of terms and single blocks";
  let description = [{
    In brackets, in blocks; a block is that of row (queries) i and column (keys) j:

    | term | is computed if |
    |---|---|
    | `band -1 to 0` | -1 <= j - i <= 0 |
    | `squares 0 to 8 by 4` | i and j are in the same four of 0 to 7; with `below`, and j <= i |
    | `columns 3 to 8 by 4 width 1` | j is the first one of each four from 3 to 7; with `below`, and i is not before the first of these |
    | `rows 3 to 8 by 4 width 1` | the same with i and j exchanged |
    | `block 3 7` | i = 3, j = 7; ascending |

    `lower` after the brackets cuts all to j <= i. Ends are exclusive, as in partita_rt/block_layout.h, whose terms these are.
  }];
  let parameters = (ins "bool":$lower, ArrayRefParameter<"::partita_rt::BlockTerm">:$terms,
                        ArrayRefParameter<"::partita_rt::BlockPair">:$pairs);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// A view for functions that ask row by row: without the single blocks by column.
    ::partita_rt::BlockLayout rows(int64_t size, int64_t n) const;
  }];
}

def Tx_BlocksAttr : AttrDef<Tx_Dialect, "Blocks"> {
  let mnemonic = "blocks";
  let summary = "which blocks of attention's scores are computed, per head; the others are hidden";
  let description = [{
    Blocks of `size` x `size` positions of self-attention. One pattern for all heads, or several with the number of the one that each
    head has:

        #tx.blocks<16, [band -1 to 0]>
        #tx.blocks<16, [squares 0 to 8 by 4 below, columns 3 to 8 by 4 width 1 below], [band -7 to 7] lower, heads [0, 1, 0, 1]>

    Its size does not depend on the sequence where the pattern is periodic. The sequence is that of the op; `heads` are those of the
    full tensor, also once the op is localized.
  }];
  let parameters = (ins "int64_t":$size, ArrayRefParameter<"::partita::tx::BlockPatternAttr">:$patterns,
                        ArrayRefParameter<"int32_t">:$heads);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Do heads have different patterns?
    bool isPerHead() const { return !getHeads().empty(); }
    BlockPatternAttr patternOf(int64_t head) const { return getPatterns()[isPerHead() ? getHeads()[head] : 0]; }
    /// The share of all blocks of `sequence` positions that is computed, over all heads.
    double density(int64_t sequence) const;
    /// The same of a step of a ring: of the blocks of a rank's queries and of the keys of the rank `behind` places before it, on average over
    /// the ranks.
    double densityOfStep(SharedSequence sequence, int64_t behind) const;
    /// Returns what prevents attention of this shape from having these blocks, or "".
    ::std::string problemFor(int64_t sequence, int64_t keySequence, int64_t heads, OtherMask mask) const;
  }];
}

#endif // PARTITA_TX_BLOCKS
