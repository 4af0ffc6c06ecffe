// Makes a process's groups and channels, and runs its rank (process_ranks.h).

#include "cpu/ranks/process_ranks.h"
#include "common/mesh/mesh.h"
#include "common/mesh/message.h"
#include "common/run_options.h"
#include "cpu/groups/channel.h"
#include "cpu/groups/message_channel.h"
#include "cpu/groups/message_group.h"
#include "cpu/groups/node_group.h"
#include "cpu/groups/window_group.h"
#include "cpu/ranks/run_rank.h"

#include <algorithm>
#include <new>
#include <numeric>

namespace partita_rt {

namespace {

int64_t windowBytes(int64_t stagingSlotBytes) {
  int64_t slotBytes = (sizeof(BoardSlot) + 4095) / 4096 * 4096;
  return slotBytes + stagingSlotBytes * int64_t(WindowGroup::kStagingSlots);
}

/// A group to make. Its window is at the same offset in every process's memory.
struct GroupPlan {
  const char *name;
  std::vector<int> members; ///< empty: this rank is in none
  int position = -1;
  int64_t stagingSlotBytes;
  int64_t windowAt = 0;
};

/// The windows of members on this node: their slots, and their staging memory.
struct Windows {
  std::vector<BoardSlot *> slots;
  std::vector<char *> staging;
  Windows(const GroupPlan &plan, const NodeMemory &memory, int self) {
    for (int rank : plan.members)
      if (memory.nodes[size_t(rank)] == memory.nodes[size_t(self)]) {
        char *at = memory.regions[size_t(rank)] + plan.windowAt;
        slots.push_back(reinterpret_cast<BoardSlot *>(at));
        staging.push_back(at + windowBytes(0));
      }
  }
};

/// Makes a rank's groups, of the paths that pathOf says.
/// Rows and world come in the same order on all processes.
class Groups {
public:
  Groups(ProcessLinks &processes, Rank &rank) : processes(processes), rank(rank) {
    std::vector<Membership> memberships = membershipsOf(rank);
    for (const Membership &own : memberships)
      add({own.name, own.ranks, own.position, kStagingSlotBytes});
    std::vector<int> all(static_cast<size_t>(rank.ranks));
    std::iota(all.begin(), all.end(), 0);
    add({"world", all, rank.rank, kWorldSlotBytes});
    shareWindows();
    rank.nodes = memory.nodes.data();
    for (size_t i = 0; i < plans.size(); ++i) {
      std::unique_ptr<Communicator> group = make(plans[i]);
      if (!group)
        continue;
      (i < memberships.size() ? rank.groups[memberships[i].row] : rank.world) = group.get();
      groups.push_back(std::move(group));
    }
  }

private:
  void add(GroupPlan plan) {
    plan.windowAt = bytes;
    bytes += windowBytes(2 * plan.stagingSlotBytes); // between nodes as much again arrives
    plans.push_back(std::move(plan));
  }

  void shareWindows() {
    memory = processes.shareMemory(bytes);
    for (const GroupPlan &plan : plans)
      new (memory.regions[size_t(rank.rank)] + plan.windowAt) BoardSlot();
    processes.allGather("", "windows"); // it is made before others look at it
  }

  std::unique_ptr<Communicator> make(const GroupPlan &plan) {
    int size = int(plan.members.size());
    std::vector<int> nodes;
    for (int rank : plan.members)
      nodes.push_back(memory.nodes[size_t(rank)]);
    NodeLayout layout(nodes);
    GroupPath path = pathOf(layout);
    bool sends = path == GroupPath::Messages || path == GroupPath::Nodes;
    std::set<int> peers;
    if (path == GroupPath::Nodes)
      peers = NodeGroup::peersOf(layout, plan.position);
    else
      for (int i = 0; sends && i < size; ++i)
        if (i != plan.position)
          peers.insert(i);
    auto messenger = processes.messenger(sends ? plan.members : std::vector<int>(), peers);
    Windows windows(plan, memory, rank.rank);
    switch (path) {
    case GroupPath::Nodes:
      return std::make_unique<NodeGroup>(plan.name, plan.position, layout, windows.slots.data(),
                                         windows.staging.data(), plan.stagingSlotBytes,
                                         memory.owner, std::move(messenger));
    case GroupPath::Messages:
      return std::make_unique<MessageGroup>(plan.name, plan.position, std::move(nodes),
                                            std::move(messenger));
    case GroupPath::Window:
      return std::make_unique<WindowGroup>(plan.name, plan.position, size, windows.slots.data(),
                                           windows.staging.data(), plan.stagingSlotBytes,
                                           memory.owner);
    case GroupPath::None:
      break;
    }
    return size == 1 ? std::make_unique<LonelyGroup>(plan.name) : nullptr;
  }

  ProcessLinks &processes;
  Rank &rank;
  int64_t bytes = 0; ///< of a process's windows
  std::vector<GroupPlan> plans;
  NodeMemory memory;
  std::vector<std::unique_ptr<Communicator>> groups;
};

/// The channels of this process's rank. `messenger` carries them.
RankChannels makeChannels(ProcessLinks &processes, Rank &rank,
                          std::unique_ptr<Messenger> &messenger) {
  RankChannels own;
  if (rank.ranks == 1)
    return own;
  own.waits = std::make_unique<RankWaits>(rank, processes.show(rank));
  std::vector<int> all(static_cast<size_t>(rank.ranks));
  std::iota(all.begin(), all.end(), 0);
  std::set<int> peers;
  for (const ChannelEndpoint &endpoint : channelsOf(rank))
    peers.insert(endpoint.peer);
  messenger = processes.messenger(all, peers);
  own.take(rank, [&](ChannelEndpoint endpoint) {
    bool leavesNode = rank.nodes[endpoint.peer] != rank.nodes[rank.rank];
    return std::make_unique<MessageChannel>(std::move(endpoint), *own.waits, *messenger,
                                            channelTests().rendezvous, leavesNode);
  });
  std::vector<ChannelEnd *> ends;
  for (auto &end : own.ends)
    ends.push_back(end.get());
  own.waits->setMoveMessages([ends] {
    for (ChannelEnd *end : ends)
      end->advance();
  });
  return own;
}

} // namespace

void runProcess(ProcessLinks &processes, const Program &program, const RunOptions *options,
                const std::function<void(Rank &)> &body) {
  std::unique_ptr<Groups> groups;
  std::shared_ptr<void> memory;
  std::unique_ptr<Messenger> messenger;
  RankChannels channels;
  std::shared_ptr<void> watch; // of what channels own
  Rank rank;
  setCoordinates(rank, program, processes.rank());
  rank.options = options;
  try {
    groups = std::make_unique<Groups>(processes, rank);
    channels = makeChannels(processes, rank, messenger);
    if (channels.waits)
      watch = processes.watch(*channels.waits);
    prepareMatmuls(1, options);
    runRank(rank, memory, body);
  } catch (const std::exception &error) {
    processes.fail(atSlot(rank) + failureText(error));
  }
}

} // namespace partita_rt
