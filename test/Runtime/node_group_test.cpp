// Collectives within and between nodes (node_group.h): the bits of plain messages, and how much goes
// between nodes: as it is in messages, as groups count it, and as node_traffic.h says beforehand. Ranks are
// threads, and messages are copied through a table.

#include "cpu/groups/message_group.h"
#include "cpu/groups/node_group.h"
#include "partita_rt/half.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <thread>

namespace partita_rt {
namespace {

/// What is on its way, and how many bytes have gone between nodes.
struct Mail {
  std::vector<int> nodes; ///< by rank
  std::mutex mutex;
  std::map<std::array<int, 3>, std::deque<std::vector<char>>> messages; ///< by from, to, tag
  std::atomic<int64_t> between{0};
};

class TestExchange final : public Exchange {
public:
  TestExchange(Mail &mail, int self) : mail(mail), self(self) {}
  void send(const void *data, int64_t bytes, int to, int tag, Sending) override {
    std::lock_guard<std::mutex> lock(mail.mutex);
    auto *begin = static_cast<const char *>(data);
    mail.messages[{self, to, tag}].emplace_back(begin, begin + bytes);
    if (mail.nodes[size_t(self)] != mail.nodes[size_t(to)])
      mail.between += bytes;
  }
  void receive(void *data, int64_t bytes, int from, int tag) override {
    receives.push_back({static_cast<char *>(data), bytes, from, tag});
  }
  bool test() override {
    std::lock_guard<std::mutex> lock(mail.mutex);
    while (!receives.empty()) {
      const Receive &first = receives.front();
      auto &arrived = mail.messages[{first.from, self, first.tag}];
      if (arrived.empty())
        return false;
      EXPECT_EQ(int64_t(arrived.front().size()), first.bytes);
      std::copy(arrived.front().begin(), arrived.front().end(), first.data);
      arrived.pop_front();
      receives.pop_front();
    }
    return true;
  }
  void addPeers(std::set<int> &peers) const override {
    for (const Receive &each : receives)
      peers.insert(each.from);
  }

private:
  struct Receive {
    char *data;
    int64_t bytes;
    int from, tag;
  };
  Mail &mail;
  int self;
  std::deque<Receive> receives;
};

struct TestMessenger final : Messenger {
  TestMessenger(Mail &mail, int self) : mail(mail), self(self) {}
  std::unique_ptr<Exchange> exchange() override {
    return std::make_unique<TestExchange>(mail, self);
  }
  Mail &mail;
  int self;
};

constexpr int64_t kStagingSlotBytes = 64 << 10;

/// Runs the body on each rank of a group on these nodes. Returns the bytes between them, and in `counted` those that each rank
/// says it has sent to other nodes.
int64_t run(const std::vector<int> &nodes, bool flat,
            const std::function<void(Communicator &)> &body,
            std::vector<int64_t> *counted = nullptr) {
  Mail mail;
  mail.nodes = nodes;
  NodeLayout layout(nodes);
  int size = int(nodes.size());
  std::vector<BoardSlot> slots(nodes.size());
  std::vector<std::vector<char>> staging(nodes.size(), std::vector<char>(16 * kStagingSlotBytes));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      auto messenger = std::make_unique<TestMessenger>(mail, rank);
      std::unique_ptr<Communicator> group;
      std::vector<BoardSlot *> itsSlots;
      std::vector<char *> itsStaging;
      for (int r = 0; r < size; ++r)
        if (nodes[size_t(r)] == nodes[size_t(rank)]) {
          itsSlots.push_back(&slots[size_t(r)]);
          itsStaging.push_back(staging[size_t(r)].data());
        }
      if (flat)
        group = std::make_unique<MessageGroup>("dp", rank, nodes, std::move(messenger));
      else
        group = std::make_unique<NodeGroup>("dp", rank, layout, itsSlots.data(), itsStaging.data(),
                                            kStagingSlotBytes, nullptr, std::move(messenger));
      body(*group);
      barrier(*group, "the end");
      if (counted)
        (*counted)[size_t(rank)] = group->sentToOtherNodes();
    });
  for (std::thread &thread : threads)
    thread.join();
  return mail.between;
}

/// Values whose sum depends on the order of addition.
template <typename T> std::vector<T> values(int64_t n, int seed) {
  std::vector<T> all;
  for (int64_t i = 0; i < n; ++i)
    all.push_back(T(float((i * 7919 + seed * 104729) % 10007) * (seed % 2 ? 1e-3f : 1.f)));
  return all;
}

