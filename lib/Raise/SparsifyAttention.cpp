//===- SparsifyAttention.cpp - gives attention the blocks of DeepSpeed's layouts --------------===//
//
// Self-attention is told from cross-attention by what its queries and keys depend on: inputs of the function and
// earlier attentions. These are the same for both operands of self-attention; in a decoder, queries of cross-attention
// depend on the decoder's self-attention before it, which keys, made from the encoder's output, do not.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Raise/Sight.h"
#include "partita/Raise/Matmuls.h"
#include "partita/Raise/Passes.h"
#include "partita/Support/Sparsity.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <set>

namespace partita {
#define GEN_PASS_DEF_SPARSIFYATTENTION
#include "partita/Raise/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::raise;

namespace {

/// What every value depends on: the function's arguments and the attentions before it, by number. Values are noted in
/// program order.
class Sources {
public:
  /// Notes the op's results.
  void note(Operation *op) {
    llvm::BitVector all;
    for (Value operand : op->getOperands())
      all |= of(operand);
    if (isa<tx::AttentionOp>(op))
      addNew(all);
    for (Value result : op->getResults())
      sources[result] = all;
  }
  const llvm::BitVector &of(Value value) {
    auto [known, isNew] = sources.try_emplace(value);
    if (isNew && isa<BlockArgument>(value))
      addNew(known->second);
    return known->second;
  }
  bool areSame(Value a, Value b) {
    llvm::BitVector difference = of(a);
    difference ^= of(b);
    return difference.none();
  }

private:
  void addNew(llvm::BitVector &set) {
    set.resize(std::max<unsigned>(set.size(), count + 1));
    set.set(count++);
  }
  llvm::DenseMap<Value, llvm::BitVector> sources;
  unsigned count = 0;
};

/// The attentions of a function.
struct Attentions {
  SmallVector<tx::AttentionOp> self, cross;
  Operation *unrecognized = nullptr;

  explicit Attentions(func::FuncOp function) {
    Independent independent(function);
    Sources sources;
    function.walk([&](Operation *op) {
      if (auto attention = dyn_cast<tx::AttentionOp>(op)) {
        bool isSelf =
            sources.areSame(attention.getQ(), attention.getK()) &&
            attention.getQ().getType().getDimSize(1) == attention.getK().getType().getDimSize(1);
        (isSelf ? self : cross).push_back(attention);
      }
      auto softmax = dyn_cast<tx::SoftmaxOp>(op);
      if (softmax && !unrecognized && findScores(softmax.getX(), independent) &&
          softmax.getX().getType().getShape().back() > 1)
        unrecognized = op;
      sources.note(op);
    });
  }
};

/// "block=8, block=16 do": the divisors of the sequence next to `block`, and the most usual sizes of blocks.
std::string blocksThatDivide(int64_t sequence, int64_t block) {
  std::set<int64_t> divisors;
  for (int64_t size : {128, 64, 32, 16, 8})
    if (sequence % size == 0 && divisors.size() < 3)
      divisors.insert(size);
  auto addNext = [&](int64_t size, int64_t end, int64_t step) {
    while (size != end && sequence % size != 0)
      size += step;
    if (size != end)
      divisors.insert(size);
  };
  addNext(std::min(block, sequence), 1, -1);
  if (block < sequence)
    addNext(block, sequence, 1);
  if (divisors.empty())
    return "no block but 1 and " + std::to_string(sequence) + " does";
  auto named = [](int64_t size) { return "block=" + std::to_string(size); };
  return llvm::join(llvm::map_range(divisors, named), ", ") +
         (divisors.size() == 1 ? " does" : " do");
}

tx::BlocksAttr attributeOf(MLIRContext *context, int64_t size, const HeadPatterns &patterns) {
  SmallVector<tx::BlockPatternAttr> attributes;
  for (const BlockPattern &pattern : patterns.patterns)
    attributes.push_back(
        tx::BlockPatternAttr::get(context, pattern.lower, pattern.terms, pattern.blocks));
  return tx::BlocksAttr::get(context, size, attributes, patterns.ofHead);
}

struct SparsifyAttentionPass : partita::impl::SparsifyAttentionBase<SparsifyAttentionPass> {
  using Base::Base;
  void runOnOperation() override;

private:
  LogicalResult sparsify(tx::AttentionOp op);
  LogicalResult run(ModuleOp module);
  void warn(ArrayRef<tx::AttentionOp> self, ArrayRef<tx::AttentionOp> cross);

