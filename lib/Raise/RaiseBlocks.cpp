//===- RaiseBlocks.cpp - attention skips the blocks that its mask hides -----------------------===//
//
// For every self-attention with a bias that depends on nothing:
//   1. the bias is evaluated in every element, once per head if heads differ, and blocks without a visible one noted;
//   2. of several sizes of blocks the largest that computes little more than the smallest is taken, and its blocks
//      written as terms (BlockMatrix.h);
//   3. if these blocks, with `causal` and `window`, hide exactly what the bias hides, element by element, and the bias adds
//      nothing to the others, it is dropped; else it stays, and hides elements within blocks.
//
// Only blocks that the bias hides are skipped, so results do not change.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Raise/BlockMatrix.h"
#include "lib/Raise/Remarks.h"
#include "lib/Raise/Sight.h"
#include "partita/Raise/Passes.h"
#include "partita/Raise/Subgraph.h"
#include "partita/Support/HiddenScores.h"

namespace partita {
#define GEN_PASS_DEF_RAISEBLOCKS
#include "partita/Raise/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

constexpr int64_t sizes[] = {128, 64, 32, 16}; // of blocks
/// Of the blocks of ranks whose shares of a sequence no larger one divides: skipping an exchange is worth a slower kernel.
constexpr int64_t sizeInShortShares = 8;
/// A layout is worth it below this share of the blocks that would be computed anyway.
constexpr double worthwhile = 0.9;

/// What one head sees.
struct Seen {
  std::vector<llvm::BitVector> rows;
  bool isPlain = true; ///< visible scores stay as they are

  BlockMatrix blocks(int64_t size) const {
    int64_t n = static_cast<int64_t>(rows.size()) / size;
    BlockMatrix matrix(n);
    for (auto [i, row] : llvm::enumerate(rows))
      for (int j = row.find_first(); j >= 0;
           j = row.find_next(static_cast<int>((j / size + 1) * size - 1)))
        matrix.set(static_cast<int64_t>(i) / size, j / size);
    return matrix;
  }
};

/// What an attention computes.
struct Layout {
  tx::BlocksAttr blocks; ///< null: none is worth it
  bool isExact = false;  ///< the bias says no more
};

class BlockReader {
public:
  explicit BlockReader(tx::AttentionOp op) : op(op), sight(op) {}
  /// What the op's heads see: one for all, or one for each; none if the bias is no mask of scores that this pass reads.
  std::optional<SmallVector<Seen, 0>> read();
  /// Of blocks that each of so many ranks has whole ones of, if they divide the sequence.
  Layout layOut(ArrayRef<Seen> heads, int64_t ranks);

private:
  std::optional<Seen> readHead(int64_t head);
  bool isExact(tx::BlocksAttr blocks, ArrayRef<Seen> heads);

