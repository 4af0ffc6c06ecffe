// What collectives send (node_traffic.h), against the formulas of the literature. node_group_test.cpp compares it with what the groups
// of the CPU really send.

#include "partita_rt/node_traffic.h"
#include "partita_rt/one_bit_shapes.h"

#include <gtest/gtest.h>

#include <numeric>

namespace partita_rt {
namespace {

/// Nodes of `ranks` ranks each.
NodeLayout nodesOf(int nodes, int ranks) {
  std::vector<int> names;
  for (int r = 0; r < nodes * ranks; ++r)
    names.push_back(r / ranks);
  return NodeLayout(names);
}

/// What all nodes send together, of a collective whose full value has so many elements.
LevelBytes sent(const NodeLayout &layout, CollectiveKind kind, DType dtype, int64_t elements) {
  LevelBytes sum;
  bool whole = rowOf(kind).from == Extent::Shard && rowOf(kind).to == Extent::Shard;
  for (const LevelBytes &each :
       NodeTraffic(layout, kind, dtype, whole ? elements : elements / layout.size()).byNode())
    sum += each;
  return sum;
}

constexpr int64_t kElements = 96 << 20;

TEST(NodeTraffic, ChoosesAPath) {
  EXPECT_EQ(pathOf(nodesOf(1, 1)), GroupPath::None);
  EXPECT_EQ(pathOf(nodesOf(1, 4)), GroupPath::Window);
  EXPECT_EQ(pathOf(nodesOf(4, 1)), GroupPath::Messages);
  EXPECT_EQ(pathOf(nodesOf(2, 2)), GroupPath::Nodes);
  EXPECT_EQ(pathOf(NodeLayout({0, 0, 1})), GroupPath::Nodes);
  EXPECT_EQ(pathOf(NodeLayout({0, 1, 0})), GroupPath::Messages);
}

/// Within a node as many bytes as a ring of N ranks sends: (N - 1)/N of the full value from each, for an all-reduce twice that.
TEST(NodeTraffic, WithinANodeIsARing) {
  for (int ranks : {2, 3, 8}) {
    NodeLayout node = nodesOf(1, ranks);
    int64_t bytes = 4 * kElements / ranks * ranks;
    auto expect = [&](CollectiveKind kind, int64_t within) {
      LevelBytes its = sent(node, kind, DType::Float32, bytes / 4);
      EXPECT_EQ(its.within, within) << rowOf(kind).name << " of " << ranks;
      EXPECT_EQ(its.between, 0);
    };
    expect(CollectiveKind::AllReduce, 2 * (ranks - 1) * bytes);
    expect(CollectiveKind::ReduceScatter, (ranks - 1) * bytes);
    expect(CollectiveKind::AllGather, (ranks - 1) * bytes);
    expect(CollectiveKind::AllToAll, (ranks - 1) * bytes);
    expect(CollectiveKind::Shift, ranks * bytes);
    expect(CollectiveKind::Broadcast, (ranks - 1) * bytes);
    expect(CollectiveKind::Barrier, 0);
  }
}

/// Between K nodes, a node's ranks send what one rank would: 2 (K - 1)/K of a sum on average, K - 1 times what is the node's of a gather.
TEST(NodeTraffic, BetweenNodesIsOncePerNode) {
  for (int nodes : {2, 3, 4})
    for (int ranks : {2, 4}) {
      NodeLayout layout = nodesOf(nodes, ranks);
      int64_t n = kElements, bytes = 4 * n;
      auto between = [&](CollectiveKind kind, DType dtype) {
        return sent(layout, kind, dtype, n).between;
      };
      EXPECT_EQ(between(CollectiveKind::AllReduce, DType::Float32), 2 * (nodes - 1) * bytes);
      EXPECT_EQ(between(CollectiveKind::AllReduce, DType::BFloat16), // sums as floats, results not
                (nodes - 1) * (bytes + bytes / 2));
      EXPECT_EQ(between(CollectiveKind::AllGather, DType::Float32), (nodes - 1) * bytes);
      EXPECT_EQ(between(CollectiveKind::ReduceScatter, DType::Float32),
                (nodes - 1) * (bytes + bytes / nodes));
      EXPECT_EQ(between(CollectiveKind::AllToAll, DType::Float32),
                int64_t(nodes - 1) * ranks * bytes);
      EXPECT_EQ(between(CollectiveKind::Shift, DType::Float32), nodes * bytes);
    }
}

/// 1-bit Adam, whose N ranks are alone on their nodes: each sends 2 (N - 1)/N P/8 bytes of signs and its scales.
TEST(NodeTraffic, OfOneBitIsTheFormula) {
  for (int ranks : {2, 3, 4, 16}) {
    int64_t tensors[] = {768 * 3072, 768, 50257 * 768, 1}, blocks = 0, P = 0, padding = 0;
    for (int64_t n : tensors) {
      blocks += oneBitBytes(n, ranks);
      P += n;
      padding += 8 * ranks; // a chunk ends with its last byte
    }
    for (CollectiveKind kind : {CollectiveKind::AllToAll, CollectiveKind::AllGather}) {
      std::vector<LevelBytes> each =
          NodeTraffic(nodesOf(ranks, 1), kind, DType::UInt8, blocks).byNode();
      for (const LevelBytes &its : each) {
        EXPECT_EQ(its.between, (ranks - 1) * blocks); // of all to all others, and once around
        int64_t signs = its.between - (ranks - 1) * 4 * int64_t(std::size(tensors));
        EXPECT_GE(8 * ranks * signs, (ranks - 1) * P);
        EXPECT_LE(8 * ranks * signs, (ranks - 1) * (P + padding));
      }
    }
  }
}

/// ZeRO++ between K nodes: weights in 8 bits once, nothing for the backward pass, gradients in 4 bits: 0.5 + 0 + 0.25 P of 2-byte
/// elements, where ZeRO-3 over ranks that are alone on their nodes sends 3 P; both times (K - 1)/K, scales not counted.
TEST(NodeTraffic, OfZeroPlusPlusIsAQuarterOfZero3) {
  for (int nodes : {2, 4, 8}) {
    NodeLayout alone = nodesOf(nodes, 1);
    int64_t n = kElements, P = 2 * n;
    auto between = [&](CollectiveKind kind, DType dtype, int64_t elements) {
      return sent(alone, kind, dtype, elements).between;
    };
    int64_t zero3 = 2 * between(CollectiveKind::AllGather, DType::BFloat16, n) +
                    between(CollectiveKind::ReduceScatter, DType::BFloat16, n);
    int64_t zeropp = between(CollectiveKind::AllGather, DType::UInt8, n) +
                     between(CollectiveKind::AllToAll, DType::UInt8, n / 2);
    EXPECT_EQ(zero3, 3 * P * (nodes - 1));
    EXPECT_EQ(4 * zeropp, 3 * P * (nodes - 1));
  }
}

} // namespace
} // namespace partita_rt
