//===- SequenceSplit.h - splits along the sequence --------------------------------------*- C++ -*-===//
//
// Tensor parallelism leaves values full between a row-parallel matmul and the next column-parallel
// one. These can be split over the same axis, along the outermost dimension of the data that is not
// the batch (Korthikanti et al., arXiv 2205.05198): either everything in between, or what some ops
// need.
//
//   1. Forward, op by op: if an operand is split and the axis splits no letter of the op yet, the
//      op's results are split as well, unless the rule forbids it.
//   2. If ops on shards end in gathers of more bytes than their operands have, they run on full
//      values after one gather of the operands: key heads that all ranks need, from rows that are
//      gathered for the queries anyway; both norms of a block with parallel branches.
//   3. Backward: an operand that a split op needs split, and no other op needs full, is split where
//      it is computed (positions, biases along the sequence).
//   4. Where a use needs another placement than its definition has, a narrow or gather is inserted.
//      par's canonicalization does the rest: a sum over ranks followed by a narrow becomes a
//      reduce-scatter, and a gather followed by f becomes one all-gather.
//
// Context parallelism (runFromInputs, ContextSplit.cpp) splits sequences from the inputs on, over an axis of its
// own: step 1 begins where an op joins a parameter to data that has an input's sequence (tokens to their
// embeddings), and an input is split itself if everything that uses it works on shards. Other inputs, such as the
// mask of the keys that every query sees, are full on each rank.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_PARTITION_SEQUENCESPLIT_H
#define PARTITA_LIB_PARTITION_SEQUENCESPLIT_H

#include "lib/Partition/Propagation.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace partita {

/// What an axis, tp or cp, splits in an unpartitioned program, with its batch split into samples, so that the
/// rest of a dimension is not the batch.
struct SampleSplits {
  explicit SampleSplits(mlir::ModuleOp module, llvm::StringRef axis = par::kTensorAxis);
  /// Propagates the splits of parameters and of the batch. Fails after an error if an op's rule is
  /// wrong.
  mlir::LogicalResult run();

  mlir::ModuleOp module;
  mlir::StringAttr axis, batch;
  par::MeshAttr mesh; ///< of both axes
  int64_t outer = 1;  ///< ranks among which other axes, around this one or inside, split sequences
  std::string outerName;   ///< these axes
  int64_t dealt = 1;       ///< blocks into which a sequence is cut before the axis splits each
  mlir::StringAttr inside; ///< null, or the axis that splits again what cp splits
  llvm::DenseSet<mlir::OpOperand *> coarse; ///< operands that `inside` leaves whole
  Propagation propagation;
};

class SequenceSplit {
public:
  /// `mirrored`: the two halves of a sequence are split, the second one backwards.
  SequenceSplit(mlir::func::FuncOp function, const SampleSplits &splits, bool mirrored = false)
      : function(function), propagation(splits.propagation), axis(splits.axis), batch(splits.batch),
        mesh(splits.mesh), outer(splits.outer), outerName(splits.outerName), dealt(splits.dealt),
        inside(splits.inside), coarse(splits.coarse), mirrored(mirrored), independent(function) {}

  /// Splits everything after a sum over ranks, as far as possible. Fails after an error if a size
  /// does not divide. Only decides unless `apply`, which inserts gathers and narrows.
  mlir::LogicalResult run(bool apply);
  /// Splits what these ops of one operand read and make, and what is computed only for them; their
  /// results are gathered for other ops. Values whose size does not divide stay full. The gathers
  /// and narrows get the unit attribute `mark`.
  mlir::LogicalResult runOn(llvm::function_ref<bool(mlir::Operation *)> isWanted,
                            llvm::StringRef mark);

  /// Splits the sequences of inputs over the context axis, and everything that has them. Notes on
  /// an input that it is split (kArgumentSplit). Only decides unless `apply`, which inserts gathers and narrows.
  mlir::LogicalResult runFromInputs(bool apply);
  /// Once it is decided: returns the first op whose operand has to be gathered, in this pass or as a gradient in the
  /// backward pass; null if there is none.
  mlir::Operation *findExchange();
  /// Returns the letter that an op is split along; none if it works on full values.
  std::optional<unsigned> letterOf(mlir::Operation *op) const {
    auto found = entered.find(op);
    return found == entered.end() ? std::optional<unsigned>() : found->second.letter;
  }

  /// Did a run fail because ranks do not divide a size?
  bool doesNotDivide() const { return indivisible; }

  /// Is this one of the exchanges around an attention whose sequences are split?
  bool isNeeded(par::AllToAllOp op) const { return exchanged.contains(op); }

