// Collectives: entry points of comm.h, and signatures.

#include "common/mesh/request.h"
#include "partita_rt/channel.h"
#include "partita_rt/work.h"

namespace partita_rt {

int64_t Communicator::Request::elements() const {
  int64_t n = 0;
  for (const Item &item : items)
    n += item.count;
  return n;
}

int64_t Communicator::Request::bytes(int groupSize) const {
  return wireBytes(kind, elements() * sizeOf(dtype), groupSize);
}

std::string Signature::text() const {
  std::string text = std::string(nameOf(CollectiveKind(kind))) + (back ? " back" : "") + " #" +
                     std::to_string(number);
  if (CollectiveKind(kind) != CollectiveKind::Barrier)
    text += std::string(" (") + nameOf(DType(dtype)) + ", " + std::to_string(bytes) + " bytes in " +
            std::to_string(buffers) + (buffers == 1 ? " buffer)" : " buffers)");
  return text + " for " + why;
}

Signature signatureOf(const Communicator::Request &request, uint64_t number, int groupSize) {
  Signature signature;
  signature.number = number;
  signature.bytes = request.bytes(groupSize);
  signature.buffers = int64_t(request.items.size());
  signature.kind = uint8_t(request.kind);
  signature.dtype = uint8_t(request.dtype);
  signature.reduce = uint8_t(request.reduce);
  signature.back = request.back;
  signature.root = request.root;
  std::strncpy(signature.why, request.why, sizeof(signature.why) - 1);
  return signature;
}

std::string mismatchText(const std::string &axis, int rankA, const Signature &a, int rankB,
                         const Signature &b) {
  if (rankA < rankB)
    return mismatchText(axis, rankB, b, rankA, a);
  return "collectives differ between the ranks of axis " + axis + ": rank " +
         std::to_string(rankA) + " is at " + a.text() + ", rank " + std::to_string(rankB) + " at " +
         b.text();
}

namespace {

void addItems(std::vector<Item> &items, const Buffer &buffer, CollectiveKind, int) {
  items.push_back(
      {static_cast<const char *>(buffer.data), static_cast<char *>(buffer.data), buffer.count});
}

/// Adds one item per block.
void addItems(std::vector<Item> &items, const Transfer &transfer, CollectiveKind kind, int ranks) {
  int64_t part = transfer.count * sizeOf(transfer.dtype), full = part * ranks;
  int64_t fromStep = rowOf(kind).from == Extent::Full ? full : part,
          toStep = rowOf(kind).to == Extent::Full ? full : part;
  for (int64_t block = 0; block < transfer.blocks; ++block)
    items.push_back({static_cast<const char *>(transfer.from) + block * fromStep,
                     static_cast<char *>(transfer.to) + block * toStep, transfer.count,
                     transfer.fullCount ? transfer.fullCount : INT64_MAX});
}

/// `buffers`: a Bucket or Transfers.
template <typename Buffers>
Communicator::Request requestFor(const Communicator &group, CollectiveKind kind, Buffers buffers,
                                 const char *why) {
  Communicator::Request request;
  request.kind = kind;
  request.why = why;
  for (const auto &buffer : buffers) {
    if (buffer.dtype != buffers.begin()->dtype)
      fail("%s for %s: all tensors of a bucket have one type, found %s and %s", nameOf(kind), why,
           nameOf(buffers.begin()->dtype), nameOf(buffer.dtype));
    request.dtype = buffer.dtype;
    addItems(request.items, buffer, kind, group.size());
  }
  return request;
}

} // namespace

Pending startCollective(Communicator &group, CollectiveKind kind, Bucket bucket, const char *why,
                        Reduce reduce) {
  WorkScope scope(group.clock(), Work::Collectives);
  auto request = requestFor(group, kind, bucket, why);
  request.reduce = reduce;
  return group.start(std::move(request));
}

Pending startCollective(Communicator &group, CollectiveKind kind, Transfers transfers,
                        const char *why) {
  WorkScope scope(group.clock(), Work::Collectives);
  return group.start(requestFor(group, kind, transfers, why));
}

Pending shiftStart(Communicator &group, Transfers transfers, const char *why, bool back) {
  WorkScope scope(group.clock(), Work::Collectives);
  auto request = requestFor(group, CollectiveKind::Shift, transfers, why);
  request.back = back;
  return group.start(std::move(request));
}

Pending broadcastStart(Communicator &group, Bucket bucket, int root, const char *why) {
  auto request = requestFor(group, CollectiveKind::Broadcast, bucket, why);
  if (root < 0 || root >= group.size())
    fail("broadcast for %s: root %d is not one of %d ranks", why, root, group.size());
  request.root = root;
  return group.start(std::move(request));
}

void wait(Pending pending) {
  if (!pending.group)
    return;
  WorkScope scope(pending.group->clock(), Work::Collectives);
  pending.group->finish(pending.number);
}

void poll(Communicator &group, int64_t bytes) {
  WorkScope scope(group.clock(), Work::Collectives);
  group.poll(bytes);
}

void poll(Rank &rank, std::initializer_list<int> rows, int64_t bytes) {
  WorkScope scope(rank.clock, Work::Collectives);
  pollMessages(rank);
  for (int row : rows)
    if (bytes > 0)
      bytes -= rank.group(row).poll(bytes);
}

void broadcast(Communicator &group, Bucket bucket, int root, const char *why) {
  wait(broadcastStart(group, bucket, root, why));
}

Pending barrierStart(Communicator &group, const char *why) {
  return group.start(requestFor(group, CollectiveKind::Barrier, Bucket{}, why));
}

void barrier(Communicator &group, const char *why) { wait(barrierStart(group, why)); }

} // namespace partita_rt
