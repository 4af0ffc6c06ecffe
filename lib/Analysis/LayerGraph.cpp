//===- LayerGraph.cpp -----------------------------------------------------------------------------===//

#include "lib/Analysis/LayerGraph.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Train/Train.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::analysis;

LayerGraph::LayerGraph(Block &block) {
  for (Operation &op : block)
    if (!isTransparent(&op))
      ops.push_back(&op);
  for (auto [i, op] : llvm::enumerate(ops))
    indexOf[op] = static_cast<int>(i);
  operands.resize(ops.size());
  users.resize(ops.size());
  dependsOnData.assign(ops.size(), false);
  for (size_t i = 0; i < ops.size(); ++i)
    read(static_cast<int>(i));
}

void LayerGraph::read(int i) {
  auto visit = [&](Value operand) {
    Value value = through(operand);
    if (isa<BlockArgument>(value))
      dependsOnData[i] = true;
    int at = indexOfDefinition(value);
    if (at < 0 || at >= i)
      return;
    operands[i].push_back(at);
    addUser(at, i);
    if (dependsOnData[at])
      dependsOnData[i] = true;
  };
  if (ops[i]->getNumRegions() == 0)
    llvm::for_each(ops[i]->getOperands(), visit);
  else
    ops[i]->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), visit); });
}

void LayerGraph::addUser(int operand, int user) {
  if (users[operand].empty() || users[operand].back() != user)
    users[operand].push_back(user);
}

