// A collective as NCCL calls (nccl_group.h), and copies on the device.

#include "cuda/cuda.h"
#include "cuda/ranks/nccl_check.h"
#include "cuda/ranks/nccl_group.h"

#include <algorithm>

namespace partita_rt::cuda {

namespace {

ncclDataType_t typeOf(DType type) {
  switch (type) {
  case DType::Float32:
    return ncclFloat32;
  case DType::Float16:
    return ncclFloat16;
  case DType::BFloat16:
    return ncclBfloat16;
  case DType::Float64:
    return ncclFloat64;
  case DType::Int32:
    return ncclInt32;
  case DType::Int64:
    return ncclInt64;
  case DType::Bool: // only gathered, like bytes
  case DType::UInt8:
    return ncclUint8;
  default:
    fail("collectives cannot move %s", nameOf(type));
  }
}

ncclRedOp_t operationOf(Reduce reduce) {
  switch (reduce) {
  case Reduce::Sum:
    return ncclSum;
  case Reduce::Max:
    return ncclMax;
  }
  fail("NCCL has no reduction of number %d here", int(reduce));
}

/// Copies rows of `width` bytes.
void copyRows(cudaStream_t stream, char *to, int64_t toPitch, const char *from, int64_t fromPitch,
              int64_t width, int64_t rows) {
  // cudaMemcpy2D requires pitches below 2 GiB.
  if (std::max(toPitch, fromPitch) < (int64_t(1) << 31) && rows > 1)
    return checkCuda(cudaMemcpy2DAsync(to, size_t(toPitch), from, size_t(fromPitch), size_t(width),
                                       size_t(rows), cudaMemcpyDeviceToDevice, stream),
                     "a copy of blocks");
  for (int64_t row = 0; row < rows; ++row)
    checkCuda(cudaMemcpyAsync(to + row * toPitch, from + row * fromPitch, size_t(width),
                              cudaMemcpyDeviceToDevice, stream),
              "a copy of blocks");
}

/// Returns the number of items from `begin` on that are blocks of one transfer: equal in length and
/// distance.
size_t blocksFrom(const std::vector<Item> &items, size_t begin, int64_t fromStep, int64_t toStep) {
  size_t end = begin + 1;
  while (end < items.size() && items[begin].fullCount == INT64_MAX &&
         items[end].fullCount == INT64_MAX && items[end].count == items[begin].count &&
         items[end].from == items[end - 1].from + fromStep &&
         items[end].to == items[end - 1].to + toStep)
    ++end;
  return end - begin;
}

/// NCCL calls that are launched together.
class Group {
public:
  Group() { checkNccl(ncclGroupStart(), nullptr, "ncclGroupStart"); }
  ~Group() {
    if (open)
      ncclGroupEnd();
  }
  void end() {
    open = false;
    checkNccl(ncclGroupEnd(), nullptr, "ncclGroupEnd");
  }

private:
  bool open = true;
};

} // namespace

/// Issues everything that is not packed as one NCCL group: one launch per bucket.
void NcclGroup::issue(const Request &request) {
  const std::vector<Item> &items = request.items;
  int64_t width = sizeOf(request.dtype);
  const CollectiveRow &row = rowOf(request.kind);
  std::vector<std::pair<const Item *, size_t>> packed;
  Group group;
  if (request.kind == CollectiveKind::Barrier)
    checkNccl(ncclAllReduce(word.base, word.base, 1, ncclInt32, ncclMax, comm, stream), comm,
              request.why);
  for (size_t i = 0; i < items.size();) {
    int64_t part = items[i].count * width, full = part * groupSize;
    size_t blocks = 1;
    if (!row.inPlace)
      blocks = blocksFrom(items, i, row.from == Extent::Full ? full : part,
                          row.to == Extent::Full ? full : part);
    // Larger blocks are worth a call each.
    if (blocks > kMostBlocks && full <= kStagingBytes / 4 && row.from != row.to)
      packed.push_back({&items[i], blocks});
    else
      for (size_t block = 0; block < blocks; ++block)
        issueDirect(request, items[i + block]);
    i += blocks;
  }
  group.end();
  for (const auto &[first, blocks] : packed)
    issuePacked(request, first, blocks);
}

void NcclGroup::issueDirect(const Request &request, const Item &item) {
  ncclDataType_t type = typeOf(request.dtype);
  ncclRedOp_t operation = operationOf(request.reduce);
  int64_t width = sizeOf(request.dtype);
  size_t n = size_t(item.count);
  auto check = [&](ncclResult_t result) { checkNccl(result, comm, request.why); };
  bool shorter = item.fullCount < item.count * groupSize;
  if (n == 0)
    return;
  switch (request.kind) {
  case CollectiveKind::AllReduce:
    return check(ncclAllReduce(item.from, item.to, n, type, operation, comm, stream));
  case CollectiveKind::Broadcast:
    return check(ncclBroadcast(item.from, item.to, n, type, request.root, comm, stream));
  case CollectiveKind::Barrier:
    return;
  case CollectiveKind::ReduceScatter:
    if (!shorter)
      return check(ncclReduceScatter(item.from, item.to, n, type, operation, comm, stream));
    for (int r = 0; r < groupSize; ++r)
      if (size_t inside = size_t(item.inside(r, 0, item.count)))
        check(ncclReduce(item.from + r * item.count * width, item.to, inside, type, operation, r,
                         comm, stream));
    if (int64_t inside = item.inside(groupRank, 0, item.count); inside < item.count)
      checkCuda(cudaMemsetAsync(item.to + inside * width, 0, size_t((item.count - inside) * width),
                                stream),
                "clearing the padding");
    return;
  case CollectiveKind::AllGather:
    if (!shorter)
      return check(ncclAllGather(item.from, item.to, n, type, comm, stream));
    for (int r = 0; r < groupSize; ++r)
      if (size_t inside = size_t(item.inside(r, 0, item.count)))
        check(ncclBroadcast(item.from, item.to + r * item.count * width, inside, type, r, comm,
                            stream));
    return;
  case CollectiveKind::Shift:
    check(ncclSend(item.from, n, type, int(shiftTarget(groupRank, groupSize, request.back)), comm,
                   stream));
    return check(ncclRecv(item.to, n, type, int(shiftSource(groupRank, groupSize, request.back)),
                          comm, stream));
  case CollectiveKind::AllToAll:
    for (int r = 0; r < groupSize; ++r) {
      check(ncclSend(item.from + r * item.count * width, n, type, r, comm, stream));
      check(ncclRecv(item.to + r * item.count * width, n, type, r, comm, stream));
    }
    return;
  }
  fail("%s for %s: NCCL has no call for it here", nameOf(request.kind), request.why);
}

/// Issues as many blocks at a time as fit into the staging memory, in which the blocks of a rank
/// are contiguous, as in a shard.
void NcclGroup::issuePacked(const Request &request, const Item *items, size_t blocks) {
  ncclDataType_t type = typeOf(request.dtype);
  int64_t part = items[0].count * sizeOf(request.dtype), full = part * groupSize;
  int64_t most = kStagingBytes / full;
  char *memory = stagingMemory();
  for (int64_t begin = 0; begin < int64_t(blocks); begin += most) {
    int64_t n = std::min(most, int64_t(blocks) - begin);
    const Item &first = items[begin];
    size_t count = size_t(n * first.count);
    if (request.kind == CollectiveKind::AllGather) {
      checkNccl(ncclAllGather(first.from, memory, count, type, comm, stream), comm, request.why);
      for (int r = 0; r < groupSize; ++r)
        copyRows(stream, first.to + r * part, full, memory + r * n * part, part, part, n);
    } else if (request.kind == CollectiveKind::ReduceScatter) {
      for (int r = 0; r < groupSize; ++r)
        copyRows(stream, memory + r * n * part, part, first.from + r * part, full, part, n);
      checkNccl(ncclReduceScatter(memory, first.to, count, type, operationOf(request.reduce), comm,
                                  stream),
                comm, request.why);
    } else {
      fail("%s for %s: its blocks are not packed for NCCL", nameOf(request.kind), request.why);
    }
  }
}

char *NcclGroup::stagingMemory() {
  if (!staging)
    staging = std::make_unique<DeviceMemory>(kStagingBytes, "staging of collectives");
  return staging->base;
}

/// Calls copy(first block, step between blocks, number of blocks, place of the shard in them) for all blocks of a
/// tensor: mirrored ones, even and odd, apart.
template <typename Copy> static void forBlocks(ShardOf shard, int64_t blocks, Copy copy) {
  if (!shard.mirrored)
    return copy(0, 1, blocks, shard.rank);
  copy(0, 2, (blocks + 1) / 2, shard.placeIn(0));
  copy(1, 2, blocks / 2, shard.placeIn(1));
}

void takeShard(const Stream &stream, ShardOf shard, const void *from, void *to, int64_t count,
               int64_t blocks, int64_t full, int64_t width) {
  auto *source = static_cast<const char *>(from);
  auto *target = static_cast<char *>(to);
  int64_t part = count * width, first = shard.rank * part;
  if (count == 0 || blocks == 0)
    return;
  if (!full)
    return forBlocks(shard, blocks, [&](int64_t begin, int64_t step, int64_t n, int64_t place) {
      if (n > 0)
        copyRows(stream.handle, target + begin * part, part * step,
                 source + (begin * shard.ranks + place) * part, part * shard.ranks * step, part, n);
    });
  int64_t inside = std::clamp<int64_t>(full * width - first, 0, part);
  if (inside > 0)
    copyRows(stream.handle, target, part, source + first, part, inside, 1);
  if (inside < part)
    checkCuda(cudaMemsetAsync(target + inside, 0, size_t(part - inside), stream.handle),
              "clearing the padding");
}

void putShard(const Stream &stream, ShardOf shard, const void *from, void *to, int64_t count,
              int64_t blocks, int64_t width) {
  int64_t part = count * width, full = part * shard.ranks;
  if (count == 0 || blocks == 0)
    return;
  checkCuda(cudaMemsetAsync(to, 0, size_t(full * blocks), stream.handle), "clearing a tensor");
  forBlocks(shard, blocks, [&](int64_t begin, int64_t step, int64_t n, int64_t place) {
    if (n > 0)
      copyRows(stream.handle, static_cast<char *>(to) + (begin * shard.ranks + place) * part,
               full * step, static_cast<const char *>(from) + begin * part, part * step, part, n);
  });
}

} // namespace partita_rt::cuda
