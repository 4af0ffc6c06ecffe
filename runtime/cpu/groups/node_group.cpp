// Collectives within and between nodes (node_group.h).

#include "cpu/groups/node_group.h"

#include <algorithm>

namespace partita_rt {

namespace {
enum Tag { SumsBefore = 2, Data }; ///< besides that of announcements
} // namespace

//===-- Members -----------------------------------------------------------------------------===//

std::set<int> NodeGroup::peersOf(const NodeLayout &layout, int rank) {
  std::set<int> peers;
  int own = layout.nodeOf[size_t(rank)], local = rank - layout.firsts[size_t(own)];
  for (int n = 0; local < layout.carriers && n < layout.nodes(); ++n)
    if (n != own)
      peers.insert(layout.firsts[size_t(n)] + local);
  return peers;
}

NodeGroup::NodeGroup(std::string axis, int rank, NodeLayout itsLayout, BoardSlot *const *slots,
                     char *const *itsStaging, int64_t stagingSlotBytes,
                     std::shared_ptr<void> memory, std::unique_ptr<Messenger> itsMessenger)
    : SegmentedGroup(std::move(axis), rank, itsLayout.firsts.back()), layout(std::move(itsLayout)),
      node(layout.nodeOf[size_t(rank)]), first(layout.firsts[size_t(node)]), local(rank - first),
      carries(local < layout.carriers), board(axisName, local, layout.sizeOf(node), slots, first),
      staging(itsStaging, itsStaging + layout.sizeOf(node)), stagingSlotBytes(stagingSlotBytes),
      memory(std::move(memory)), messenger(std::move(itsMessenger)),
      announcements(*messenger, axisName, rank, peersOf(layout, rank), kRing) {
  for (StagingSlot &each : stagingSlots) {
    each.sumsBefore = messenger->exchange();
    each.messages = messenger->exchange();
  }
}

void NodeGroup::forStaging(const Visit &visit) const {
  for (const char *each : staging) // the others' pages that it reads count as its memory too
    visit(each, 2 * stagingSlotBytes * int64_t(kStagingSlots));
  for (const StagingSlot &each : stagingSlots)
    visit(each.sums.data(), int64_t(each.sums.capacity()));
}

template <typename Body> void NodeGroup::forOtherNodes(const Body &body) const {
  for (int n = 0; n < layout.nodes(); ++n)
    if (n != node)
      body(n);
}

template <typename Body> void NodeGroup::forArriving(int carrier, const Body &visit) const {
  int slot = 0;
  forOtherNodes([&](int n) {
    for (int r = carrier; r < layout.sizeOf(n); r += layout.carriers)
      visit(layout.firsts[size_t(n)] + r, slot++);
  });
}

//===-- Agreement ---------------------------------------------------------------------------===//

/// Ranks of a node compare their signatures on the board, carriers those of the nodes.
void NodeGroup::publish(uint64_t number) {
  board.publish(signature(number));
  announcements.publish(signature(number));
}

/// Returns a carrier of another node for which this one waits; -1 if there is none.
int NodeGroup::peerAwaited() const {
  std::set<int> peers;
  if (!announcements.isAgreed(completed + 1))
    announcements.addPeers(completed + 1, peers);
  for (uint64_t i = 0; i < kStagingSlots && peers.empty(); ++i) {
    const StagingSlot &staged = stagingSlots[(oldestSegment() + i) % kStagingSlots];
    staged.sumsBefore->addPeers(peers);
    if (peers.empty() && board.least(&BoardSlot::filled) > oldestSegment() + i)
      staged.messages->addPeers(peers);
  }
  return peers.empty() ? -1 : *peers.begin();
}

int NodeGroup::awaitedRank() const {
  int peer = peerAwaited();
  return peer >= 0 || staging.size() == 1 ? peer
                                          : first + board.awaitedRank(signature(completed + 1));
}

std::string NodeGroup::awaited() const {
  int peer = peerAwaited();
  if (peer < 0 && staging.size() > 1)
    return board.awaited(signature(completed + 1), memberText(awaitedRank()));
  std::string text = signature(completed + 1).text();
  return peer < 0 ? text : text + " for " + memberText(peer) + ", of another node";
}

//===-- What a carrier carries --------------------------------------------------------------===//

int64_t NodeGroup::segmentElements(const Request &request) const {
  return nodeSegment(layout, request.kind, sizeOf(request.dtype), stagingSlotBytes);
}

/// Returns the elements of what each rank gives that are a carrier's share.
Range NodeGroup::shareOfCarrier(const Segment &segment, int carrier) const {
  int64_t blocks = isFromFull(segment.request.kind) ? groupSize : 1;
  return shareOf(blocks * segment.count, carrier, layout.carriers);
}

/// Returns those of a share's sums that a node's ranks get.
Range NodeGroup::forNode(const Segment &segment, Range share, int n) const {
  if (!isFromFull(segment.request.kind))
    return share;
  return overlap(share, {layout.firsts[size_t(n)] * segment.count,
                         layout.firsts[size_t(n) + 1] * segment.count});
}

/// Returns what one rank gives to a node's ranks.
int64_t NodeGroup::slotBytes(const Segment &segment, int n) const {
  int64_t blocks = isFromFull(segment.request.kind) ? layout.sizeOf(n) : 1;
  return blocks * segment.count * segment.width;
}

void NodeGroup::send(StagingSlot &staged, const char *data, int64_t bytes, int n, int tag,
                     Sending how) {
  toOtherNodes += bytes;
  staged.messages->send(data, bytes, carrierOf(n), tag, how);
}

/// Starts to receive what a segment brings to this carrier.
void NodeGroup::await(const Segment &segment) {
  StagingSlot &staged = stagingSlots[segment.stagingSlot()];
  const Request &request = segment.request;
  Range share = shareOfCarrier(segment, local);
  char *to = arrived(local, segment);
  int last = layout.nodes() - 1;
  auto receive = [&](Range part, int n) {
    if (part.begin < part.end)
      staged.messages->receive(to + (part.begin - share.begin) * segment.width,
                               (part.end - part.begin) * segment.width, carrierOf(n), Data);
  };
  switch (formOf(request.kind)) {
  case Form::Sums:
    staged.sums.resize(size_t((share.end - share.begin) * sumWidth(request.dtype)));
    if (node > 0)
      staged.sumsBefore->receive(staged.sums.data(), int64_t(staged.sums.size()),
                                 carrierOf(node - 1), SumsBefore);
    if (node < last)
      receive(forNode(segment, share, node), last);
    break;
  case Form::Transfers:
    forArriving(local, [&](int member, int slot) {
      int64_t bytes = slotBytes(segment, node);
      staged.messages->receive(to + slot * bytes, bytes, carrierOf(layout.nodeOf[size_t(member)]),
                               Data);
    });
    break;
  case Form::Shift: {
    int border = request.back ? first + int(staging.size()) - 1 : first;
    receive(share, layout.nodeOf[size_t(shiftSource(border, groupSize, request.back))]);
    break;
  }
  case Form::Roots:
    if (int n = layout.nodeOf[size_t(request.root)]; n != node)
      receive(share, n);
    break;
  case Form::Barrier:
    forOtherNodes([&](int n) { staged.messages->receive(to + n, 1, carrierOf(n), Data); });
    break;
  }
}

/// Adds the node's values to the sums of the nodes before, and passes them on, or the results back.
void NodeGroup::sumShare(const Segment &segment) {
  StagingSlot &staged = stagingSlots[segment.stagingSlot()];
  DType dtype = segment.request.dtype;
  Range share = shareOfCarrier(segment, local);
  int64_t n = share.end - share.begin;
  std::vector<const char *> sources;
  for (int r = 0; r < int(staging.size()); ++r)
    sources.push_back(given(first + r, segment) + share.begin * segment.width);
  addInRankOrder(staged.sums.data(), node == 0, sources.data(), int(sources.size()), n, dtype,
                 segment.request.reduce);
  noteReduced(n * segment.width);
  worked += n * segment.width * int64_t(sources.size());
  if (node < layout.nodes() - 1)
    return send(staged, staged.sums.data(), int64_t(staged.sums.size()), node + 1, SumsBefore,
                Sending::Eager);
  char *results = arrived(local, segment);
  roundSums(results, staged.sums.data(), n, dtype);
  forOtherNodes([&](int other) {
    Range part = forNode(segment, share, other);
    if (part.begin < part.end)
      send(staged, results + (part.begin - share.begin) * segment.width,
           (part.end - part.begin) * segment.width, other, Data, Sending::Eager);
  });
}

void NodeGroup::sendTransfers(const Segment &segment) {
  StagingSlot &staged = stagingSlots[segment.stagingSlot()];
  forOtherNodes([&](int n) {
    int64_t begin = isFromFull(segment.request.kind) ? layout.firsts[size_t(n)] * segment.count : 0;
    for (int r = local; r < int(staging.size()); r += layout.carriers)
      send(staged, given(first + r, segment) + begin * segment.width, slotBytes(segment, n), n,
           Data, Sending::Eager);
  });
}

/// Sends the shards of the member at the node's border to the next node.
void NodeGroup::sendShift(const Segment &segment) {
  bool back = segment.request.back;
  int border = back ? first : first + int(staging.size()) - 1;
  Range share = shareOfCarrier(segment, local);
  if (share.begin < share.end)
    send(stagingSlots[segment.stagingSlot()], given(border, segment) + share.begin * segment.width,
         (share.end - share.begin) * segment.width,
         layout.nodeOf[size_t(shiftTarget(border, groupSize, back))], Data, Sending::Bulk);
}

//===-- Segments ----------------------------------------------------------------------------===//

bool NodeGroup::mayFill(const Segment &segment) {
  return segment.number < board.least(&BoardSlot::read) + kStagingSlots &&
         announcements.agree(signature(segment.collective));
}

void NodeGroup::fill(const Segment &segment) {
  const Request &request = segment.request;
  const CollectiveRow &row = rowOf(request.kind);
  int blocks = isFromFull(request.kind) ? groupSize : 1;
  char *mine = given(groupRank, segment);
  if (!row.inPlace || row.reduces || groupRank == request.root)
    for (int b = 0; b < blocks; ++b)
      pack(mine + b * segment.count * segment.width, segment, segment.begin, segment.count, b);
  worked += blocks * segment.count * segment.width;
  if (carries)
    await(segment);
  board.set(&BoardSlot::filled, segment.number + 1);
}

bool NodeGroup::mayReduce(const Segment &segment) {
  return board.agree(signature(segment.collective)) &&
         board.least(&BoardSlot::filled) > segment.number &&
         stagingSlots[segment.stagingSlot()].sumsBefore->test();
}

void NodeGroup::reduce(const Segment &segment) {
  StagingSlot &staged = stagingSlots[segment.stagingSlot()];
  if (!carries)
    return board.set(&BoardSlot::reduced, segment.number + 1);
  switch (formOf(segment.request.kind)) {
  case Form::Sums:
    return sumShare(segment);
  case Form::Transfers:
    return sendTransfers(segment);
  case Form::Shift:
    return sendShift(segment);
  case Form::Roots:
    if (int root = segment.request.root; layout.nodeOf[size_t(root)] == node) {
      Range share = shareOfCarrier(segment, local);
      forOtherNodes([&](int n) {
        if (share.begin < share.end)
          send(staged, given(root, segment) + share.begin * segment.width,
               (share.end - share.begin) * segment.width, n, Data, Sending::Eager);
      });
    }
    return;
  case Form::Barrier: // all of this node have come; the byte is no data, and is not counted
    forOtherNodes([&](int n) {
      staged.messages->send(given(groupRank, segment), 1, carrierOf(n), Data, Sending::Eager);
    });
    return;
  }
}

/// A carrier has reduced when its results have come, and what it sends has gone.
bool NodeGroup::mayRead(const Segment &segment) {
  if (carries && stagingSlots[segment.stagingSlot()].messages->test())
    board.set(&BoardSlot::reduced, segment.number + 1);
  return board.least(&BoardSlot::reduced) > segment.number;
}

/// Copies the wanted ones of the carriers' results, which are in the order of their shares.
void NodeGroup::readShares(const Segment &segment, Range wanted) {
  for (int c = 0; c < layout.carriers; ++c) {
    Range share = shareOfCarrier(segment, c), part = overlap(share, wanted);
    if (part.begin < part.end)
      unpack(arrived(c, segment) + (part.begin - share.begin) * segment.width, segment,
             segment.begin + part.begin - wanted.begin, part.end - part.begin);
  }
}

void NodeGroup::readTransfers(const Segment &segment) {
  bool full = isFromFull(segment.request.kind);
  int64_t block = segment.count * segment.width;
  for (int r = first; r < first + int(staging.size()); ++r)
    unpack(given(r, segment) + (full ? groupRank * block : 0), segment, segment.begin,
           segment.count, r);
  for (int c = 0; c < layout.carriers; ++c)
    forArriving(c, [&](int member, int slot) {
      unpack(arrived(c, segment) + slot * slotBytes(segment, node) + (full ? local * block : 0),
             segment, segment.begin, segment.count, member);
    });
}

void NodeGroup::read(const Segment &segment) {
  const Request &request = segment.request;
  int64_t count = segment.count;
  switch (formOf(request.kind)) {
  case Form::Sums:
    readShares(segment, isFromFull(request.kind) ? Range{groupRank * count, (groupRank + 1) * count}
                                                 : Range{0, count});
    break;
  case Form::Transfers:
    readTransfers(segment);
    count *= groupSize;
    break;
  case Form::Shift: {
    auto source = int(shiftSource(groupRank, groupSize, request.back));
    if (layout.nodeOf[size_t(source)] == node)
      unpack(given(source, segment), segment, segment.begin, count);
    else
      readShares(segment, {0, count});
    break;
  }
  case Form::Roots:
    if (layout.nodeOf[size_t(request.root)] != node)
      readShares(segment, {0, count});
    else if (groupRank != request.root)
      unpack(given(request.root, segment), segment, segment.begin, count);
    break;
  case Form::Barrier:
    break;
  }
  worked += count * segment.width;
}

} // namespace partita_rt
