// How collectives of CPU ranks go through nodes, and what that sends: which groups share memory, which
// exchange messages, how values are cut among ranks; the compiler includes it too, to explain the bytes.
//
// The groups of ../../cpu/groups/ send by these rules and count what they send (Communicator::sentToOtherNodes);
// NodeTraffic says the same number beforehand. node_group_test.cpp compares the two, and both with the messages.

#ifndef PARTITA_RT_NODE_TRAFFIC_H
#define PARTITA_RT_NODE_TRAFFIC_H

#include "collectives.h"
#include "types.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace partita_rt {

/// How a group's members lie on nodes.
struct NodeLayout {
  /// `nodes`: by member, in any numbers.
  explicit NodeLayout(std::vector<int> nodes);

  /// Do the members of each node follow each other, and has some node several?
  bool fits = false;
  std::vector<int> names; ///< of the nodes, by member
  std::vector<int>
      firsts;       ///< by node in the group's order, the first member; then the group's size
  int carriers = 1; ///< of each node: the members that exchange messages with other nodes
  int largest = 1;  ///< members of a node
  std::vector<int> nodeOf; ///< by member, a position in `firsts`
  int size() const { return int(names.size()); }
  int nodes() const { return int(firsts.size()) - 1; }
  int sizeOf(int node) const { return firsts[size_t(node) + 1] - firsts[size_t(node)]; }
};

inline NodeLayout::NodeLayout(std::vector<int> itsNames) : names(std::move(itsNames)) {
  std::set<int> seen;
  bool follow = true;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == 0 || names[i] != names[i - 1]) {
      firsts.push_back(int(i));
      follow &= seen.insert(names[i]).second;
    }
    nodeOf.push_back(int(firsts.size()) - 1);
  }
  firsts.push_back(int(names.size()));
  carriers = largest = nodes() ? sizeOf(0) : 1;
  for (int n = 1; n < nodes(); ++n) {
    carriers = std::min(carriers, sizeOf(n));
    largest = std::max(largest, sizeOf(n));
  }
  fits = follow && nodes() > 1 && largest > 1;
}

/// What moves a group's data, if its ranks are processes.
enum class GroupPath : uint8_t {
  None,     ///< a single member
  Window,   ///< all members are on one node: memory that they share
  Messages, ///< each is on another node, or their order goes back and forth between nodes
  Nodes     ///< within a node shared memory, between nodes messages, once per node
};

inline GroupPath pathOf(const NodeLayout &layout) {
  return layout.size() < 2     ? GroupPath::None
         : layout.nodes() == 1 ? GroupPath::Window
         : layout.fits         ? GroupPath::Nodes
                               : GroupPath::Messages;
}

//===-- How values are cut ------------------------------------------------------------------===//

