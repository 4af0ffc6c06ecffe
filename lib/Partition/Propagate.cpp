//===- Propagate.cpp - splits follow the letters, to a fixpoint
//---------------------------------------===//
//
// Every value has, per dimension, the axes that split it; the seeds give the first. Sweeping
// forward and backward over a function, each op unites its dimensions that carry one letter: what
// splits one of them splits all. A letter that cannot be split ('^'), an axis that already splits
// another letter of the op, and a size that does not divide stop it there; materialization then
// says what is missing.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Par/Placement.h"
#include "dialects/Train/Train.h"
#include "lib/Partition/Flow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Partition/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PARTITIONPROPAGATEPASS
#include "partita/Partition/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

using Axes = SmallVector<StringAttr, 2>;

/// The splits of the values of one function.
class Propagation {
public:
  explicit Propagation(par::MeshAttr mesh) : mesh(mesh) {}

  LogicalResult run(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments())
      if (auto split = function.getArgAttrOfType<par::PlacementAttr>(argument.getArgNumber(),
                                                                     kArgumentSplit)) {
        auto type = RankedTensorType::get(split.getShape(),
                                          IntegerType::get(function.getContext(), 32), split);
        splits[argument] = par::Layout::of(type).splits;
      }
    SmallVector<Operation *> ops;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      if (hasRule(op) && failed(parse(op)))
        return failure();
    do {
      changed = false;
      for (Operation *op : ops)
        visit(op);
      for (Operation *op : llvm::reverse(ops))
        visit(op);
    } while (changed);
    for (Operation *op : ops)
      if (hasRule(op))
        annotate(op);
    return success();
  }

private:
  LogicalResult parse(Operation *op) {
    std::string error;
    auto rule = par::ruleOf(op, error);
    if (!rule)
      return op->emitError() << error;
    rules.try_emplace(op, std::move(*rule));
    return success();
  }

  ArrayRef<StringAttr> axesOf(Value value, unsigned dim) {
    auto found = splits.find(value);
    return found == splits.end() ? ArrayRef<StringAttr>()
                                 : ArrayRef<StringAttr>(found->second[dim]);
  }

  /// Splits a dimension of a value over `axis` too, if that is possible.
  void split(Value value, unsigned dim, StringAttr axis) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return;
    auto &dims = splits.try_emplace(value, type.getRank()).first->second;
    int64_t size = type.getDimSize(dim) / mesh.sizeOf(axis.getValue());
    for (auto &axes : dims)
      if (llvm::is_contained(axes, axis))
        return;
    for (StringAttr other : dims[dim])
      size /= mesh.sizeOf(other.getValue());
    if (size == 0)
      return;
    dims[dim].push_back(axis);
    changed = true;
  }

  void visit(Operation *op) {
    if (hasRule(op))
      return visitRule(op);
    for (auto &edges : {entryEdges(op), exitEdges(op)})
      for (const FlowEdge &edge : edges)
        unite(edge);
  }

  void unite(const FlowEdge &edge) {
    int64_t rank = cast<RankedTensorType>(edge.inner.getType()).getRank();
    for (int64_t i = 0; i < rank; ++i) {
      for (StringAttr axis : Axes(axesOf(edge.outer, i + edge.dropped)))
        split(edge.inner, i, axis);
      for (StringAttr axis : Axes(axesOf(edge.inner, i)))
        split(edge.outer, i + edge.dropped, axis);
    }
  }

  void visitRule(Operation *op) {
    const ShardRule &rule = rules.find(op)->second;
    SmallVector<Axes> letters(rule.letters.size());
    llvm::DenseMap<StringAttr, unsigned> taken;
    auto forEach = [&](auto act) {
      for (auto [pattern, value] : llvm::zip(rule.operands, op->getOperands()))
        for (auto [i, dim] : llvm::enumerate(pattern.dims))
          if (dim.outermost() >= 0)
            act(value, static_cast<unsigned>(i), static_cast<unsigned>(dim.outermost()));
      for (auto [pattern, value] : llvm::zip(rule.results, op->getResults()))
        for (auto [i, dim] : llvm::enumerate(pattern.dims))
          if (dim.outermost() >= 0)
            act(value, static_cast<unsigned>(i), static_cast<unsigned>(dim.outermost()));
    };
    forEach([&](Value value, unsigned dim, unsigned letter) {
      for (StringAttr axis : axesOf(value, dim))
        if (!rule.letters[letter].never &&
            taken.try_emplace(axis, letter).first->second == letter &&
            !llvm::is_contained(letters[letter], axis))
          letters[letter].push_back(axis);
    });
    forEach([&](Value value, unsigned dim, unsigned letter) {
      for (StringAttr axis : letters[letter])
        split(value, dim, axis);
    });
  }

  void annotate(Operation *op) {
    SmallVector<Attribute> placements;
    bool any = false;
    for (Value result : op->getResults()) {
      par::Layout layout(cast<RankedTensorType>(result.getType()).getShape());
      if (auto found = splits.find(result); found != splits.end())
        layout.splits = found->second;
      Attribute placement = layout.encoding(op->getContext());
      any |= static_cast<bool>(placement);
      placements.push_back(placement ? placement : UnitAttr::get(op->getContext()));
    }
    if (any)
      op->setAttr(kResultSplits, ArrayAttr::get(op->getContext(), placements));
  }

  par::MeshAttr mesh;
  llvm::DenseMap<Operation *, ShardRule> rules;
  llvm::DenseMap<Value, SmallVector<SmallVector<StringAttr>>> splits;
  bool changed = false;
};

struct PartitionPropagate : partita::impl::PartitionPropagatePassBase<PartitionPropagate> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(Propagation(par::MeshAttr::of(getOperation())).run(function)))
        return signalPassFailure();
  }
};

} // namespace