  tx::AttentionOp op;
  Sight sight; ///< its other masks too
};

struct RaiseBlocksPass : partita::impl::RaiseBlocksBase<RaiseBlocksPass> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

std::optional<Seen> BlockReader::readHead(int64_t head) {
  int64_t sequence = op.getQ().getType().getDimSize(1);
  Seen seen;
  seen.rows.assign(sequence, llvm::BitVector(sequence));
  for (int64_t i = 0; i < sequence; ++i) {
    std::optional<std::vector<double>> numbers = sight.row(/*sample=*/0, head, i);
    if (!numbers)
      return std::nullopt;
    for (int64_t j = 0; j < sequence; ++j) {
      if ((*numbers)[j] < kHiddenBelow || !sight.isShown(i, j))
        continue;
      seen.rows[i].set(j);
      seen.isPlain &= (*numbers)[j] == 0;
    }
    if (seen.rows[i].none())
      return std::nullopt; // what such a query yields depends on zero_hidden: leave it
  }
  return seen;
}

std::optional<SmallVector<Seen, 0>> BlockReader::read() {
  int64_t sequence = op.getQ().getType().getDimSize(1), heads = sight.heads();
  bool differsBySample = sight.varies(0), isFlat = op.getBias().getType().getDimSize(2) == 1;
  if (differsBySample || isFlat || sequence > kMostMaskElements / sequence / heads)
    return std::nullopt;
  SmallVector<Seen, 0> all;
  for (int64_t head = 0; head < heads; ++head) {
    std::optional<Seen> seen = readHead(head);
    if (!seen)
      return std::nullopt;
    all.push_back(std::move(*seen));
  }
  return all;
}

/// Does a layout hide, with the op's other masks, what the bias hides, which does nothing else?
bool BlockReader::isExact(tx::BlocksAttr blocks, ArrayRef<Seen> heads) {
  int64_t sequence = op.getQ().getType().getDimSize(1), size = blocks.getSize();
  for (auto [head, seen] : llvm::enumerate(heads)) {
    if (!seen.isPlain)
      return false;
    partita_rt::BlockLayout layout =
        blocks.patternOf(static_cast<int64_t>(head)).rows(size, sequence / size);
    for (int64_t i = 0; i < sequence; ++i)
      for (int64_t j = 0; j < sequence; ++j)
        if (seen.rows[i].test(j) !=
            (sight.isShown(i, j) && isComputed(layout, int32_t(i / size), int32_t(j / size))))
          return false;
  }
  return true;
}

Layout BlockReader::layOut(ArrayRef<Seen> heads, int64_t ranks) {
  int64_t sequence = op.getQ().getType().getDimSize(1), size = 0;
  int64_t run = sequence % ranks == 0 ? sequence / ranks : sequence;
  double least = 0;
  SmallVector<int64_t> candidates(std::begin(sizes), std::end(sizes));
  if (ranks > 1 && run % candidates.back() != 0)
    candidates.push_back(sizeInShortShares);
  for (int64_t each : llvm::reverse(candidates)) { // the smallest computes the least
    if (run % each != 0 || sequence == each)
      continue;
    double computed = 0, all = 0; // blocks; those that the op's other masks leave
    for (int64_t i = 0, n = sequence / each; i < n; ++i)
      for (int64_t j = 0; j < n;
           ++j) // its last row sees what is behind, its first one what is before
        all += (!op.getCausal() || j <= i) &&
               (!op.getWindow() || (j + 1) * each - 1 > i * each - int64_t(*op.getWindow()));
    for (const Seen &seen : heads)
      computed +=
          static_cast<double>(seen.blocks(each).count()) / all / static_cast<double>(heads.size());
    if (size == 0)
      least = computed;
    if (computed < worthwhile && computed <= 1.1 * least)
      size = each;
  }
  if (size == 0)
    return {};
  SmallVector<tx::BlockPatternAttr> patterns;
  SmallVector<int32_t> ofHead;
  SmallVector<BlockMatrix, 0> known;
  for (const Seen &seen : heads) {
    BlockMatrix matrix = seen.blocks(size);
    auto *found = llvm::find(known, matrix);
    ofHead.push_back(static_cast<int32_t>(found - known.begin()));
    if (found != known.end())
      continue;
    patterns.push_back(matrix.compress(op.getContext(), /*mostSingle=*/16 * matrix.size()));
    if (!patterns.back())
      return {};
    known.push_back(std::move(matrix));
  }
  auto blocks = tx::BlocksAttr::get(op.getContext(), size, patterns,
                                    patterns.size() == 1 ? ArrayRef<int32_t>() : ofHead);
  return {blocks, isExact(blocks, heads)};
}

void RaiseBlocksPass::runOnOperation() {
  if (packs >= 0) // what follows reads the biases: may documents be packed?
    return;
  Report report("attention of blocks", remarks, numRaised, numMissed);
  Independent independent(getOperation());
  llvm::DenseMap<std::tuple<Value, int64_t, int64_t>, Layout> known; // layers share a mask
  getOperation().walk([&](tx::AttentionOp op) {
    Value bias = op.getBias();
    bool hasEqualLengths = op.getQ().getType().getDimSize(1) == op.getK().getType().getDimSize(1);
    if (!bias || !hasEqualLengths || op.getBlocksAttr() || !independent.contains(bias))
      return;
    auto [layout, isNew] = known.try_emplace(
        {bias, int64_t(op.getCausal()), static_cast<int64_t>(op.getWindow().value_or(0))});
    if (isNew) {
      ++numChecks;
      BlockReader reader(op);
      if (std::optional<SmallVector<Seen, 0>> heads = reader.read())
        layout->second = reader.layOut(*heads, std::max<int64_t>(ranks, 1));
    }
    if (!layout->second.blocks)
      return;
    op.setBlocksAttr(layout->second.blocks);
    if (layout->second.isExact)
      op.getBiasMutable().clear();
    report.accept(op.getLoc(), "attention of blocks");
  });
  eraseDead(getOperation());
}
