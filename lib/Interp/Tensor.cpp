//===- Tensor.cpp - the interpreter's values --------------------------------------------------===//

#include "partita/Interp/Tensor.h"
#include "dialects/Par/Placement.h"
#include "partita/Interp/Random.h"
#include "runtime/include/partita_rt/shards.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace mlir;
using namespace partita;
using namespace partita::interp;

//===------------------------------------------------------------------------------------------===//
// Tensor
//===------------------------------------------------------------------------------------------===//

static int64_t product(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

Tensor::Tensor(RankedTensorType type)
    : Tensor(type.getShape(), isa<FloatType>(type.getElementType())) {}

Tensor::Tensor(ArrayRef<int64_t> shape, bool isReal) : shape(shape), isReal(isReal) {
  if (isReal)
    reals.assign(product(shape), 0.0);
  else
    ints.assign(product(shape), 0);
}

int64_t Tensor::size() const { return product(shape); }

int64_t Tensor::leading(int64_t trailing) const {
  return product(ArrayRef(shape).drop_back(trailing));
}

void Tensor::add(const Tensor &other) {
  for (size_t i = 0; i < reals.size(); ++i)
    reals[i] += other.reals[i];
  for (size_t i = 0; i < ints.size(); ++i)
    ints[i] += other.ints[i];
}

bool Tensor::identical(const Tensor &other) const {
  auto same = [](const auto &a, const auto &b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0);
  };
  return shape == other.shape && same(reals, other.reals) && same(ints, other.ints);
}

SmallVector<int64_t> partita::interp::rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t d = static_cast<int64_t>(shape.size()) - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * shape[d + 1];
  return strides;
}