/// The elements [begin, end) of share number `part` if n elements are divided among `parts`, in
/// multiples of 16 elements (a cache line of float32) if possible.
struct Range {
  int64_t begin, end;
  constexpr int64_t size() const { return end - begin; }
};
constexpr Range shareOf(int64_t n, int part, int parts) {
  int64_t lines = (n + 15) / 16;
  int64_t begin = std::min(n, lines * part / parts * 16);
  return {begin, part + 1 == parts ? n : std::min(n, lines * (part + 1) / parts * 16)};
}
constexpr Range overlap(Range a, Range b) {
  int64_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// Bytes of an element of a sum that is not complete, in the type of additions.
constexpr int64_t sumWidth(DType dtype) {
  return isShortFloat(dtype) ? int64_t(sizeof(float)) : sizeOf(dtype);
}

/// What a collective does with its data, by its row.
enum class Form : uint8_t {
  Sums,
  Transfers, ///< all ranks' data for each one
  Shift,     ///< a neighbour's
  Roots,     ///< the root's for all
  Barrier    ///< none
};
constexpr Form formOf(CollectiveKind kind) {
  const CollectiveRow &row = rowOf(kind);
  return kind == CollectiveKind::Barrier ? Form::Barrier
         : row.reduces                   ? Form::Sums
         : isShift(row)                  ? Form::Shift
         : row.inPlace                   ? Form::Roots
                                         : Form::Transfers;
}
/// Does each rank give a block for each of them?
constexpr bool isFromFull(CollectiveKind kind) { return rowOf(kind).from == Extent::Full; }

/// A segment's size in memory that a node's members share; in that of all ranks, which moves little.
inline constexpr int64_t kStagingSlotBytes = 512 << 10, kWorldSlotBytes = 64 << 10;
inline constexpr int64_t kMessageSegmentBytes = 512 << 10; ///< that of messages alone
inline constexpr int64_t kLeastMessageBytes =
    64 << 10; ///< below it, latency dominates a message's time

/// Return the elements of a rank's shards in a segment of a collective.
constexpr int64_t messageSegment(CollectiveKind kind, int64_t width, int ranks) {
  return std::max(kMessageSegmentBytes, kLeastMessageBytes * ranks) / wireBytes(kind, width, ranks);
}
inline int64_t nodeSegment(const NodeLayout &layout, CollectiveKind kind, int64_t width,
                           int64_t stagingSlotBytes) {
  int64_t parts = isFromFull(kind) ? layout.size() : 1;
  if (formOf(kind) == Form::Transfers) { // what arrives at a carrier, of all other nodes
    int64_t perNode = (layout.largest + layout.carriers - 1) / layout.carriers;
    int64_t blocks = isFromFull(kind) ? layout.largest : 1;
    parts = std::max(parts, perNode * blocks * (layout.nodes() - 1));
  }
  return std::max<int64_t>(1, stagingSlotBytes / width / parts);
}

//===-- What is sent ------------------------------------------------------------------------===//

/// What ranks send, by whether it leaves a node. Within a node that is what they read of each other's memory, and
/// messages.
struct LevelBytes {
  int64_t within = 0, between = 0;
  LevelBytes &operator+=(const LevelBytes &other) {
    within += other.within, between += other.between;
    return *this;
  }
};

/// What one call of a collective sends over a group of this layout, which must stay.
class NodeTraffic {
public:
  /// `elements`: of a rank's shards, or of its buffers.
  NodeTraffic(const NodeLayout &layout, CollectiveKind kind, DType dtype, int64_t elements,
              int root = 0)
      : layout(layout), kind(kind), form(formOf(kind)), full(isFromFull(kind)),
        width(sizeOf(dtype)), sums(sumWidth(dtype)), elements(elements), root(root) {}

  /// Returns the bytes that each node sends, by its place in the layout's order; where members go back and forth between
  /// nodes, those of each run of members.
  std::vector<LevelBytes> byNode() const {
    std::vector<LevelBytes> sent(static_cast<size_t>(layout.nodes()));
    GroupPath path = pathOf(layout);
    if (path == GroupPath::None || form == Form::Barrier)
      return sent;
    int64_t segment = path == GroupPath::Messages
                          ? messageSegment(kind, width, layout.size())
                          : nodeSegment(layout, kind, width, kStagingSlotBytes);
    auto add = [&](int64_t count, int64_t times) {
      std::vector<LevelBytes> one =
          path == GroupPath::Messages ? byMessages(count) : overNodes(count);
      for (size_t n = 0; n < sent.size(); ++n)
        sent[n] += {one[n].within * times, one[n].between * times};
    };
    if (elements >= segment)
      add(segment, elements / segment);
    if (elements % segment)
      add(elements % segment, 1);
    return sent;
  }

private:
  /// Each member exchanges messages with every other one (../../cpu/groups/message_group.h).
  std::vector<LevelBytes> byMessages(int64_t count) const {
    int ranks = layout.size();
    bool inPlace =
        rowOf(kind).inPlace; // of sums: a rank has a share of them, and sends its result to all
    auto share = [&](int r) { return inPlace ? shareOf(count, r, ranks).size() : count; };
    struct Near {
      int64_t members = 0, shares = 0;
    };
    std::map<int, Near> nears; // by node
    for (int r = 0; r < ranks; ++r) {
      Near &near = nears[layout.names[size_t(r)]];
      ++near.members;
      near.shares += share(r);
    }
    std::vector<LevelBytes> sent(static_cast<size_t>(layout.nodes()));
    for (int r = 0; r < ranks; ++r) {
      const Near &near = nears[layout.names[size_t(r)]];
      int64_t nearBy = near.members - 1, far = ranks - near.members; // how many others
      LevelBytes its;
      if (form == Form::Shift) {
        bool leaves = layout.names[size_t(r)] != layout.names[size_t((r + 1) % ranks)];
        its = leaves ? LevelBytes{0, count} : LevelBytes{count, 0};
      } else if (form == Form::Roots) {
        if (r == root)
          its = {nearBy * count, far * count};
      } else {
        its = {near.shares - share(r), (inPlace ? count : ranks * count) - near.shares};
        if (inPlace)
          its += {nearBy * share(r), far * share(r)};
      }
      sent[size_t(layout.nodeOf[size_t(r)])] += {its.within * width, its.between * width};
    }
    return sent;
  }

  /// Members of a node share memory; their carriers exchange messages (../../cpu/groups/node_group.h).
  std::vector<LevelBytes> overNodes(int64_t count) const {
    std::vector<LevelBytes> sent;
    for (int n = 0; n < layout.nodes(); ++n)
      sent.push_back({withinNode(count, n) * width, fromNode(count, n)});
    return sent;
  }

  /// The bytes that a node's carriers send.
  int64_t fromNode(int64_t count, int node) const {
    int last = layout.nodes() - 1;
    // What a rank gives, or a sum of it, for a node's members.
    auto forNode = [&](int n) { return full ? layout.sizeOf(n) * count : count; };
    int64_t forOthers = 0;
    for (int n = 0; n <= last; ++n)
      forOthers += n == node ? 0 : forNode(n);
    switch (form) {
    case Form::Sums: // as far as they go, to the next node; from the last one results to all others
      return node < last ? (full ? layout.size() : 1) * count * sums : forOthers * width;
    case Form::Transfers:
      return layout.sizeOf(node) * forOthers * width;
    case Form::Shift:
      return last > 0 ? count * width : 0;
    case Form::Roots:
      return node == layout.nodeOf[size_t(root)] ? last * count * width : 0;
    case Form::Barrier:
      break;
    }
    return 0;
  }

  /// Elements that members read of each other's memory: of what each gives, and of what has arrived at each.
  int64_t withinNode(int64_t count, int node) const {
    int64_t others = layout.sizeOf(node) - 1;
    switch (form) {
    case Form::Sums:
      return others * (full ? layout.size() : 1) * count + results(count, node);
    case Form::Transfers:
      return others * layout.size() * count;
    case Form::
        Shift: // from the member before, or its share of what the last one of another node gives
      return others * count +
             (layout.nodes() > 1 ? count - shareOf(count, 0, layout.carriers).size() : count);
    case Form::Roots:
      return others * count;
    case Form::Barrier:
      break;
    }
    return 0;
  }

  /// Of the sums, those that members read where another one has them.
  int64_t results(int64_t count, int node) const {
    if (!full)
      return (layout.sizeOf(node) - 1) * count;
    if (layout.nodes() == 1) // each computes its own
      return 0;
    int64_t read = layout.sizeOf(node) * count;
    for (int c = 0; c < layout.carriers; ++c) {
      int64_t r = layout.firsts[size_t(node)] + c;
      read -=
          overlap(shareOf(layout.size() * count, c, layout.carriers), {r * count, (r + 1) * count})
              .size();
    }
    return read;
  }

  const NodeLayout &layout;
  CollectiveKind kind;
  Form form;
  bool full;
  int64_t width, sums;
  int64_t elements;
  int root;
};

} // namespace partita_rt

#endif // PARTITA_RT_NODE_TRAFFIC_H
