// Shards of tensors as slices and as runs (tensor_shards.h).

#include "common/tensors/tensor_shards.h"

#include "common/tensors/layout.h"

namespace partita_rt {

/// Returns a parameter's or state's memory on this rank.
template <typename Tensor>
static void *dataIfHeld(const Rank &rank, const Tensor &tensor, const StageSet &stages) {
  return stages.contains(rank.stageNumber) ? rank.dataOf(tensor) : nullptr;
}

Shape fullShape(const OptimizerState &state, const Shape &parameter) {
  if (state.rows == 0)
    return state.localShape.rank == 0 ? Shape{} : parameter;
  Shape full;
  full.rank = parameter.rank + 1;
  full.dims[0] = state.rows;
  std::copy_n(parameter.dims, parameter.rank, full.dims + 1);
  return full;
}

std::vector<TensorShard> parameterShards(const Rank &rank) {
  std::vector<TensorShard> shards;
  for (const Parameter &p : rank.program->parameters)
    shards.push_back({p.name, p.dtype, p.globalShape, p.localShape, p.splits,
                      dataIfHeld(rank, p, p.stages), p.stages, p.home});
  return shards;
}

std::vector<TensorShard> persistentShards(const Rank &rank) {
  const Program &program = *rank.program;
  std::vector<TensorShard> shards = parameterShards(rank);
  for (const OptimizerState &state : program.optimizerStates) {
    const Parameter &p = program.parameters[state.parameter];
    shards.push_back({state.name, state.dtype, fullShape(state, p.globalShape), state.localShape,
                      state.splits, dataIfHeld(rank, state, p.stages), p.stages, state.home,
                      state.rows});
  }
  for (const ScalarState &state : program.scalarStates)
    shards.push_back({state.name,
                      state.dtype,
                      state.shape,
                      state.shape,
                      {},
                      rank.persistent<char>(state.offset),
                      {}});
  return shards;
}

std::vector<TensorShard> heldShards(const Rank &rank) {
  std::vector<TensorShard> held;
  for (const TensorShard &shard : persistentShards(rank))
    if (shard.stages.contains(rank.stageNumber))
      held.push_back(shard);
  return held;
}

std::vector<int64_t> sizesOf(const Shape &shape) {
  return std::vector<int64_t>(shape.dims, shape.dims + shape.rank);
}

namespace {

/// Returns the splits of one dimension, as if it were the only one; or all but the flat ones.
Splits splitsOf(const Splits &splits, int dim) {
  Splits own;
  for (Split split : splits)
    if (split.dim == dim) {
      split.dim = 0;
      own.list[own.count++] = split;
    }
  return own;
}
Splits withoutFlat(const Splits &splits) {
  Splits rest;
  for (const Split &split : splits)
    if (split.dim != kFlat)
      rest.list[rest.count++] = split;
  return rest;
}

std::vector<int64_t> rangesOf(const Program &program, const int *coordinates, int64_t size,
                              const Splits &splits) {
  std::vector<std::pair<int64_t, int64_t>> runs;
  forRuns(program, coordinates, Shape{size}, splits,
          [&](int64_t global, int64_t, int64_t n) { runs.emplace_back(global, global + n); });
  std::sort(runs.begin(), runs.end());
  std::vector<int64_t> ranges;
  for (auto [begin, end] : runs)
    if (!ranges.empty() && ranges.back() == begin)
      ranges.back() = end;
    else
      ranges.insert(ranges.end(), {begin, end});
  return ranges;
}

} // namespace

Slices slicesOf(const Program &program, const int *coordinates, const Shape &global,
                const Splits &splits) {
  Slices slices;
  for (int d = 0; d < global.rank; ++d)
    slices.dims.push_back(rangesOf(program, coordinates, global[d], splitsOf(splits, d)));
  slices.last = slices.boxElements();
  if (splits.count == withoutFlat(splits).count)
    return slices;
  // Shards of a shard are counted with its padding, slices without.
  auto [shape, plain] = factored(global, alike(splits));
  for (const Split &split : plain)
    shape.dims[split.dim] = shardSize(shape[split.dim], program.mesh[split.axis].size);
  FlatShard flat = flatShard(program, coordinates, splits, shape.elements());
  int64_t begin = flat.first, end = flat.last;
  if (shape.elements() == slices.last) {
    slices.first = std::min(begin, slices.last);
    slices.last = std::min(end, slices.last);
    return slices;
  }
  slices.last = 0;
  forRuns(program, coordinates, global, withoutFlat(splits),
          [&](int64_t, int64_t local, int64_t n) {
            slices.first += std::clamp<int64_t>(begin - local, 0, n);
            slices.last += std::clamp<int64_t>(end - local, 0, n);
          });
  return slices;
}

int firstOwner(const Program &program, const int *coordinates, const Splits &splits,
               const StageSet &stages) {
  bool split[kMaxAxes] = {};
  for (const Split &each : splits)
    split[each.axis] = true;
  int number = 0;
  for (int axis = 0; axis < program.mesh.size(); ++axis) {
    int first = axis == program.stageAxis ? stages.first() : 0;
    number = number * program.mesh[axis].size + (split[axis] ? coordinates[axis] : first);
  }
  return number;
}

bool isFirstOwner(const Program &program, const int *coordinates, const Splits &splits,
                  const StageSet &stages) {
  int number = 0;
  for (int axis = 0; axis < program.mesh.size(); ++axis)
    number = number * program.mesh[axis].size + coordinates[axis];
  return number == firstOwner(program, coordinates, splits, stages);
}

bool isSharded(const Program &program) {
  if (program.stages.size() > 1)
    return true;
  auto less = [&](const auto &tensor) {
    return std::any_of(tensor.splits.begin(), tensor.splits.end(),
                       [&](const Split &split) { return program.mesh[split.axis].size > 1; });
  };
  return std::any_of(program.parameters.begin(), program.parameters.end(), less) ||
         std::any_of(program.optimizerStates.begin(), program.optimizerStates.end(), less);
}

std::vector<Run> runsOf(const Rank &rank, const Shape &shape, const Splits &splits) {
  std::vector<Run> runs;
  forRuns(*rank.program, rank.coordinates, shape, splits,
          [&](int64_t global, int64_t local, int64_t n) { runs.push_back({global, local, n}); });
  auto before = [](const Run &a, const Run &b) { return a.global < b.global; };
  if (!std::is_sorted(runs.begin(), runs.end(), before)) // unequal blocks come one after another
    std::sort(runs.begin(), runs.end(), before);
  return runs;
}

std::vector<Run> runsOfRows(const Rank &rank, const TensorShard &shard, int64_t rows) {
  Shape row;
  row.rank = shard.global.rank - 1;
  std::copy_n(shard.global.dims + 1, row.rank, row.dims);
  Splits splits;
  for (Split split : shard.splits)
    if (split.dim != 0) {
      split.dim -= split.dim == kFlat ? 0 : 1;
      splits.list[splits.count++] = split;
    }
  std::vector<Run> ofRow = runsOf(rank, row, splits), all;
  for (int64_t number = 0; number < rows; ++number)
    for (const Run &run : ofRow)
      all.push_back({number * row.elements() + run.global, run.local, run.count});
  return all;
}

} // namespace partita_rt