  unsigned openSums = 0, gathers = 0, narrows = 0, inputs = 0;

private:
  /// A dimension of a value, split within each of `blocks` blocks of it; over `inside`, too, unless it is `isCoarse`.
  struct Cut {
    unsigned dim = 0;
    int64_t blocks = 1;
    bool isCoarse = false;
    bool sameOutside(const Cut &other) const { return dim == other.dim && blocks == other.blocks; }
    bool operator==(const Cut &other) const {
      return sameOutside(other) && isCoarse == other.isCoarse;
    }
    bool operator!=(const Cut &other) const { return !(*this == other); }
  };
  using MaybeCut = std::optional<Cut>;

  llvm::SmallVector<mlir::Operation *> opsWithRules();
  mlir::LogicalResult complete(llvm::ArrayRef<mlir::Operation *> ops, bool apply);

  // Deciding what is split.
  std::optional<par::LetterSplit> tensorLetter(mlir::Operation *op);
  mlir::LogicalResult forward(mlir::Operation *op);
  mlir::LogicalResult enterAlone(mlir::Operation *op);
  mlir::LogicalResult openSum(mlir::Operation *op, unsigned summed);
  int64_t batchBlocks(mlir::Value value, unsigned dim);
  par::Blocks placed(Cut cut) const;
  bool isOfData(mlir::Operation *op, unsigned letter);
  static bool isOfPart(const ShardRule &rule, unsigned letter);
  std::optional<par::LetterSplit> mayEnter(mlir::Operation *op, const RulePattern &pattern,
                                           Cut cut);
  mlir::LogicalResult enter(mlir::Operation *op, par::LetterSplit letter, bool isCoarse = false);
  int64_t sizeOf(mlir::Operation *op, par::LetterSplit letter) const;
  mlir::LogicalResult divides(mlir::Operation *op, par::LetterSplit letter);
  bool isInput(int64_t size);
  MaybeCut cutOf(mlir::Operation *op, const RulePattern &pattern, par::LetterSplit letter);
  mlir::LogicalResult backward(mlir::Operation *op);
  MaybeCut wanted(mlir::OpOperand &use);

  // Beginning at the inputs.
  void findSequences(mlir::Block &block);
  mlir::LogicalResult follow(mlir::Operation *op);
  void exchange(mlir::Operation *op);
  bool joinsParameter(mlir::Operation *op, unsigned letter);
  MaybeCut wantedOf(mlir::Value value);
  mlir::LogicalResult settleInput(mlir::BlockArgument argument, bool apply);

  // Gathering earlier.
  void leaveBehind(mlir::Value value);
  void collectUsers(mlir::Value value, llvm::function_ref<bool(mlir::Value)> comesFrom,
                    llvm::SetVector<mlir::Operation *> &users);

  // Inserting moves.
  void settleUses(mlir::Operation *op);
  mlir::Value narrow(mlir::Value value, Cut cut, mlir::Operation *behind,
                     mlir::Operation *before = nullptr);
  mlir::Value narrowOver(mlir::StringAttr over, mlir::Value value, Cut cut, mlir::Operation *behind,
                         mlir::Operation *before);
  mlir::Value gather(mlir::Value value, Cut cut, mlir::Operation *before);
  mlir::Value gatherOver(mlir::StringAttr over, mlir::Value value, Cut cut,
                         mlir::Operation *before);

  mlir::func::FuncOp function;
  llvm::StringRef mark;
  const Propagation &propagation;
  mlir::StringAttr axis, batch;
  par::MeshAttr mesh;
  int64_t outer;
  std::string outerName;
  int64_t dealt;
  mlir::StringAttr inside;
  const llvm::DenseSet<mlir::OpOperand *> &coarse;
  bool mirrored;
  bool indivisible = false;
  DataIndependence independent;
  llvm::DenseSet<mlir::Value> ofParameters;    ///< values that depend on parameters, and on no data
  llvm::DenseSet<mlir::Operation *> exchanged; ///< of the AllToAllOps, those of split sequences
  /// Where the sequence of an input is in values that may or may not be split along it.
  llvm::DenseMap<mlir::Value, Cut> sequences;
  llvm::DenseMap<mlir::Value, Cut> cuts;
  llvm::DenseSet<mlir::Value> open; ///< open sums; their cuts apply to the narrows that follow
  llvm::DenseMap<mlir::Operation *, par::LetterSplit> entered;
  llvm::DenseSet<mlir::Operation *> enteredCoarse; ///< of these, those whose cuts are coarse
  llvm::DenseMap<std::pair<mlir::Value, mlir::Block *>, llvm::SmallDenseMap<unsigned, mlir::Value>>
      narrowed;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Block *>, mlir::Value> gathered;
};

} // namespace partita

#endif // PARTITA_LIB_PARTITION_SEQUENCESPLIT_H