  Sparsity sparsity;
  std::map<std::pair<int64_t, int64_t>, tx::BlocksAttr> known; ///< by blocks and heads
};

} // namespace

LogicalResult SparsifyAttentionPass::sparsify(tx::AttentionOp op) {
  int64_t sequence = op.getQ().getType().getDimSize(1), heads = op.getQ().getType().getDimSize(2);
  if (op.getBlocksAttr())
    return op.emitError() << "has blocks already; run sparsify-attention once";
  if (sequence % sparsity.block != 0)
    return op.emitError() << "sparse attention: block=" << sparsity.block
                          << " does not divide the sequence of " << sequence << "; "
                          << blocksThatDivide(sequence, sparsity.block)
                          << ", or choose another --dim";
  int64_t n = sequence / sparsity.block;
  tx::BlocksAttr &blocks = known[{n, heads}];
  if (!blocks) {
    HeadPatterns patterns;
    if (std::string problem = layOut(sparsity, n, heads, patterns); !problem.empty())
      return op.emitError() << "sparse attention: " << problem;
    blocks = attributeOf(op.getContext(), sparsity.block, patterns);
  }
  // Every mode computes the diagonal; check-visible-keys knows what the model's own mask hides of it.
  op.setBlocksAttr(blocks);
  ++numSparse;
  return success();
}

/// Says what a user may not expect: once for the model, not for each layer.
void SparsifyAttentionPass::warn(ArrayRef<tx::AttentionOp> self, ArrayRef<tx::AttentionOp> cross) {
  if (!cross.empty())
    cross.front()->emitWarning()
        << "sparse attention: " << cross.size()
        << (cross.size() == 1 ? " attention stays" : " attentions stay")
        << " dense, whose keys come from elsewhere than the queries (cross-attention, cached keys)";
  if (!sparsity.unidirectional)
    return;
  llvm::DenseMap<Value, bool> known; // layers share a bias
  const auto *open = llvm::find_if(self, [&](tx::AttentionOp op) {
    auto [seesLater, isNew] = known.try_emplace(op.getCausal() ? Value() : op.getBias());
    if (isNew)
      seesLater->second = seesLaterKeys(op);
    return seesLater->second;
  });
  if (open != self.end())
    (*open)->emitWarning() << "sparse attention: attention=unidirectional hides blocks of later "
                              "tokens, but the model is not causal: a token still sees later ones "
                              "of its own block, as in DeepSpeed";
}

LogicalResult SparsifyAttentionPass::run(ModuleOp module) {
  SmallVector<tx::AttentionOp> self, cross;
  for (auto function : module.getOps<func::FuncOp>()) {
    Attentions attentions(function);
    if (Operation *op = attentions.unrecognized)
      return op->emitError() << "sparse attention: this softmax of scores was not raised to "
                                "tx.attention and would stay dense; 'partita import --report' says "
                                "why";
    llvm::append_range(self, attentions.self);
    llvm::append_range(cross, attentions.cross);
  }
  if (self.empty())
    return (cross.empty() ? module.getOperation() : cross.front().getOperation())->emitError()
           << "sparse attention: the model has no "
           << (cross.empty() ? "attention" : "self-attention, only attention to other keys")
           << "; leave --sparse-attention out";
  for (tx::AttentionOp op : self)
    if (failed(sparsify(op)))
      return failure();
  warn(self, cross);
  return success();
}

void SparsifyAttentionPass::runOnOperation() {
  if (layout.empty())
    return;
  known.clear();
  std::string text = llvm::join(layout, ",");
  if (std::string problem = parseSparsity(text, sparsity); !problem.empty()) {
    getOperation().emitError() << "sparse attention: " << problem;
    return signalPassFailure();
  }
  if (failed(run(getOperation())))
    signalPassFailure();
}