Value LayerGraph::through(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isTransparent(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

int LayerGraph::indexOfDefinition(Value value) const {
  Operation *op = value.getDefiningOp();
  auto found = op ? indexOf.find(op) : indexOf.end();
  return found == indexOf.end() ? -1 : found->second;
}

bool LayerGraph::isOfMatrix(Value value) const {
  Operation *op = through(value).getDefiningOp();
  if (auto read = dyn_cast_or_null<train::ReadOp>(op)) // in any block
    return cast<RankedTensorType>(read.getType()).getRank() >= 2;
  int at = indexOfDefinition(through(value));
  return at >= 0 && !dependsOnData[at] &&
         llvm::any_of(op->getOperands(), [&](Value operand) { return isOfMatrix(operand); });
}

bool LayerGraph::feeds(int a, int b) const {
  SmallVector<int> stack{b};
  llvm::SmallDenseSet<int> seen;
  while (!stack.empty()) {
    int at = stack.pop_back_val();
    if (at == a)
      return true;
    for (int operand : operands[at])
      if (operand >= a && seen.insert(operand).second)
        stack.push_back(operand);
  }
  return false;
}

LayerGraph LayerGraph::without(SmallVector<Bridge> bridges) const {
  LayerGraph result = *this;
  for (const Bridge &bridge : bridges)
    llvm::erase(result.operands[bridge.to], bridge.from);
  for (SmallVector<int, 2> &list : result.users)
    list.clear();
  for (auto [user, list] : llvm::enumerate(result.operands))
    for (int operand : list)
      result.addUser(operand, static_cast<int>(user));
  result.removed = std::move(bridges);
  return result;
}

//===----------------------------------------------------------------------------------------------===//
// Bridges
//===----------------------------------------------------------------------------------------------===//

namespace {

/// Finds the ops that read a value beside what matmuls make of it.
class Sums {
public:
  explicit Sums(const LayerGraph &graph)
      : graph(graph), streamOf(graph.ops.size(), -1), isStream(graph.ops.size(), false),
        isAside(graph.ops.size(), false) {
    for (Operation *op : graph.ops)
      readsMatrix.push_back(llvm::any_of(op->getOperands(),
                                         [&](Value operand) { return graph.isOfMatrix(operand); }));
  }

  SmallVector<Bridge> bridges() {
    int count = static_cast<int>(graph.ops.size());
    for (int at = 0; at < count; ++at)
      visit(at);
    for (const Bridge &bridge : found)
      if (bridge.to != bridge.end)
        chains.insert(hashOf(bridge));
    for (int at = 0; at < count && !chains.empty(); ++at)
      visitInnermost(at);
    return std::move(found);
  }

private:
  /// How an op's result reaches another op.
  struct Path {
    bool reaches = false, hasMatmul = false;
    int sums = 0; ///< residual sums on the way, where there are most
  };

  void visit(int at) {
    const SmallVector<int, 2> &operands = graph.operands[at];
    if (operands.size() < 2 || graph.ops[at]->hasTrait<OpTrait::IsTerminator>())
      return;
    llvm::SmallDenseSet<int> from(operands.begin(), operands.end());
    for (int a : from) {
      if (!graph.dependsOnData[a])
        continue;
      Path longest = longestPath(a, a, from);
      if (longest.reaches && longest.sums < 2 && hasShapeOf(at, a))
        streamOf[at] = a, isStream[a] = true;
      else if (longest.reaches && isStream[a])
        add({a, at, at});
      else if (!longest.reaches)
        visitChain(at, a, from);
    }
  }

  /// Returns true if the op could be a residual sum with a result of the other one: not an attention
  /// with its mask.
  bool hasShapeOf(int at, int operand) const {
    auto shapeOf = [](Value value) {
      auto type = dyn_cast<ShapedType>(value.getType());
      return type ? type.getShape() : ArrayRef<int64_t>();
    };
    return graph.ops[at]->getNumResults() > 0 &&
           llvm::any_of(graph.ops[operand]->getResults(), [&](Value result) {
             return shapeOf(result) == shapeOf(graph.ops[at]->getResult(0));
           });
  }

  void add(const Bridge &bridge) {
    found.push_back(bridge);
    for (int i = bridge.to; i != bridge.end; i = graph.users[i].front())
      isAside[i] = true;
    if (bridge.to == bridge.end)
      skipped[bridge.end].push_back(bridge.from);
  }

  /// Returns the only operand that depends on data other than by skip connections; -1 if there are
  /// none or several. In a running sum of all blocks' outputs, each sum reads the one before aside.
  int streamOperandOf(int i) const {
    int only = -1;
    auto skipsTo = skipped.find(i);
    for (int operand : graph.operands[i]) {
      bool isSkipped = skipsTo != skipped.end() && llvm::is_contained(skipsTo->second, operand);
      if (!graph.dependsOnData[operand] || isAside[operand] || isSkipped || operand == only)
        continue;
      if (only >= 0)
        return -1;
      only = operand;
    }
    return only;
  }

  /// Returns the skip connection that ends with a chain of ops of its own, the last of which is
  /// `operand`, and begins at an op that `isStart`.
  std::optional<Bridge> chainTo(int at, int operand, llvm::function_ref<bool(int)> isStart) const {
    for (int to = operand; graph.users[to].size() == 1;) {
      int a = streamOperandOf(to);
      if (a < 0)
        break;
      if (isStart(a))
        return Bridge{a, to, at};
      to = a;
    }
    return std::nullopt;
  }

  void visitChain(int at, int operand, const llvm::SmallDenseSet<int> &from) {
    std::optional<Bridge> bridge = chainTo(at, operand, [&](int a) { return isStream[a]; });
    if (bridge && longestPath(bridge->from, operand, from).sums >= 2)
      add(*bridge);
  }

  /// The ops of the chain, and the one at its end, which reads the chain as which operand.
  size_t hashOf(const Bridge &bridge) const {
    size_t hash = 0;
    auto add = [&](int i) {
      hash = llvm::hash_combine(hash, graph.ops[i]->getName().getAsOpaquePointer());
      for (Type type : graph.ops[i]->getResultTypes())
        hash = llvm::hash_combine(hash, type.getAsOpaquePointer());
    };
    int last = bridge.to;
    for (int i = bridge.to; i != bridge.end; i = graph.users[i].front())
      add(last = i);
    add(bridge.end);
    const SmallVector<int, 2> &operands = graph.operands[bridge.end];
    return llvm::hash_combine(hash, llvm::find(operands, last) - operands.begin());
  }

  /// Finds the innermost skip connection of a U without a middle block: it ends as others do, but
  /// there is no block between the residual sum that it reads and its end.
  void visitInnermost(int at) {
    llvm::SmallDenseSet<int> from(graph.operands[at].begin(), graph.operands[at].end());
    for (int operand : from) {
      std::optional<Bridge> bridge =
          chainTo(at, operand, [&](int a) { return isStream[a] || streamOf[a] >= 0; });
      if (!bridge || !chains.contains(hashOf(*bridge)))
        continue;
      bool isKnown = longestPath(bridge->from, operand, from).sums >= 2;
      bool readsStream = llvm::any_of(
          from, [&](int other) { return other != operand && graph.feeds(bridge->from, other); });
      if (!isKnown && readsStream)
        add(*bridge);
    }
  }

  /// Returns the path with matmuls and with most sums from `a` to one of an op's operands other than
  /// `own`.
  Path longestPath(int a, int own, const llvm::SmallDenseSet<int> &operands) const {
    int last = a;
    for (int b : operands)
      last = b == own ? last : std::max(last, b);
    Path longest;
    if (last == a)
      return longest;
    SmallVector<Path> paths = pathsFrom(a, last);
    for (int b : operands)
      if (b > a && b != own && paths[b - a].hasMatmul && paths[b - a].sums >= longest.sums)
        longest = paths[b - a];
    return longest;
  }

  SmallVector<Path> pathsFrom(int a, int last) const {
    SmallVector<Path> paths(last - a + 1);
    paths[0].reaches = true;
    for (int i = a + 1; i <= last; ++i) {
      Path &path = paths[i - a];
      for (int operand : graph.operands[i])
        if (operand >= a && paths[operand - a].reaches) {
          path.reaches = true;
          path.hasMatmul |= paths[operand - a].hasMatmul || readsMatrix[i];
          path.sums = std::max(path.sums, paths[operand - a].sums);
        }
      path.sums += path.reaches && streamOf[i] >= a && paths[streamOf[i] - a].reaches;
    }
    return paths;
  }

  const LayerGraph &graph;
  SmallVector<int> streamOf;  ///< by residual sum: the op whose result goes around a branch
  SmallVector<bool> isStream; ///< for the ops that are one's stream
  SmallVector<bool> isAside;  ///< for the ops that only skip connections have
  llvm::DenseMap<int, SmallVector<int, 1>> skipped; ///< by op: the operands that bridges are
  SmallVector<bool> readsMatrix;
  SmallVector<Bridge> found;
  llvm::SmallDenseSet<size_t> chains; ///< hashes of those that end with ops of their own
};

} // namespace

SmallVector<Bridge> LayerGraph::bridges() const { return Sums(*this).bridges(); }
