// Locates a rank's shard in the full tensor.

#ifndef PARTITA_RT_COMMON_TENSORS_LAYOUT_H
#define PARTITA_RT_COMMON_TENSORS_LAYOUT_H

#include "partita_rt/program.h"
#include "partita_rt/shards.h"

#include <algorithm>
#include <functional>

namespace partita_rt {

/// A shape in which every split divides an entire dimension: a dimension that is split within its
/// blocks becomes its factors, [4, 3 x 8 split] becomes [4, 3, 8 split]. The elements keep their
/// order.
struct FactoredShape {
  Shape shape;
  Splits splits;
};
inline FactoredShape factored(const Shape &global, const Splits &splits) {
  FactoredShape result;
  for (int d = 0; d < global.rank; ++d) {
    int64_t begin = 1;
    result.shape.dims[result.shape.rank++] = global[d];
    for (const Split &split : splits) {
      if (split.dim != d)
        continue;
      if (split.blocks != begin) {
        int64_t front = split.blocks / begin, &last = result.shape.dims[result.shape.rank - 1];
        result.shape.dims[result.shape.rank] = last / front;
        last = front;
        ++result.shape.rank;
        begin = split.blocks;
      }
      result.splits.list[result.splits.count++] = {result.shape.rank - 1, split.axis, 1};
    }
  }
  return result;
}

/// Returns the first index of the shard along each dimension of a factored shape.
inline Shape shardStart(const Program &program, const int *coordinates, const Shape &global,
                        const Splits &splits) {
  Shape start, size = global;
  start.rank = global.rank;
  for (const Split &split : splits) {
    size.dims[split.dim] = shardSize(size[split.dim], program.mesh[split.axis].size);
    start.dims[split.dim] += coordinates[split.axis] * size.dims[split.dim];
  }
  return start;
}

/// Calls visit(globalIndex, localIndex, n) for the runs of n elements that are contiguous in both
/// the full tensor and the shard, in the shard's order. Leaves out padding, which is beyond the
/// full tensor.
template <typename Visit>
void forRuns(const Shape &global, const Shape &local, const Shape &start, Visit visit) {
  Shape inside = local;
  for (int d = 0; d < global.rank; ++d)
    inside.dims[d] = std::min(local[d], global[d] - start[d]);
  // Trailing dimensions that the shard holds in full form one run with the dimension before them.
  int last = global.rank;
  int64_t run = 1;
  while (last > 0) {
    --last;
    run *= inside[last];
    if (inside[last] != global[last] || local[last] != global[last])
      break;
  }
  if (global.rank == 0 || inside.elements() <= 0) {
    if (global.rank == 0)
      visit(0, 0, 1);
    return;
  }
  int64_t runs = inside.elements() / run;
  for (int64_t r = 0; r < runs; ++r) {
    int64_t rest = r, stride = 1, index = 0, shard = 0, shardStride = 1;
    for (int d = global.rank - 1; d >= 0; --d) {
      int64_t at = 0;
      if (d < last) {
        at = rest % inside[d];
        rest /= inside[d];
      }
      index += (start[d] + at) * stride;
      shard += at * shardStride;
      stride *= global[d];
      shardStride *= local[d];
    }
    visit(index, shard, run);
  }
}

/// A flat split of the elements that the other splits leave. Each axis splits the shard that those before
/// it leave, so a shard of a shard ends in padding of its own.
struct FlatShard {
  int64_t parts = 1; ///< shards
  int64_t count = 0; ///< elements of each, with its padding
  int64_t first = 0; ///< this rank's elements are [first, last)
  int64_t last = 0;
};
inline FlatShard flatShard(const Program &program, const int *coordinates, const Splits &splits,
                           int64_t elements) {
  FlatShard shard{1, elements, 0, elements};
  for (const Split &split : splits)
    if (split.dim == kFlat) {
      shard.parts *= program.mesh[split.axis].size;
      shard.count = flatShardSize(shard.count, program.mesh[split.axis].size);
      shard.first += coordinates[split.axis] * shard.count;
      shard.last = std::min(shard.last, shard.first + shard.count);
    }
  shard.last = std::max(shard.first, shard.last);
  return shard;
}

/// Treats unequal blocks as one block: a rank's share has the same size.
inline Splits alike(Splits splits) {
  for (int i = 0; i < splits.count; ++i)
    if (splits.list[i].sizes[0] != 0)
      splits.list[i] = {splits.list[i].dim, splits.list[i].axis};
  return splits;
}

using VisitRun = std::function<void(int64_t global, int64_t local, int64_t count)>;
inline void forRunsInBlocks(const Program &program, const int *coordinates, const Shape &global,
                            const Splits &splits, const Split &unequal, const VisitRun &visit);

inline void forRunsMirrored(const Program &program, const int *coordinates, const Shape &global,
                            Splits splits, int mirrored, const VisitRun &visit);

/// Does the same for the shard of the rank at these coordinates, however the tensor is split. Runs of mirrored
/// blocks do not ascend.
template <typename Visit>
void forRuns(const Program &program, const int *coordinates, const Shape &global,
             const Splits &splits, Visit visit) {
  for (int i = 0; i < splits.count; ++i)
    if (splits.list[i].mirrored)
      return forRunsMirrored(program, coordinates, global, splits, i, visit);
  const Split *unequal = std::find_if(splits.begin(), splits.end(),
                                      [](const Split &split) { return split.sizes[0] != 0; });
  auto [shape, plain] = factored(global, alike(splits));
  Shape local = shape;
  for (const Split &split : plain)
    local.dims[split.dim] = shardSize(local[split.dim], program.mesh[split.axis].size);
  Shape start = shardStart(program, coordinates, shape, plain);
  FlatShard flat = flatShard(program, coordinates, splits, local.elements());
  if (flat.parts == 1 && unequal == splits.end())
    return forRuns(shape, local, start, visit);
  auto inFlat = [&](int64_t globalIndex, int64_t localIndex, int64_t n) {
    int64_t begin = std::max(localIndex, flat.first), end = std::min(localIndex + n, flat.last);
    if (begin < end)
      visit(globalIndex + begin - localIndex, begin - flat.first, end - begin);
  };
  if (unequal == splits.end())
    return forRuns(shape, local, start, inFlat);
  forRunsInBlocks(program, coordinates, global, splits, *unequal, inFlat);
}

/// Visits unequal blocks one after another, each as a tensor of its own: runs ascend within a
/// block, but those of the next block may begin before them.
inline void forRunsInBlocks(const Program &program, const int *coordinates, const Shape &global,
                            const Splits &splits, const Split &unequal, const VisitRun &visit) {
  int64_t parts = program.mesh[unequal.axis].size, before = 0, inner = 1, innerShard = 1;
  Shape local = global;
  Splits equal; // without the flat ones
  for (const Split &split : splits)
    if (split.dim != kFlat) {
      local.dims[split.dim] = shardSize(local[split.dim], program.mesh[split.axis].size);
      equal.list[equal.count++] = &split == &unequal ? Split{split.dim, split.axis} : split;
    }
  for (int d = unequal.dim + 1; d < global.rank; ++d)
    inner *= global[d], innerShard *= local[d];
  auto moved = [](int64_t index, int64_t inner, int64_t block, int64_t size, int64_t begin) {
    int64_t row = index / inner;
    return (row / block * size + begin + row % block) * inner + index % inner;
  };
  for (int64_t b = 0; b < unequal.blocks; ++b) {
    int64_t block = unequal.sizes[b], size = global[unequal.dim];
    Shape part = global;
    part.dims[unequal.dim] = block;
    VisitRun inBlock = [&](int64_t full, int64_t shard, int64_t count) {
      for (int64_t done = 0; done < count;) { // a run ends at the end of its block
        int64_t row = inner * block, left = row - (full + done) % row;
        int64_t n = std::min(count - done, left);
        visit(moved(full + done, inner, block, size, before),
              moved(shard + done, innerShard, block / parts, size / parts, before / parts), n);
        done += n;
      }
    };
    forRuns(program, coordinates, part, equal, inBlock);
    before += block;
  }
}

/// Every second block is that of the rank at the other end of the axis. The shards of both ranks are alike
/// inside; a run ends at the end of its block.
inline void forRunsMirrored(const Program &program, const int *coordinates, const Shape &global,
                            Splits splits, int mirrored, const VisitRun &visit) {
  Split &split = splits.list[mirrored];
  split.mirrored = false;
  int64_t block = global[split.dim] / split.blocks;
  for (int d = split.dim + 1; d < global.rank; ++d)
    block *= global[d];
  int other[kMaxAxes];
  std::copy_n(coordinates, kMaxAxes, other);
  other[split.axis] = program.mesh[split.axis].size - 1 - coordinates[split.axis];
  for (bool isOdd : {false, true}) {
    VisitRun inBlocks = [&](int64_t full, int64_t shard, int64_t count) {
      for (int64_t done = 0; done < count;) {
        int64_t at = full + done, n = std::min(count - done, block - at % block);
        if ((at / block % 2 == 1) == isOdd)
          visit(at, shard + done, n);
        done += n;
      }
    };
    forRuns(program, isOdd ? other : coordinates, global, splits, inBlocks);
  }
}

} // namespace partita_rt

#endif // PARTITA_RT_COMMON_TENSORS_LAYOUT_H
