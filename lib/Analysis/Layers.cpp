//===- Layers.cpp - finds a model's layers in the structure of its graph ----------------------===//
//
// The algorithm is described in Layers.h. A block's ops are in topological order, so
// post-dominators take one sweep from the end: an op's next stop is where the paths of all its
// users meet.
//
//===----------------------------------------------------------------------------------------------===//

#include "partita/Analysis/Layers.h"
#include "dialects/Interfaces/Interfaces.h"
#include "dialects/Par/Par.h"
#include "dialects/Train/Train.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::analysis;

namespace {

/// Part of a trunk: `count` repetitions of `period` segments, starting at `begin`.
struct Repetition {
  size_t begin = 0, period = 0, count = 0;
};

class BlockLayers {
public:
  BlockLayers(Block &block, llvm::DenseMap<Operation *, int64_t> &numbers, int64_t &layers)
      : numbers(numbers), layers(layers) {
    for (Operation &op : block)
      if (!isLookedThrough(&op))
        ops.push_back(&op);
    for (auto [i, op] : llvm::enumerate(ops))
      indexOf[op] = static_cast<int>(i);
  }

  void run() {
    if (ops.size() < 2)
      return;
    readGraph();
    findStops();
    int root = static_cast<int>(ops.size()) - 1;
    SmallVector<int> tops{root};
    while (!tops.empty()) {
      int top = tops.pop_back_val();
      SmallVector<int> trunk = trunkTo(top, tops);
      if (!number.contains(top) && (top == root || segmentOf[top] < 0))
        findLayers(trunk);
    }
    inOrder();
    numberTheRest();
  }

private:
  static bool isLookedThrough(Operation *op) {
    return isa<TransparentInterface>(op) && op->getNumOperands() == 1;
  }
  static Value through(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      if (!isLookedThrough(op))
        break;
      value = op->getOperand(0);
    }
    return value;
  }

  int indexOfDefinition(Value value) const {
    Operation *op = value.getDefiningOp();
    auto found = op ? indexOf.find(op) : indexOf.end();
    return found == indexOf.end() ? -1 : found->second;
  }

  /// Reads operands and users by index, and which ops depend on data, i.e. on a block's arguments.
  void readGraph() {
    operands.resize(ops.size());
    users.resize(ops.size());
    dependsOnData.assign(ops.size(), false);
    for (size_t i = 0; i < ops.size(); ++i) {
      Operation *op = ops[i];
      auto visit = [&](Value operand) {
        Value value = through(operand);
        if (isa<BlockArgument>(value))
          dependsOnData[i] = true;
        int at = indexOfDefinition(value);
        if (at < 0 || at >= static_cast<int>(i))
          return;
        operands[i].push_back(at);
        if (users[at].empty() || users[at].back() != static_cast<int>(i))
          users[at].push_back(static_cast<int>(i));
        if (dependsOnData[at])
          dependsOnData[i] = true;
      };
      if (op->getNumRegions() == 0)
        llvm::for_each(op->getOperands(), visit);
      else
        op->walk([&](Operation *inner) { llvm::for_each(inner->getOperands(), visit); });
    }
  }

  /// Computes next[a], the nearest op that all paths from a pass through; all paths end at the
  /// terminator.
  void findStops() {
    int end = static_cast<int>(ops.size()) - 1;
    next.assign(ops.size(), end);
    depth.assign(ops.size(), 0);
    for (int i = end - 1; i >= 0; --i) {
      int stop = users[i].empty() ? end : users[i].front();
      for (int user : users[i])
        while (stop != user) // advance the deeper one
          depth[stop] >= depth[user] ? stop = next[stop] : user = next[user];
      next[i] = stop;
      depth[i] = depth[stop] + 1;
    }
    before.resize(ops.size());
    height.assign(ops.size(), 0);
    for (int i = 0; i < end; ++i)
      if (dependsOnData[i]) {
        before[next[i]].push_back(i);
        height[next[i]] = std::max(height[next[i]], height[i] + 1);
      }
    segmentOf.assign(ops.size(), -1);
  }

