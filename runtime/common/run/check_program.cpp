// Checks the tables of a program before anything runs, so that an emitter's mistake is one message.

#include "common/run/check_program.h"
#include "common/mesh/census.h"
#include "common/tensors/layout.h"
#include "common/tensors/tensor_shards.h"

#include <algorithm>
#include <set>
#include <string>

namespace partita_rt {

namespace {

void checkShard(const Program &program, const std::string &what, const Shape &global,
                const Shape &local, const Splits &splits) {
  Shape expected = global;
  int64_t factors = global.rank;
  for (const Split &split : splits) {
    if (split.axis < 0 || split.axis >= program.mesh.size())
      fail("%s is split over mesh axis %d of %lld", what.c_str(), split.axis,
           (long long)program.mesh.size());
    if (split.dim == kFlat)
      continue;
    if (split.dim < 0 || split.dim >= global.rank)
      fail("%s is split in dimension %d, its shape is %s", what.c_str(), split.dim,
           toString(global).c_str());
    if (split.sizes[0] != 0) {
      int64_t together = 0, parts = program.mesh[split.axis].size;
      bool divide = split.blocks >= 1 && split.blocks <= kMaxBlocks;
      for (int64_t b = 0; divide && b < split.blocks; ++b) {
        together += split.sizes[b];
        divide &= split.sizes[b] > 0 && split.sizes[b] % parts == 0;
      }
      for (const Split &other : splits)
        divide &= &other == &split || other.dim != split.dim;
      if (!divide || together != global[split.dim])
        fail("%s: dimension %d of %s has no %lld blocks of its table's sizes that divide by %lld",
             what.c_str(), split.dim, toString(global).c_str(), (long long)split.blocks,
             (long long)parts);
      continue;
    }
    int64_t before = 1;
    for (const Split *other = splits.begin(); other != &split; ++other)
      if (other->dim == split.dim)
        before = other->blocks;
    factors += split.blocks != before;
    if (split.mirrored && split.blocks % 2 != 0)
      fail(
          "%s: dimension %d of %s has %lld blocks, of which not every second one is dealt backwards",
          what.c_str(), split.dim, toString(global).c_str(), (long long)split.blocks);
    if (split.blocks < before || split.blocks % before != 0 ||
        global[split.dim] % split.blocks != 0)
      fail("%s: dimension %d of %s has no %lld blocks within %lld", what.c_str(), split.dim,
           toString(global).c_str(), (long long)split.blocks, (long long)before);
  }
  if (factors > kMaxDims)
    fail("%s has %lld factors, more than %d", what.c_str(), (long long)factors, kMaxDims);
  Splits equal = alike(splits);
  auto [shape, plain] = factored(global, equal);
  const Split *next = plain.begin(); // in the order of dimensions
  for (int dim = 0; dim < global.rank; ++dim)
    for (const Split &split : equal) {
      if (split.dim != dim)
        continue;
      int64_t &left = shape.dims[next++->dim];
      int size = program.mesh[split.axis].size;
      bool alone = split.blocks == 1 &&
                   1 == std::count_if(splits.begin(), splits.end(),
                                      [&](const Split &other) { return other.dim == dim; });
      int64_t shard = alone ? shardSize(left, size) : left / size;
      if (alone ? shard * (size - 1) >= left && left % size != 0 : left % size != 0)
        fail("%s: dimension %d of %s does not divide by %d, the size of mesh axis %s", what.c_str(),
             dim, toString(global).c_str(), size, program.mesh[split.axis].name);
      expected.dims[dim] = alone ? shard : expected[dim] / size;
      left = shard;
    }
  static constexpr int kNowhere[kMaxAxes] = {};
  if (FlatShard flat = flatShard(program, kNowhere, splits, expected.elements()); flat.parts > 1)
    expected = {flat.count};
  if (expected != local)
    fail("%s: the local shape of %s is %s by its splits, the table says %s", what.c_str(),
         toString(global).c_str(), toString(expected).c_str(), toString(local).c_str());
}

void checkOffset(const std::string &what, int64_t offset, int64_t bytes, int64_t limit,
                 const char *memory) {
  if (offset < 0 || offset > limit || bytes > limit - offset)
    fail("%s at offset %lld with %lld bytes does not fit into %s of %lld bytes", what.c_str(),
         (long long)offset, (long long)bytes, memory, (long long)limit);
}

/// Calls `check(stage)` for all stages of a set, which must be stages of the program.
template <typename Check>
void forStages(const Program &program, const std::string &what, const StageSet &stages,
               Check check) {
  bool any = false;
  for (int number = 0; number < int(program.stages.size()); ++number)
    if (stages.contains(number)) {
      check(program.stages[number]);
      any = true;
    }
  if (!any)
    fail("%s is on no stage", what.c_str());
}

/// Checks that a parameter or state lies within its home's memory and has a type that initial
/// values can be rounded to.
template <typename Tensor>
void checkHome(const Program &program, const std::string &what, const Tensor &tensor,
               const StageSet &stages) {
  if (tensor.dtype != DType::Float32 && !isShortFloat(tensor.dtype))
    fail("%s is %s; parameters and their states are float32, float16 or bfloat16", what.c_str(),
         nameOf(tensor.dtype));
  bool host = tensor.home == Home::Host;
  forStages(program, what, stages, [&](const Stage &stage) {
    checkOffset(what, tensor.offset, tensor.localShape.elements() * sizeOf(tensor.dtype),
                host ? stage.hostBytes : stage.persistentBytes,
                host ? "the host's memory" : "persistent memory");
  });
}

/// Checks that there is one stage per position along the stage axis, all with the same entry points.
void checkStages(const Program &program) {
  if (program.stageAxis < -1 || program.stageAxis >= program.mesh.size())
    fail("the stages are along axis %d of %lld", program.stageAxis, (long long)program.mesh.size());
  int positions = program.stageAxis < 0 ? 1 : program.mesh[program.stageAxis].size;
  if (program.stages.size() != positions || positions > kMaxStages)
    fail("the program has %lld stages for %d positions on the mesh, at most %d are possible",
         (long long)program.stages.size(), positions, kMaxStages);
  static constexpr std::pair<void (*Stage::*)(Rank &), const char *> entries[] = {
      {&Stage::init, "init"},
      {&Stage::trainStep, "train_step"},
      {&Stage::evalStep, "eval_step"},
      {&Stage::forward, "forward"}};
  for (auto [entry, name] : entries)
    for (const Stage &stage : program.stages)
      if (!(stage.*entry) != !program.has(entry))
        fail("some stages have a function %s, others do not", name);
}

/// Rows that join ranks of the mesh.
void checkGroups(const Program &program) {
  if (program.groups.size() > kMaxGroups)
    fail("the program has %lld kinds of groups, at most %d are possible",
         (long long)program.groups.size(), kMaxGroups);
  auto hasAny = [](const NumberSet &set, int64_t below) {
    for (int number = 0; number < int(below); ++number)
      if (set.contains(number))
        return true;
    return false;
  };
  for (const Group &group : program.groups)
    if (!hasAny(group.axes, program.mesh.size()) || !hasAny(group.stages, program.stages.size()))
      fail("group %s is over no axis of the mesh, or of no stage of the program", group.name);
}

/// Directed pairs of two stages; what one end's stage announces the other's does as well.
void checkChannels(const Program &program) {
  if (program.channels.size() > kMaxChannels)
    fail("the program has %lld channels, at most %d are possible",
         (long long)program.channels.size(), kMaxChannels);
  std::set<std::string> names;
  for (int row = 0; row < int(program.channels.size()); ++row) {
    const Channel &channel = program.channels[row];
    for (int stage : {channel.from, channel.to})
      if (stage < 0 || stage >= program.stages.size())
        fail("channel %s joins stage %d, the program has %lld", channel.name, stage,
             (long long)program.stages.size());
    if (channel.from == channel.to)
      fail("channel %s leads from stage %d to itself", channel.name, channel.from);
    if (!names.insert(channel.name).second)
      fail("two channels of the program are named %s", channel.name);
    MessageCount sent = announcedMessages(program.stages[channel.from], row);
    MessageCount received = announcedMessages(program.stages[channel.to], row);
    if (sent.messages != received.messages || sent.bytes != received.bytes)
      fail("stage %d announces that it sends %lld messages of %lld bytes over channel %s, stage %d "
           "that it receives %lld of %lld bytes",
           channel.from, (long long)sent.messages, (long long)sent.bytes, channel.name, channel.to,
           (long long)received.messages, (long long)received.bytes);
  }
  for (int number = 0; number < int(program.stages.size()); ++number)
    for (const MessageEntry &entry : program.stages[number].messages) {
      if (entry.channel < 0 || entry.channel >= program.channels.size())
        fail("stage %d announces messages over channel %d of %lld", number, entry.channel,
             (long long)program.channels.size());
      const Channel &channel = program.channels[entry.channel];
      if (channel.from != number && channel.to != number)
        fail("stage %d announces messages over channel %s, which joins stages %d and %d", number,
             channel.name, channel.from, channel.to);
    }
}

void checkInput(const Program &program, const Input &input) {
  std::string what = std::string("input ") + input.name;
  checkShard(program, what, input.globalShape, input.localShape, input.splits);
  bool integers = input.dtype == DType::Int64 || input.dtype == DType::Int32;
  if (!integers && input.dtype != DType::Float32 && input.dtype != DType::Bool)
    fail("%s: its role cannot be filled as %s", what.c_str(), nameOf(input.dtype));
  bool tokens = input.role == InputRole::TokenIds || input.role == InputRole::Labels;
  bool sequence = tokens || input.role == InputRole::Shifted;
  if (sequence && (!integers || input.globalShape.rank != 2))
    fail("%s: tokens are integers [batch, sequence], it is %s %s", what.c_str(),
         nameOf(input.dtype), toString(input.globalShape).c_str());
  if (input.role == InputRole::PositionIds && (!integers || input.globalShape.rank < 1))
    fail("%s: positions are integers along a dimension, it is %s %s", what.c_str(),
         nameOf(input.dtype), toString(input.globalShape).c_str());
  if (tokens && input.vocabulary <= 0)
    fail("%s: its vocabulary has %lld tokens", what.c_str(), (long long)input.vocabulary);
  if (input.batched && input.globalShape.rank < 1)
    fail("%s: it has no dimension for the batch", what.c_str());
}

} // namespace

void checkProgram(const Program &program) {
  if (program.mesh.size() > kMaxAxes)
    fail("the mesh has %lld axes, at most %d are possible", (long long)program.mesh.size(),
         kMaxAxes);
  for (const Axis &axis : program.mesh)
    if (axis.size < 1)
      fail("mesh axis %s has size %d", axis.name, axis.size);
  checkStages(program);
  checkGroups(program);
  checkChannels(program);
  if (program.accumulate < 1)
    fail("the program accumulates %lld micro-batches", (long long)program.accumulate);
  for (const Input &input : program.inputs)
    checkInput(program, input);

  if (!program.parameters.empty() && !program.has(&Stage::init))
    fail("the program has %lld parameters and no init that fills them",
         (long long)program.parameters.size());
  std::set<std::string> names;
  auto unique = [&](const char *name) {
    if (!names.insert(name).second)
      fail("two tensors of the program are named %s", name);
  };
  for (const Parameter &parameter : program.parameters) {
    std::string what = std::string("parameter ") + parameter.name;
    unique(parameter.name);
    checkShard(program, what, parameter.globalShape, parameter.localShape, parameter.splits);
    checkHome(program, what, parameter, parameter.stages);
  }
  for (const OptimizerState &state : program.optimizerStates) {
    unique(state.name);
    if (state.parameter < 0 || state.parameter >= program.parameters.size())
      fail("optimizer state %s belongs to parameter %d of %lld", state.name, state.parameter,
           (long long)program.parameters.size());
    std::string what = std::string("optimizer state ") + state.name;
    const Shape &own = program.parameters[state.parameter].globalShape;
    if (state.rows < 0 || (state.rows > 0 && own.rank == kMaxDims))
      fail("%s has %lld rows", what.c_str(), (long long)state.rows);
    checkShard(program, what, fullShape(state, own), state.localShape, state.splits);
    checkHome(program, what, state, program.parameters[state.parameter].stages);
  }
  for (const ScalarState &state : program.scalarStates) {
    unique(state.name);
    std::string what = std::string("scalar state ") + state.name;
    if (state.countsSkipped && state.dtype != DType::Int64)
      fail("%s counts skipped steps and is not Int64", what.c_str());
    forStages(program, what, {}, [&](const Stage &stage) {
      checkOffset(what, state.offset, state.shape.elements() * sizeOf(state.dtype),
                  stage.persistentBytes, "persistent memory");
    });
  }
  for (const Output &output : program.outputs) {
    std::string what = std::string("output ") + output.name;
    checkShard(program, what, output.globalShape, output.localShape, output.splits);
    forStages(program, what, output.stages, [&](const Stage &stage) {
      checkOffset(what, output.offset, output.localShape.elements() * sizeOf(output.dtype),
                  std::max(stage.arenaBytes, stage.forwardArenaBytes), "the arena");
    });
  }
}

} // namespace partita_rt
