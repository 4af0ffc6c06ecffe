//===- Layers.cpp - finds a model's layers in the structure of its graph ----------------------===//
//
// The algorithm is described in Layers.h. A block's ops are in topological order, so
// post-dominators take one sweep from the end: an op's next stop is where the paths of all its
// users meet.
//
//===----------------------------------------------------------------------------------------------===//

#include "partita/Analysis/Layers.h"
#include "dialects/Interfaces/Interfaces.h"
#include "lib/Analysis/LayerGraph.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include <tuple>

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
  /// Numbers layers from `first` on.
  BlockLayers(const LayerGraph &graph, int64_t first)
      : ops(graph.ops), operands(graph.operands), users(graph.users),
        dependsOnData(graph.dependsOnData), graph(graph), layers(first) {
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
  }

  /// The layer of each op that is in one.
  llvm::DenseMap<int, int64_t> number;
  int64_t end() const { return layers; }

private:
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
      return llvm::any_of(candidates, [&](int b) { return a < b && graph.feeds(a, b); });
    };
    auto feedsAll = [&](int a) {
      return llvm::all_of(candidates, [&](int b) { return a < b && graph.feeds(a, b); });
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
    SmallVector<Hash> all = hashSegments(trunk, segments);
    SmallVector<size_t> hashes =
        llvm::map_to_vector(all, [](const Hash &each) { return each.own; });
    SmallVector<bool> heavy =
        llvm::map_to_vector(all, [](const Hash &each) { return each.readsMatrix; });
    SmallVector<int64_t> layerOf = layersOfSegments(hashes, heavy, findGaps(trunk, segments, all));
    if (layerOf.empty())
      return;
    for (auto [i, segment] : llvm::enumerate(segments)) {
      if (segment < 0 || layerOf[segment] < 0)
        continue;
      segmentOf[i] = segment;
      number[i] = layers + layerOf[segment];
    }
    int64_t count = *llvm::max_element(layerOf) + 1;
    stacks.push_back({layers, count});
    layers += count;
  }

  /// The hash of a segment.
  struct Hash {
    size_t own = 0;
    size_t anySource = 0; ///< the same whether an operand from outside is the previous stop
    bool readsMatrix = false;
  };

  /// What may stand between two layers, by segment: where a bridge ends, and what is one op, as in a
  /// norm or a projection. A bridge's own ops do not count.
  struct Gaps {
    SmallVector<bool> endsBridge, isOneOp;
    bool has(size_t begin, size_t end) const {
      auto segments = llvm::seq(begin, end);
      return llvm::any_of(segments, [&](size_t each) { return endsBridge[each]; }) &&
             llvm::all_of(segments, [&](size_t each) { return endsBridge[each] || isOneOp[each]; });
    }
  };

  Gaps findGaps(ArrayRef<int> trunk, ArrayRef<int> segments, ArrayRef<Hash> hashes) const {
    Gaps gaps;
    SmallVector<int> sizes(trunk.size(), 0);
    llvm::DenseSet<int> ofBridges;
    llvm::DenseSet<size_t>
        ends; // of bridges: what the innermost one, over no block, ends with, too
    for (const Bridge &bridge : graph.removed) {
      for (int i = bridge.to; i != bridge.end; i = users[i].front())
        ofBridges.insert(i);
      if (segments[bridge.end] >= 0)
        ends.insert(hashes[segments[bridge.end]].anySource);
    }
    for (auto [i, segment] : llvm::enumerate(segments))
      if (segment >= 0 && dependsOnData[i] && !ofBridges.contains(static_cast<int>(i)))
        ++sizes[segment];
    for (auto [size, hash] : llvm::zip(sizes, hashes)) {
      gaps.isOneOp.push_back(size == 1);
      gaps.endsBridge.push_back(ends.contains(hash.anySource));
    }
    return gaps;
  }

  /// Returns the layer of each segment, from 0; -1 outside of them. Returns nothing if there are
  /// none.
  static SmallVector<int64_t> layersOfSegments(ArrayRef<size_t> hashes, ArrayRef<bool> heavy,
                                               const Gaps &gaps) {
    size_t longest = hashes.size() / 2;
    if (!llvm::is_contained(gaps.endsBridge, true)) {
      std::optional<Repetition> found = repetition(hashes, heavy, 1, longest);
      return found ? continued(*found, hashes, gaps) : SmallVector<int64_t>();
    }
    SmallVector<int64_t> best;
    auto covered = [](ArrayRef<int64_t> layers) {
      return static_cast<int64_t>(layers.size()) - llvm::count(layers, -1);
    };
    for (size_t period = 1; period <= longest; ++period)
      if (std::optional<Repetition> found = repetition(hashes, heavy, period, period))
        if (auto layers = continued(*found, hashes, gaps); covered(layers) > covered(best))
          best = std::move(layers);
    return best;
  }

  /// The repetition goes on after a gap, and before one; a gap belongs to the layer that follows.
  static SmallVector<int64_t> continued(const Repetition &found, ArrayRef<size_t> hashes,
                                        const Gaps &gaps) {
    ArrayRef<size_t> layer = hashes.slice(found.begin, found.period);
    size_t begin = found.begin, end = begin + found.period * found.count;
    auto isLayer = [&](size_t at) { return hashes.slice(at, found.period) == layer; };
    SmallVector<size_t> begins, before;
    for (size_t next = begin; next >= found.period;) {
      size_t at = next - found.period;
      if (isLayer(at) && (at + found.period == begin || gaps.has(at + found.period, begin))) {
        before.push_back(at);
        begin = next = at;
      } else {
        --next;
      }
    }
    begins.append(before.rbegin(), before.rend());
    for (size_t i = 0; i < found.count; ++i)
      begins.push_back(found.begin + i * found.period);
    for (size_t at = end; at + found.period <= hashes.size();) {
      if (isLayer(at) && (at == end || gaps.has(end, at))) {
        begins.push_back(at);
        at = end = at + found.period;
      } else {
        ++at;
      }
    }
    SmallVector<int64_t> layers(hashes.size(), -1);
    for (size_t segment = begin; segment < end; ++segment)
      layers[segment] = llvm::upper_bound(ArrayRef(begins), segment) - begins.begin() - 1;
    for (size_t segment = end; segment-- > begin;) // between two layers: the later one's
      if (auto own = static_cast<size_t>(layers[segment]); segment >= begins[own] + found.period)
        ++layers[segment];
    return layers;
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

  SmallVector<Hash> hashSegments(ArrayRef<int> trunk, ArrayRef<int> segments) const {
    SmallVector<Hash> result(trunk.size()), hashOf(ops.size());
    for (auto [i, op] : llvm::enumerate(ops)) {
      int segment = segments[i];
      if (segment < 0 || !dependsOnData[i])
        continue;
      size_t hash = llvm::hash_combine(op->getName().getAsOpaquePointer());
      if (auto sharded = dyn_cast<ShardInterface>(op))
        hash = llvm::hash_combine(hash, StringRef(sharded.getShardRule()));
      for (Type type : op->getResultTypes())
        hash = llvm::hash_combine(hash, type.getAsOpaquePointer());
      Hash own{hash, hash};
      for (Value operand : op->getOperands()) {
        Value value = LayerGraph::through(operand);
        const void *type = value.getType().getAsOpaquePointer();
        int at = graph.indexOfDefinition(value);
        bool inside = at >= 0 && segments[at] == segment && dependsOnData[at];
        bool isStopBefore = at >= 0 && segment > 0 && at == trunk[segment - 1];
        size_t number = inside ? cast<OpResult>(value).getResultNumber() : 0;
        Hash from = inside ? hashOf[at] : Hash();
        own.own = llvm::hash_combine(own.own, from.own, inside ? number : isStopBefore, type);
        own.anySource = llvm::hash_combine(own.anySource, from.anySource, number, type);
        result[segment].readsMatrix |= !inside && graph.isOfMatrix(value);
      }
      hashOf[i] = own;
      result[segment].own = llvm::hash_combine(result[segment].own, own.own);
      result[segment].anySource = llvm::hash_combine(result[segment].anySource, own.anySource);
    }
    return result;
  }

  static std::optional<Repetition> repetition(ArrayRef<size_t> hashes, ArrayRef<bool> heavy,
                                              size_t shortest, size_t longest) {
    std::optional<Repetition> best;
    size_t n = hashes.size();
    for (size_t period = shortest; period <= longest; ++period) {
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

  const SmallVector<Operation *> &ops;
  const SmallVector<SmallVector<int, 2>> &operands, &users;
  const SmallVector<bool> &dependsOnData;
  const LayerGraph &graph;
  int64_t layers;
  SmallVector<int> next, depth, height;
  SmallVector<SmallVector<int, 1>> before; ///< by stop: the ops whose next stop it is
  SmallVector<int> segmentOf;
  struct Stack {
    int64_t first, count; ///< layers
  };
  SmallVector<Stack> stacks;
};

/// Returns the layer of each op that is in one, numbered from `first` on, and the number after the
/// last one.
std::pair<llvm::DenseMap<int, int64_t>, int64_t> layersIn(const LayerGraph &graph, int64_t first) {
  BlockLayers found(graph, first);
  return {std::move(found.number), found.end()};
}

/// Places a block's ops: in their layers, before or after them.
void place(const LayerGraph &graph, const llvm::DenseMap<int, int64_t> &number,
           llvm::DenseMap<Operation *, int64_t> &numbers) {
  const SmallVector<Operation *> &ops = graph.ops;
  if (number.empty())
    return;
  llvm::DenseSet<int> after;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (auto found = number.find(static_cast<int>(i)); found != number.end()) {
      numbers[ops[i]] = found->second;
      continue;
    }
    bool isAfter = llvm::any_of(graph.operands[i], [&](int operand) {
      return number.contains(operand) || after.contains(operand);
    });
    if (isAfter)
      after.insert(static_cast<int>(i));
    numbers[ops[i]] = isAfter ? Layers::kAfter : Layers::kBefore;
  }
  // Ops between two stacks of layers that belong to neither (an encoder's last norm) count as
  // before the next.
  for (int i = static_cast<int>(ops.size()) - 1; i >= 0; --i)
    if (after.contains(i) && llvm::any_of(graph.users[i], [&](int user) {
          return number.contains(user) || numbers.lookup(ops[user]) == Layers::kBefore;
        }))
      numbers[ops[i]] = Layers::kBefore;
  // A parameter or constant goes where its users are.
  for (int i = static_cast<int>(ops.size()) - 1; i >= 0; --i)
    if (!graph.dependsOnData[i] && !number.contains(i) && !graph.users[i].empty() &&
        llvm::all_of(graph.users[i],
                     [&](int user) { return numbers.lookup(ops[user]) == Layers::kAfter; }))
      numbers[ops[i]] = Layers::kAfter;
}

} // namespace

Layers::Layers(Operation *root) {
  SmallVector<Block *> blocks;
  root->walk([&](Block *block) { blocks.push_back(block); });
  for (Block *block : blocks) {
    LayerGraph graph(*block);
    if (graph.ops.size() < 2)
      continue;
    SmallVector<Bridge> bridges = graph.bridges();
    auto [number, end] = layersIn(graph, layers);
    if (!bridges.empty())
      if (auto more = layersIn(graph.without(bridges), layers); more.first.size() > number.size())
        std::tie(number, end) = more;
    place(graph, number, numbers);
    layers = end;
    for (const Bridge &bridge : bridges)
      if (Operation *from = graph.ops[bridge.from], *to = graph.ops[bridge.end];
          numbers.lookup(from) == numbers.lookup(to))
        skips.push_back({from, to});
  }
}

int64_t Layers::layerOf(Operation *op) const {
  for (; op; op = op->getParentOp())
    if (auto found = numbers.find(op); found != numbers.end())
      return found->second;
  return kBefore;
}
