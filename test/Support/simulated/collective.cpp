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

/// What one rank has contributed to a group.
struct Given {
  std::vector<CollectiveCall> calls;
  std::vector<const char *> data; ///< of each call

  Given(const std::string &text, size_t count, int rank, int size) : calls(count) {
    size_t at = count * sizeof(CollectiveCall);
    if (text.size() < at)
      throw std::runtime_error("NCCL: rank " + std::to_string(rank) +
                               " has fewer calls in a group");
    std::memcpy(static_cast<void *>(calls.data()), text.data(), at);
    for (const CollectiveCall &call : calls) {
      data.push_back(text.data() + at);
      at += given(call, rank, size) * widthOf(call.type);
      if (at > text.size())
        throw std::runtime_error("NCCL would hang or compute nonsense: the ranks' groups differ");
    }
  }
};

bool isMessage(const CollectiveCall &call) {
  return call.kind == Kind::Send || call.kind == Kind::Receive;
}

/// Messages from one rank to another are received in the order in which a group sends them: returns the number
/// of the other end's call, or as many as there are.
size_t otherEnd(const std::vector<Given> &all, int rank, size_t number) {
  const CollectiveCall &call = all[size_t(rank)].calls[number];
  auto isAlike = [](const CollectiveCall &each, Kind kind, int peer) {
    return each.kind == kind && each.root == peer;
  };
  size_t before = 0;
  for (size_t c = 0; c < number; ++c)
    before += isAlike(all[size_t(rank)].calls[c], call.kind, call.root);
  const std::vector<CollectiveCall> &theirs = all[size_t(call.root)].calls;
  Kind kind = call.kind == Kind::Send ? Kind::Receive : Kind::Send;
  for (size_t c = 0; c < theirs.size(); ++c)
    if (isAlike(theirs[c], kind, rank) && before-- == 0)
      return c;
  return theirs.size();
}

void compare(const std::vector<Given> &all) {
  auto nonsense = [&](int a, const CollectiveCall &itsCall, int b, const std::string &other) {
    throw std::runtime_error("NCCL would hang or compute nonsense: rank " + std::to_string(a) +
                             " is at " + textOf(itsCall) + "; rank " + std::to_string(b) + other);
  };
  for (int r = 0; r < int(all.size()); ++r)
    for (size_t c = 0; c < all[0].calls.size(); ++c) {
      const CollectiveCall &theirs = all[0].calls[c], &mine = all[size_t(r)].calls[c];
      if (isMessage(mine)) {
        size_t other = otherEnd(all, r, c);
        if (other == all[0].calls.size())
          nonsense(r, mine, mine.root, " has no such call");
        const CollectiveCall &found = all[size_t(mine.root)].calls[other];
        if (found.count != mine.count || found.type != mine.type)
          nonsense(r, mine, mine.root, " at " + textOf(found));
      }
      bool alike = theirs.count == mine.count && theirs.type == mine.type && theirs.op == mine.op &&
                   theirs.root == mine.root && theirs.kind == mine.kind;
      if (isMessage(mine) != isMessage(theirs) || (!isMessage(mine) && !alike))
        nonsense(0, theirs, r, " at " + textOf(mine));
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
  int size = int(texts.size());
  std::vector<Given> all;
  for (int r = 0; r < size; ++r)
    all.emplace_back(texts[size_t(r)], group.size(), r, size);
  compare(all);
  for (size_t c = 0; c < group.size(); ++c) {
    const Collective &each = group[c];
    size_t width = widthOf(each.type);
    std::vector<const char *> from;
    for (const Given &its : all)
      from.push_back(its.data[c]);
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
      std::memcpy(each.to, all[size_t(each.root)].data[otherEnd(all, rank, c)], each.count * width);
      break;
    case Kind::AllGather:
      for (size_t r = 0; r < from.size(); ++r)
        std::memcpy(each.to + r * each.count * width, from[r], each.count * width);
      break;
    }
  }
}

} // namespace simulated