std::string partita::interp::indexText(ArrayRef<int64_t> shape, int64_t linear) {
  SmallVector<int64_t> index(shape.size());
  for (int64_t d = static_cast<int64_t>(shape.size()) - 1; d >= 0; --d) {
    index[d] = linear % shape[d];
    linear /= shape[d];
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "[";
  llvm::interleaveComma(index, stream);
  stream << "]";
  return text;
}

//===------------------------------------------------------------------------------------------===//
// Full values and shards
//===------------------------------------------------------------------------------------------===//

/// Where the rank's shard begins, per dimension of a factored layout: an axis cuts what the axes
/// before it left.
static SmallVector<int64_t> shardStart(const par::Layout &layout, par::MeshAttr mesh,
                                       int64_t rank) {
  SmallVector<int64_t> start(layout.shape.size(), 0);
  for (auto [d, axes] : llvm::enumerate(layout.splits)) {
    int64_t size = layout.shape[d];
    for (const par::AxisSplit &split : axes) {
      size = partita_rt::shardSize(size, mesh.sizeOf(split.axis.getValue()));
      start[d] += mesh.coordinate(rank, split.axis.getValue()) * size;
    }
  }
  return start;
}

/// The shape of one rank's shard of a factored layout.
static SmallVector<int64_t> shardShape(const par::Layout &factors, par::MeshAttr mesh) {
  SmallVector<int64_t> shape(factors.shape);
  for (auto [size, axes] : llvm::zip(shape, factors.splits))
    for (const par::AxisSplit &split : axes)
      size = partita_rt::shardSize(size, mesh.sizeOf(split.axis.getValue()));
  return shape;
}

/// The elements of what a rank has without the flat axes that are in its flat shard, [first, end): an
/// axis cuts what the axes before it left, so each shard of a shard ends in padding of its own.
static std::pair<int64_t, int64_t> flatRange(const par::Layout &factors, par::MeshAttr mesh,
                                             int64_t rank) {
  int64_t count = product(shardShape(factors, mesh)), first = 0, end = count;
  for (StringAttr axis : factors.flat) {
    count = partita_rt::flatShardSize(count, mesh.sizeOf(axis.getValue()));
    first += mesh.coordinate(rank, axis.getValue()) * count;
    end = std::min(end, first + count);
  }
  return {first, std::max(first, end)};
}

/// Calls f(position in the shard, position in the full value) for every element of it that a
/// rank's shard of a factored layout has.
template <typename F>
static void forShard(const par::Layout &factors, par::MeshAttr mesh, int64_t rank, F f) {
  auto [first, end] = flatRange(factors, mesh, rank);
  SmallVector<int64_t> start = shardStart(factors, mesh, rank), shard = shardShape(factors, mesh);
  SmallVector<int64_t> strides = rowMajorStrides(factors.shape), inside(shard), local;
  int64_t base = 0;
  for (auto [size, begin, full, stride] : llvm::zip(inside, start, factors.shape, strides)) {
    size = std::min(size, full - begin);
    base += begin * stride;
  }
  walk(inside, rowMajorStrides(shard), 0, [&](int64_t, int64_t at) { local.push_back(at); });
  walk(inside, strides, base, [&, first = first, end = end](int64_t i, int64_t at) {
    if (local[i] >= first && local[i] < end)
      f(local[i] - first, at);
  });
}

/// The factors of a layout whose unequal blocks are taken for one, which is as much.
static par::Layout alikeFactors(par::Layout layout) {
  for (int dim; (dim = layout.unequalDim()) >= 0;)
    layout.splits[dim].front().blocks = 1;
  return layout.factored();
}

/// The same of any layout without flat axes, whose shards have the shape `local`: unequal blocks
/// one after another, each as a whole of its own.
static void forBlocks(const par::Layout &layout, ArrayRef<int64_t> local, par::MeshAttr mesh,
                      int64_t rank, function_ref<void(int64_t, int64_t)> f) {
  int dim = layout.unequalDim();
  if (dim < 0)
    return forShard(layout.factored(), mesh, rank, f);
  int64_t parts = mesh.sizeOf(layout.splits[dim].front().axis.getValue()), before = 0;
  auto innerOf = [&](ArrayRef<int64_t> shape) {
    return std::accumulate(shape.begin() + dim + 1, shape.end(), int64_t{1}, std::multiplies<>());
  };
  // From an index where the dimension is a block to one where it is `size` and the block begins at
  // `begin`.
  auto moved = [](int64_t index, int64_t inner, int64_t block, int64_t size, int64_t begin) {
    int64_t row = index / inner;
    return (row / block * size + begin + row % block) * inner + index % inner;
  };
  for (int64_t block : layout.splits[dim].front().blocks.sizes) {
    par::Layout part = layout;
    part.shape[dim] = block;
    part.splits[dim].front().blocks = 1;
    SmallVector<int64_t> partLocal(local);
    partLocal[dim] = block / parts;
    forBlocks(part, partLocal, mesh, rank, [&](int64_t inShard, int64_t inFull) {
      f(moved(inShard, innerOf(local), block / parts, local[dim], before / parts),
        moved(inFull, innerOf(layout.shape), block, layout.shape[dim], before));
    });
    before += block;
  }
}

static void forShardOf(const par::Layout &layout, par::MeshAttr mesh, int64_t rank,
                       function_ref<void(int64_t, int64_t)> f);

/// Mirrored blocks: every second one is that of the rank at the other end of the axis. The shards of both ranks are alike inside.
static void forMirrored(par::Layout layout, par::MeshAttr mesh, int64_t rank,
                        function_ref<void(int64_t, int64_t)> f) {
  int dim = layout.mirroredDim();
  auto *split = llvm::find_if(layout.splits[dim],
                              [](const par::AxisSplit &each) { return each.blocks.mirrored; });
  SmallVector<int64_t> group = mesh.group(rank, split->axis.getValue());
  int64_t other = group[group.size() - 1 - mesh.coordinate(rank, split->axis.getValue())];
  int64_t block = product(ArrayRef(layout.shape).drop_front(dim)) / split->blocks.count;
  split->blocks.mirrored = false;
  for (bool isOdd : {false, true})
    forShardOf(layout, mesh, isOdd ? other : rank, [&](int64_t inShard, int64_t inFull) {
      if ((inFull / block % 2 == 1) == isOdd)
        f(inShard, inFull);
    });
}

/// The same of any layout.
static void forShardOf(const par::Layout &layout, par::MeshAttr mesh, int64_t rank,
                       function_ref<void(int64_t, int64_t)> f) {
  if (layout.mirroredDim() >= 0)
    return forMirrored(layout, mesh, rank, f);
  if (layout.unequalDim() < 0)
    return forShard(layout.factored(), mesh, rank, f);
  SmallVector<int64_t> local(layout.shape);
  for (auto [size, axes] : llvm::zip(local, layout.splits)) // blocks divide, or there is one
    for (const par::AxisSplit &split : axes)
      size = partita_rt::shardSize(size, mesh.sizeOf(split.axis.getValue()));
  auto [first, end] = flatRange(alikeFactors(layout), mesh, rank);
  forBlocks(layout.withoutFlat(), local, mesh, rank,
            [&, first = first, end = end](int64_t inShard, int64_t inFull) {
              if (inShard >= first && inShard < end)
                f(inShard - first, inFull);
            });
}

static int64_t offsetOf(ArrayRef<int64_t> index, ArrayRef<int64_t> strides) {
  int64_t offset = 0;
  for (auto [i, s] : llvm::zip(index, strides))
    offset += i * s;
  return offset;
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(shape, stream, "x");
  return text;
}

LogicalResult partita::interp::checkType(Type anyType, par::MeshAttr mesh, ErrorFn error) {
  auto type = cast<RankedTensorType>(anyType);
  par::Layout layout = par::Layout::of(type);
  if (!type.hasStaticShape() || !isa<FloatType, IntegerType>(type.getElementType())) {
    std::string message;
    llvm::raw_string_ostream(message)
        << "the interpreter needs static shapes of numbers, this is " << type;
    error(message);
    return failure();
  }
  auto local = layout.localType(type.getElementType(), mesh, error);
  if (failed(local))
    return failure();
  if (local->getShape() == type.getShape())
    return success();
  std::string message;
  llvm::raw_string_ostream(message)
      << "one rank's shard should be " << *local << ", the program says " << type;
  error(message);
  return failure();
}

/// Replaces each tensor with random shares that sum to it over the ranks of `axis`.
static void splitIntoShares(RankTensors &tensors, par::MeshAttr mesh, StringRef axis,
                            uint64_t seed) {
  RankTensors shares(tensors.size());
  for (size_t rank = 0; rank < tensors.size(); ++rank) {
    if (mesh.coordinate(rank, axis) != 0)
      continue;
    SmallVector<int64_t> group = mesh.group(rank, axis);
    Tensor rest = *tensors[rank];
    for (auto [i, member] : llvm::enumerate(ArrayRef(group).drop_back())) {
      Tensor share(rest.shape, rest.isReal);
      uint64_t key = randomKey(seed + i, axis);
      for (int64_t e = 0; e < share.size(); ++e) {
        // Small integers keep integer shares small; the spread of the noise is of the values'
        // order.
        double noise = standardNormal(key, e);
        share.setNumber(e, rest.isReal ? 0.6 * rest.reals[e] + noise : std::floor(2 * noise));
        rest.setNumber(e, rest.number(e) - share.number(e));
      }
      shares[member] = std::make_shared<Tensor>(std::move(share));
    }
    shares[group.back()] = std::make_shared<Tensor>(std::move(rest));
  }
  tensors = std::move(shares);
}

FailureOr<RankTensors> partita::interp::cut(const Tensor &full, Type type, par::MeshAttr mesh,
                                            uint64_t seed, ErrorFn error) {
  auto tensorType = cast<RankedTensorType>(type);
  par::Layout layout = par::Layout::of(type);
  if (ArrayRef(full.shape) != ArrayRef(layout.shape) ||
      full.isReal != isa<FloatType>(tensorType.getElementType())) {
    error(llvm::formatv("a value of shape [{0}] is given for one of shape [{1}]",
                        shapeText(full.shape), shapeText(layout.shape))
              .str());
    return failure();
  }
  if (failed(checkType(type, mesh, error)))
    return failure();
  par::Layout factors = alikeFactors(layout);
  SmallVector<int64_t> strides = rowMajorStrides(factors.shape);
  RankTensors shards;
  // Ranks whose shards begin at one place share the shard.
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::shared_ptr<const Tensor>> byOffset;
  for (int64_t rank = 0; rank < mesh.rankCount(); ++rank) {
    int64_t base = offsetOf(shardStart(factors, mesh, rank), strides);
    auto [first, end] = flatRange(factors, mesh, rank);
    std::shared_ptr<const Tensor> &shard = byOffset[{base, first, end}];
    if (!shard) {
      Tensor copy(tensorType);
      forShardOf(layout, mesh, rank,
                 [&](int64_t to, int64_t from) { copy.copyElement(to, full, from); });
      shard = std::make_shared<Tensor>(std::move(copy));
    }
    shards.push_back(shard);
  }
  for (StringAttr axis : layout.partial)
    splitIntoShares(shards, mesh, axis.getValue(), seed);
  return shards;
}

/// Combines the tensors of each group of ranks that differ along `axis`, in the order of the axis;
/// the group shares the result.
static RankTensors overGroups(par::MeshAttr mesh, StringRef axis, const RankTensors &values,
                              function_ref<void(Tensor &, const Tensor &)> combine) {
  RankTensors combined(values.size());
  for (size_t rank = 0; rank < values.size(); ++rank) {
    SmallVector<int64_t> group = mesh.group(rank, axis);
    if (group.front() != static_cast<int64_t>(rank)) {
      combined[rank] = combined[group.front()];
      continue;
    }
    Tensor result = *values[rank];
    for (int64_t other : ArrayRef(group).drop_front())
      combine(result, *values[other]);
    combined[rank] = std::make_shared<Tensor>(std::move(result));
  }
  return combined;
}

RankTensors partita::interp::sumOverGroups(par::MeshAttr mesh, StringRef axis,
                                           const RankTensors &values) {
  return overGroups(mesh, axis, values, [](Tensor &sum, const Tensor &other) { sum.add(other); });
}

RankTensors partita::interp::maxOverGroups(par::MeshAttr mesh, StringRef axis,
                                           const RankTensors &values) {
  return overGroups(mesh, axis, values, [](Tensor &max, const Tensor &other) {
    for (int64_t i = 0; i < other.size(); ++i)
      if (!(max.number(i) >= other.number(i))) // also takes a NaN on
        max.setNumber(i, other.number(i));
  });
}

FailureOr<Tensor> partita::interp::assemble(const RankTensors &shards, Type type,
                                            par::MeshAttr mesh, ErrorFn error) {
  par::Layout layout = par::Layout::of(type);
  if (failed(checkType(type, mesh, error)) || failed(checkAgreement(shards, type, mesh, error)))
    return failure();
  RankTensors sums = shards;
  for (StringAttr axis : layout.partial)
    sums = sumOverGroups(mesh, axis.getValue(), sums);
  for (StringAttr axis : layout.max)
    sums = maxOverGroups(mesh, axis.getValue(), sums);
  Tensor full(layout.shape, shards.front()->isReal);
  par::Layout factors = alikeFactors(layout);
  SmallVector<int64_t> strides = rowMajorStrides(factors.shape);
  std::set<std::pair<int64_t, int64_t>> written;
  for (int64_t rank = 0; rank < mesh.rankCount(); ++rank) {
    int64_t base = offsetOf(shardStart(factors, mesh, rank), strides);
    if (written.insert({base, flatRange(factors, mesh, rank).first}).second)
      forShardOf(layout, mesh, rank,
                 [&](int64_t from, int64_t to) { full.copyElement(to, *sums[rank], from); });
  }
  return full;
}

LogicalResult partita::interp::checkAgreement(const RankTensors &shards, Type type,
                                              par::MeshAttr mesh, ErrorFn error) {
  if (llvm::all_of(shards, [&](const auto &shard) { return shard == shards.front(); }))
    return success();
  par::Layout layout = par::Layout::of(type);
  for (StringAttr axis : mesh.getAxes()) {
    par::Kind kind = layout.kind(axis);
    if (kind != par::Kind::Invariant && kind != par::Kind::Replicated)
      continue;
    for (int64_t rank = 0; rank < mesh.rankCount(); ++rank) {
      int64_t first = mesh.group(rank, axis.getValue()).front();
      const Tensor &a = *shards[first], &b = *shards[rank];
      if (shards[first] == shards[rank] || a.identical(b))
        continue;
      int64_t at = 0;
      while (at + 1 < a.size() && a.number(at) == b.number(at))
        ++at;
      error(llvm::formatv("is {0} over {1}, but element {2} is {3} on rank {4} and {5} on rank {6}",
                          par::toString(kind), axis.getValue(), indexText(a.shape, at),
                          a.number(at), first, b.number(at), rank)
                .str());
      return failure();
    }
  }
  return success();
}