template <typename T>
std::vector<std::vector<T>> resultsOf(const std::vector<int> &nodes, bool flat) {
  int64_t ranks = int64_t(nodes.size()), n = 70001; // several segments, no multiple of anything
  std::vector<std::vector<T>> all(nodes.size());
  run(nodes, flat, [&](Communicator &group) {
    std::vector<T> sum = values<T>(n, group.rank()), full = values<T>(n * ranks, group.rank() + 9),
                   part(size_t(n), T(0.f)), gathered(size_t(n * ranks), T(0.f)), most = sum,
                   roots = values<T>(n, group.rank() + 5), next(size_t(n), T(0.f)), back = next,
                   exchanged(full.size(), T(0.f));
    Pending scatter = reduceScatterStart(group, {{full.data(), part.data(), n}}, "scatter");
    allReduce(group, {{sum.data(), n}}, "sum");
    allReduce(group, {{most.data(), 7}}, "max", Reduce::Max);
    wait(scatter);
    allGather(group, {{part.data(), gathered.data(), n}}, "gather");
    broadcast(group, {{roots.data(), n}}, int(ranks) - 1, "broadcast");
    Pending shifted = shiftStart(group, {{part.data(), next.data(), n}}, "shift");
    shift(group, {{sum.data(), back.data(), n}}, "shift back", /*back=*/true);
    wait(shifted);
    allToAll(group, {{full.data(), exchanged.data(), n}}, "exchange");
    for (const std::vector<T> *each :
         {&sum, &most, &part, &gathered, &roots, &next, &back, &exchanged})
      all[size_t(group.rank())].insert(all[size_t(group.rank())].end(), each->begin(), each->end());
  });
  return all;
}

template <typename T> void expectSame(const std::vector<int> &nodes) {
  auto own = resultsOf<T>(nodes, false), flat = resultsOf<T>(nodes, true);
  for (size_t r = 0; r < own.size(); ++r)
    EXPECT_EQ(std::memcmp(own[r].data(), flat[r].data(), own[r].size() * sizeof(T)), 0)
        << "rank " << r;
}

TEST(NodeGroup, HasTheBitsOfMessages) {
  for (const std::vector<int> &nodes : {std::vector<int>{0, 0, 2, 2},
                                        {0, 0, 0, 3},
                                        {0, 1, 1},
                                        {0, 0, 2, 2, 4, 4},
                                        {0, 0, 0, 3, 3}}) {
    ASSERT_TRUE(NodeLayout(nodes).fits);
    expectSame<float>(nodes);
    expectSame<BFloat16>(nodes); // its sums go between nodes as floats
  }
}

TEST(NodeGroup, SendsOncePerNode) {
  std::vector<int> nodes{0, 0, 0, 0, 4, 4, 4, 4};
  int64_t n = 1 << 16, bytes = n * 4, ranks = 8;
  auto between = [&](bool flat, const std::function<void(Communicator &)> &body) {
    return run(nodes, flat, body) - run(nodes, flat, [](Communicator &) {});
  };
  // A signature of each carrier to the other node: 4 carriers, in both directions.
  int64_t signatures = 8 * int64_t(sizeof(Signature)),
          flatSignatures = 32 * int64_t(sizeof(Signature));
  auto sum = [&](Communicator &group) {
    std::vector<float> x(size_t(n), 1.f);
    allReduce(group, {{x.data(), n}}, "sum");
  };
  EXPECT_EQ(between(false, sum), 2 * bytes + signatures); // sums there, results back
  EXPECT_EQ(between(true, sum), 8 * bytes + flatSignatures);
  auto gather = [&](Communicator &group) {
    std::vector<float> x(size_t(n), 1.f), all(size_t(n * ranks));
    allGather(group, {{x.data(), all.data(), n}}, "gather");
  };
  EXPECT_EQ(between(false, gather), ranks * bytes + signatures); // each shard once
  EXPECT_EQ(between(true, gather), ranks * 4 * bytes + flatSignatures);
  auto scatter = [&](Communicator &group) {
    std::vector<float> x(size_t(n * ranks), 1.f), part(static_cast<size_t>(n));
    reduceScatter(group, {{x.data(), part.data(), n}}, "scatter");
  };
  EXPECT_EQ(between(false, scatter), (ranks + 4) * bytes + signatures); // sums there, half back
  EXPECT_EQ(between(true, scatter), ranks * 4 * bytes + flatSignatures);
  auto root = [&](Communicator &group) {
    std::vector<float> x(size_t(n), 1.f);
    broadcast(group, {{x.data(), n}}, 1, "root");
  };
  EXPECT_EQ(between(false, root), bytes + signatures);
  EXPECT_EQ(between(true, root), 4 * bytes + flatSignatures);
}

