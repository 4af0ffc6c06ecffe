#include "simulated/collective.h"

#include "partita_rt/half.h"
#include "simulated/nccl_types.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nccl.h>
#include <stdexcept>

namespace simulated {

using Kind = CollectiveCall::Kind;

const char *nameOf(Kind kind) {
  static const char *const names[] = {"all_reduce", "reduce", "broadcast", "reduce_scatter",
                                      "all_gather", "send",   "receive"};
  return names[int(kind)];
}

size_t widthOf(int type) { return bytesOfNccl(type); }

size_t given(const CollectiveCall &call, int rank, int size) {
  switch (call.kind) {
  case Kind::ReduceScatter:
    return call.count * size_t(size);
  case Kind::Broadcast:
    return rank == call.root ? call.count : 0;
  case Kind::Receive:
    return 0;
  default:
    return call.count;
  }
}

size_t received(const CollectiveCall &call, int rank, int size) {
  switch (call.kind) {
  case Kind::AllGather:
    return call.count * size_t(size);
  case Kind::Reduce:
    return rank == call.root ? call.count : 0;
  case Kind::Send:
    return 0;
  default:
    return call.count;
  }
}

namespace {

std::string textOf(const CollectiveCall &call) {
  return std::string(nameOf(call.kind)) + " of " + std::to_string(call.count) +
         " elements of type " + std::to_string(call.type) + ", operation " +
         std::to_string(call.op) + ", root " + std::to_string(call.root);
}

template <typename T, typename S = T>
void reduce(char *to, const std::vector<const char *> &from, size_t count, int op) {
  for (size_t i = 0; i < count; ++i) {
    auto element = [&](size_t r) {
      T value;
      std::memcpy(&value, from[r] + i * sizeof(T), sizeof(T));
      return S(value);
    };
    S result = element(0);
    for (size_t r = 1; r < from.size(); ++r) {
      S x = element(r);
      if (op == ncclSum)
        result = S(result + x);
      else // like fmaxf, which ignores a NaN
        result = x > result || result != result ? x : result;
    }
    T rounded = T(result);
    std::memcpy(to + i * sizeof(T), &rounded, sizeof(T));
  }
}

void reduce(char *to, const std::vector<const char *> &from, size_t count, int type, int op) {
  using namespace partita_rt;
  if (op != ncclSum && op != ncclMax) {
    std::fprintf(stderr, "the simulated NCCL has no reduction of number %d\n", op);
    std::abort();
  }
  switch (type) {
  case ncclFloat32:
    return reduce<float>(to, from, count, op);
  case ncclFloat64:
    return reduce<double>(to, from, count, op);
  case ncclFloat16:
    return reduce<Half, float>(to, from, count, op);
  case ncclBfloat16:
    return reduce<BFloat16, float>(to, from, count, op);
  case ncclInt32:
    return reduce<int32_t>(to, from, count, op);
  case ncclInt64:
    return reduce<int64_t>(to, from, count, op);
  case ncclInt8:
    return reduce<int8_t>(to, from, count, op);
  case ncclUint8:
    return reduce<uint8_t>(to, from, count, op);
  case ncclUint32:
    return reduce<uint32_t>(to, from, count, op);
  case ncclUint64:
    return reduce<uint64_t>(to, from, count, op);
  default:
    throw std::runtime_error("NCCL: the simulation does not reduce type " + std::to_string(type));
  }
}

CollectiveCall callAt(const std::string &contribution, size_t number) {
  CollectiveCall call;
  std::memcpy(static_cast<void *>(&call), contribution.data() + number * sizeof(call),
              sizeof(call));
  return call;
}

/// Returns the call that rank 0 must make if rank 1 makes this one.
CollectiveCall counterpart(CollectiveCall call) {
  if (call.kind == Kind::Send || call.kind == Kind::Receive) {
    call.kind = call.kind == Kind::Send ? Kind::Receive : Kind::Send;
    call.root = 1 - call.root;
  }
  return call;
}

void compare(const std::vector<std::string> &texts, size_t calls) {
  constexpr size_t bytes = sizeof(CollectiveCall);
  for (size_t r = 1; r < texts.size(); ++r)
    for (size_t c = 0; c < calls; ++c) {
      if (texts[r].size() < (c + 1) * bytes)
        throw std::runtime_error("NCCL: rank " + std::to_string(r) + " has fewer calls in a group");
      CollectiveCall theirs = callAt(texts[0], c), mine = counterpart(callAt(texts[r], c));
      if (theirs.count != mine.count || theirs.type != mine.type || theirs.op != mine.op ||
          theirs.root != mine.root || theirs.kind != mine.kind)
        throw std::runtime_error("NCCL would hang or compute nonsense: rank 0 is at " +
                                 textOf(callAt(texts[0], c)) + "; rank " + std::to_string(r) +
                                 " at " + textOf(callAt(texts[r], c)));
    }
}

} // namespace

std::string contribution(const std::vector<Collective> &group, int rank, int size) {
  std::string text;
  for (const Collective &each : group) {
    CollectiveCall call;
    std::memset(static_cast<void *>(&call), 0, sizeof(call)); // padding is compared too
    call.count = each.count;
    call.type = each.type;
    call.op = each.op;
    call.root = each.root;
    call.kind = each.kind;
    text.append(reinterpret_cast<const char *>(&call), sizeof(call));
  }
  for (const Collective &each : group)
    if (size_t n = given(each, rank, size))
      text.append(each.from, n * widthOf(each.type));
  return text;
}

void compute(const std::vector<Collective> &group, int rank,
             const std::vector<std::string> &texts) {
  compare(texts, group.size());
  int size = int(texts.size());
  std::vector<size_t> at(texts.size(), group.size() * sizeof(CollectiveCall));
  for (size_t c = 0; c < group.size(); ++c) {
    const Collective &each = group[c];
    size_t width = widthOf(each.type);
    std::vector<const char *> from;
    for (int r = 0; r < size; ++r) {
      from.push_back(texts[size_t(r)].data() + at[size_t(r)]);
      at[size_t(r)] += given(callAt(texts[size_t(r)], c), r, size) * width;
      if (at[size_t(r)] > texts[size_t(r)].size())
        throw std::runtime_error("NCCL would hang or compute nonsense: the ranks' groups differ");
    }
    switch (each.kind) {
    case Kind::ReduceScatter:
      for (const char *&x : from)
        x += size_t(rank) * each.count * width;
      [[fallthrough]];
    case Kind::AllReduce:
      reduce(each.to, from, each.count, each.type, each.op);
      break;
    case Kind::Reduce:
      if (rank == each.root)
        reduce(each.to, from, each.count, each.type, each.op);
      break;
    case Kind::Broadcast:
      std::memcpy(each.to, from[size_t(each.root)], each.count * width);
      break;
    case Kind::Send:
      break;
    case Kind::Receive:
      std::memcpy(each.to, from[size_t(each.root)], each.count * width);
      break;
    case Kind::AllGather:
      for (size_t r = 0; r < from.size(); ++r)
        std::memcpy(each.to + r * each.count * width, from[r], each.count * width);
      break;
    }
  }
}

} // namespace simulated