  /// Returns true if op `a` feeds op `b`, directly or indirectly.
  bool feeds(int a, int b) const {
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

  /// Returns the op before `at` on the trunk, among those whose next stop is `at`: an operand of
  /// `at`; if several, the one that feeds another (the residual sum, not the parallel branch); if
  /// none does (branches added one after the other), the op that feeds all of them; otherwise the
  /// end of the longest chain.
  int stopBefore(int at) const {
    SmallVector<int> direct;
    for (int candidate : before[at])
      if (llvm::is_contained(operands[at], candidate))
        direct.push_back(candidate);
    ArrayRef<int> candidates = direct.empty() ? ArrayRef<int>(before[at]) : ArrayRef<int>(direct);
    auto feedsAny = [&](int a) {
      return llvm::any_of(candidates, [&](int b) { return a < b && feeds(a, b); });
    };
    auto feedsAll = [&](int a) {
      return llvm::all_of(candidates, [&](int b) { return a < b && feeds(a, b); });
    };
    SmallVector<int> sources;
    if (candidates.size() > 1 && llvm::none_of(candidates, feedsAny))
      llvm::copy_if(before[at], std::back_inserter(sources), feedsAll);
    if (sources.empty()) {
      llvm::copy_if(candidates, std::back_inserter(sources), feedsAny);
      if (sources.empty())
        sources.assign(candidates.begin(), candidates.end());
    }
    return *llvm::max_element(sources, [&](int a, int b) { return height[a] < height[b]; });
  }

  /// Returns the stops that lead to `top`, first to last, and adds the ends of other chains to
  /// `tops`.
  SmallVector<int> trunkTo(int top, SmallVectorImpl<int> &tops) {
    SmallVector<int> trunk{top};
    for (int at = top; !before[at].empty();) {
      int chosen = stopBefore(at);
      for (int other : before[at])
        if (other != chosen)
          tops.push_back(other);
      trunk.push_back(at = chosen);
    }
    std::reverse(trunk.begin(), trunk.end());
    return trunk;
  }

  void findLayers(ArrayRef<int> trunk) {
    if (trunk.size() < 2)
      return;
    // Segment s ends at trunk[s]; users come after what they use.
    SmallVector<int> segments(ops.size(), -1);
    for (auto [s, stop] : llvm::enumerate(trunk))
      segments[stop] = static_cast<int>(s);
    for (int i = trunk.back(); i >= 0; --i) {
      if (segments[i] >= 0 || users[i].empty())
        continue;
      int segment = segments[users[i].front()];
      if (llvm::all_of(users[i], [&](int user) { return segments[user] == segment; }))
        segments[i] = segment;
    }
    SmallVector<size_t> hashes;
    SmallVector<bool> heavy; // segments that read a matrix
    hashSegments(trunk, segments, hashes, heavy);
    std::optional<Repetition> found = repetition(hashes, heavy);
    if (!found)
      return;
    for (auto [i, segment] : llvm::enumerate(segments)) {
      if (segment < static_cast<int>(found->begin) ||
          segment >= static_cast<int>(found->begin + found->period * found->count))
        continue;
      segmentOf[i] = segment;
      number[i] = layers + (segment - found->begin) / found->period;
    }
    stacks.push_back({layers, static_cast<int64_t>(found->count)});
    layers += static_cast<int64_t>(found->count);
  }

  /// Renumbers the layers of several trunks by their first ops.
  void inOrder() {
    llvm::DenseMap<int64_t, int> firstOf; // of a stack's first layer
    for (auto [i, layer] : number)
      for (const Stack &stack : stacks)
        if (layer >= stack.first && layer < stack.first + stack.count) {
          auto [known, isNew] = firstOf.try_emplace(stack.first, i);
          known->second = std::min(known->second, i);
        }
    int64_t next = layers;
    for (const Stack &stack : stacks)
      next = std::min(next, stack.first);
    llvm::sort(stacks, [&](const Stack &a, const Stack &b) {
      return firstOf.lookup(a.first) < firstOf.lookup(b.first);
    });
    llvm::DenseMap<int64_t, int64_t> moved;
    for (const Stack &stack : stacks)
      for (int64_t i = 0; i < stack.count; ++i)
        moved[stack.first + i] = next++;
    for (auto &entry : number)
      entry.second = moved.lookup(entry.second);
  }

  /// Returns true if the value is computed from a parameter with two or more dimensions, and from
  /// no data.
  bool isOfMatrix(Value value) const {
    Operation *op = through(value).getDefiningOp();
    if (auto read = dyn_cast_or_null<train::ReadOp>(op)) // in any block
      return cast<RankedTensorType>(read.getType()).getRank() >= 2;
    int at = indexOfDefinition(through(value));
    return at >= 0 && !dependsOnData[at] &&
           llvm::any_of(op->getOperands(), [&](Value operand) { return isOfMatrix(operand); });
  }

  void hashSegments(ArrayRef<int> trunk, ArrayRef<int> segments, SmallVectorImpl<size_t> &hashes,
                    SmallVectorImpl<bool> &heavy) {
    hashes.assign(trunk.size(), 0);
    heavy.assign(trunk.size(), false);
    SmallVector<size_t> hashOf(ops.size(), 0);
    for (auto [i, op] : llvm::enumerate(ops)) {
      int segment = segments[i];
      if (segment < 0 || !dependsOnData[i])
        continue;
      size_t hash = llvm::hash_combine(op->getName().getAsOpaquePointer());
      if (auto sharded = dyn_cast<ShardInterface>(op))
        hash = llvm::hash_combine(hash, StringRef(sharded.getShardRule()));
      for (Type type : op->getResultTypes())
        hash = llvm::hash_combine(hash, type.getAsOpaquePointer());
      for (Value operand : op->getOperands()) {
        Value value = through(operand);
        int at = indexOfDefinition(value);
        bool inside = at >= 0 && segments[at] == segment && dependsOnData[at];
        bool isStopBefore = at >= 0 && segment > 0 && at == trunk[segment - 1];
        size_t number = inside ? cast<OpResult>(value).getResultNumber() : isStopBefore;
        hash = llvm::hash_combine(hash, inside ? hashOf[at] : 0, number,
                                  value.getType().getAsOpaquePointer());
        heavy[segment] |= !inside && isOfMatrix(value);
      }
      hashOf[i] = hash;
      hashes[segment] = llvm::hash_combine(hashes[segment], hash);
    }
  }

  static std::optional<Repetition> repetition(ArrayRef<size_t> hashes, ArrayRef<bool> heavy) {
    std::optional<Repetition> best;
    size_t n = hashes.size();
    for (size_t period = 1; period <= n / 2; ++period) {
      // The length of the run, up to i, of hashes that equal those one period earlier.
      size_t run = 0;
      for (size_t i = period; i < n; ++i) {
        run = hashes[i] == hashes[i - period] ? run + 1 : 0;
        size_t count = run / period + 1;
        if (count < 2)
          continue;
        size_t begin = i + 1 - count * period;
        size_t covered = best ? best->period * best->count : 0;
        if (count * period < covered || (count * period == covered && best->period != period))
          continue;
        if (llvm::is_contained(heavy.slice(begin, period), true))
          best = Repetition{begin, period, count};
      }
    }
    return best;
  }

  /// Places ops outside of all layers before or after them.
  void numberTheRest() {
    if (number.empty())
      return;
    llvm::DenseSet<int> after;
    for (size_t i = 0; i < ops.size(); ++i) {
      if (auto found = number.find(static_cast<int>(i)); found != number.end()) {
        numbers[ops[i]] = found->second;
        continue;
      }
      bool isAfter = llvm::any_of(operands[i], [&](int operand) {
        return number.contains(operand) || after.contains(operand);
      });
      if (isAfter)
        after.insert(static_cast<int>(i));
      numbers[ops[i]] = isAfter ? Layers::kAfter : Layers::kBefore;
    }
    // Ops between two stacks of layers that belong to neither (an encoder's last norm) count as
    // before the next.
    for (int i = static_cast<int>(ops.size()) - 1; i >= 0; --i)
      if (after.contains(i) && llvm::any_of(users[i], [&](int user) {
            return number.contains(user) || numbers.lookup(ops[user]) == Layers::kBefore;
          }))
        numbers[ops[i]] = Layers::kBefore;
    // A parameter or constant goes where its users are.
    for (int i = static_cast<int>(ops.size()) - 1; i >= 0; --i)
      if (!dependsOnData[i] && !number.contains(i) && !users[i].empty() &&
          llvm::all_of(users[i],
                       [&](int user) { return numbers.lookup(ops[user]) == Layers::kAfter; }))
        numbers[ops[i]] = Layers::kAfter;
  }

  llvm::DenseMap<Operation *, int64_t> &numbers;
  int64_t &layers;
  SmallVector<Operation *> ops;
  llvm::DenseMap<Operation *, int> indexOf;
  SmallVector<SmallVector<int, 2>> operands, users;
  SmallVector<bool> dependsOnData;
  SmallVector<int> next, depth, height;
  SmallVector<SmallVector<int, 1>> before; ///< by stop: the ops whose next stop it is
  SmallVector<int> segmentOf;
  llvm::DenseMap<int, int64_t> number;
  struct Stack {
    int64_t first, count; ///< layers
  };
  SmallVector<Stack> stacks;
};

} // namespace

Layers::Layers(Operation *root) {
  SmallVector<Block *> blocks;
  root->walk([&](Block *block) { blocks.push_back(block); });
  for (Block *block : blocks)
    BlockLayers(*block, numbers, layers).run();
}

int64_t Layers::layerOf(Operation *op) const {
  for (; op; op = op->getParentOp())
    if (auto found = numbers.find(op); found != numbers.end())
      return found->second;
  return kBefore;
}