/// Starts one collective of a kind over shards of n elements.
template <typename T> void issue(Communicator &group, CollectiveKind kind, int64_t n) {
  std::vector<T> part(size_t(n), T(1.f)), other(size_t(n), T(1.f)),
      full(size_t(n * group.size()), T(1.f)), more = full;
  switch (kind) {
  case CollectiveKind::AllReduce:
    return allReduce(group, {{part.data(), n}}, "sum");
  case CollectiveKind::ReduceScatter:
    return reduceScatter(group, {{full.data(), part.data(), n}}, "scatter");
  case CollectiveKind::AllGather:
    return allGather(group, {{part.data(), full.data(), n}}, "gather");
  case CollectiveKind::Broadcast:
    return broadcast(group, {{part.data(), n}}, 0, "root");
  case CollectiveKind::Barrier:
    return barrier(group, "barrier");
  case CollectiveKind::Shift:
    return shift(group, {{part.data(), other.data(), n}}, "shift");
  case CollectiveKind::AllToAll:
    return allToAll(group, {{full.data(), more.data(), n}}, "exchange");
  }
}

/// Compares the three counts of one collective's bytes.
template <typename T>
void expectCounted(const std::vector<int> &nodes, CollectiveKind kind, int64_t n) {
  NodeLayout layout(nodes);
  bool flat = pathOf(layout) == GroupPath::Messages;
  std::vector<int64_t> byRank(nodes.size());
  auto once = [&](Communicator &group) { issue<T>(group, kind, n); };
  int64_t sent = run(nodes, flat, once, &byRank) - run(nodes, flat, [](Communicator &) {});
  int64_t signatures = 0;
  for (size_t r = 0; r < nodes.size(); ++r)
    if (flat)
      signatures += std::count_if(nodes.begin(), nodes.end(), [&](int n) { return n != nodes[r]; });
    else
      signatures += int64_t(NodeGroup::peersOf(layout, int(r)).size());
  sent -= signatures * int64_t(sizeof(Signature));
  std::vector<int64_t> byNode(size_t(layout.nodes()));
  int64_t all = 0;
  for (size_t r = 0; r < nodes.size(); ++r) {
    byNode[size_t(layout.nodeOf[r])] += byRank[r];
    all += byRank[r];
  }
  // Through shared memory a barrier sends a byte from each carrier to each of its peers, which is no data.
  EXPECT_EQ(all, kind == CollectiveKind::Barrier ? 0 : sent);
  std::vector<LevelBytes> said = NodeTraffic(layout, kind, kDTypeOf<T>, n).byNode();
  for (size_t node = 0; node < said.size(); ++node)
    EXPECT_EQ(byNode[node], said[node].between)
        << rowOf(kind).name << " of " << n << ", node " << node << " of " << layout.nodes();
}

TEST(NodeTraffic, IsWhatIsSent) {
  for (const std::vector<int> &nodes : {std::vector<int>{0, 0, 2, 2},
                                        {0, 0, 0, 3}, // one carrier each, for three members
                                        {0, 1, 1},
                                        {0, 0, 2, 2, 4, 4},
                                        {0, 0, 0, 3, 3},
                                        {0, 1, 2, 3}, // one rank per node
                                        {0, 1, 0, 1}, // back and forth
                                        {0, 1, 2, 2, 1}})
    for (const CollectiveRow &row : kCollectives)
      for (int64_t n : {1, 15, 1000, 70001}) { // less than a share's line, one segment, several
        expectCounted<float>(nodes, row.kind, n);
        expectCounted<BFloat16>(nodes, row.kind, n);
      }
}

TEST(NodeGroup, NeedsNodesWhoseRanksFollowEachOther) {
  EXPECT_FALSE(NodeLayout({0, 1, 0, 1}).fits);
  EXPECT_FALSE(NodeLayout({0, 1, 2}).fits); // nothing is shared
  EXPECT_FALSE(NodeLayout({0, 0, 0}).fits); // all is
  EXPECT_TRUE(NodeLayout({0, 0, 2}).fits);
}

} // namespace
} // namespace partita_rt
