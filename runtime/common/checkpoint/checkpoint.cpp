// Writes and reads the tensors of a run (checkpoint.h).

#include "common/checkpoint/checkpoint.h"

#include "common/checkpoint/checkpoint_files.h"
#include "common/checkpoint/folder.h"
#include "common/checkpoint/full_tensor.h"
#include "common/checkpoint/shards.h"
#include "common/checkpoint/sources.h"
#include "common/mesh/gathered.h"
#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "common/run_options.h"
#include "common/target.h"
#include "common/watch/rank_position.h"
#include "partita_rt/machine.h"
#include "partita_rt/printable.h"
#include "partita_rt/state_names.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>

namespace partita_rt {

namespace {

void writeTensors(Rank &rank, const std::string &path, const std::vector<TensorShard> &shards,
                  const std::map<std::string, std::string> &metadata) {
  std::unique_ptr<SafetensorsWriter> writer;
  if (rank.rank == 0) {
    std::vector<SafetensorsWriter::Entry> entries;
    for (const TensorShard &shard : shards)
      entries.push_back({shard.name, shard.dtype, shard.global});
    writer = std::make_unique<SafetensorsWriter>(path, entries, metadata);
  }
  FullTensor tensor;
  for (const TensorShard &shard : shards) {
    const void *full = tensor.gather(rank, shard);
    if (writer)
      writer->write(full, shard.global.elements() * sizeOf(shard.dtype));
  }
  if (writer)
    writer->commit();
  barrier(*rank.world, "the end of writing a file"); // no rank continues before the file exists
}

/// The value of "order" in the metadata for data that are not shuffled.
constexpr char kFileOrder[] = "file";
/// The number of steps without an update; absent if it is 0.
constexpr char kSkippedSteps[] = "skipped_steps";

uint64_t metadataNumber(const CheckpointFiles &file, const char *key) {
  auto entry = file.metadata().find(key);
  char *end = nullptr;
  uint64_t value =
      entry == file.metadata().end() ? 0 : std::strtoull(entry->second.c_str(), &end, 10);
  if (!end || *end || end == entry->second.c_str())
    fail("%s is not a checkpoint: its metadata has no valid '%s'", file.path().c_str(), key);
  return value;
}

/// Describes what a step reads: "16 samples of 128 tokens". The data order is a function of the
/// seed and of the number of samples taken so far, so a run can continue only with steps of this
/// size.
std::string stepOf(const Program &program) {
  for (const Input &input : program.inputs)
    if (input.role == InputRole::TokenIds && input.globalShape.rank == 2)
      return std::to_string(input.globalShape.dims[0] * program.accumulate) + " samples of " +
             std::to_string(input.globalShape.dims[1]) + " tokens" +
             (program.documentEnd < 0 ? ""
                                      : ", packed by token " + std::to_string(program.documentEnd));
  for (const Input &input : program.inputs)
    if (input.batched)
      return std::to_string(input.globalShape.dims[0] * program.accumulate) + " samples";
  return "";
}

/// Finds a parameter in the file that the program lacks: a tensor that is neither the program's nor
/// a scalar state or a state of another tensor in the file. Returns "" if there is none.
std::string otherParameter(const Program &program, const CheckpointFiles &file) {
  std::set<std::string> own = scalarStatesIn(file);
  for (const Parameter &parameter : program.parameters)
    own.insert(parameter.name);
  for (const OptimizerState &state : program.optimizerStates)
    own.insert(state.name);
  for (const ScalarState &scalar : program.scalarStates)
    own.insert(scalar.name);
  auto isThere = [&](const std::string &name) { return file.tensors().count(name) > 0; };
  for (const auto &[name, tensor] : file.tensors())
    if (tensor.shape.rank > 0 && !own.count(name) && !isStateOfAnother(name, isThere))
      return name;
  return "";
}

} // namespace

CheckpointInfo readCheckpointInfo(const std::string &folder) {
  CheckpointFiles file(checkpointFile(folder));
  CheckpointInfo info;
  info.identity = hashOf(file.metadata());
  info.step = int64_t(metadataNumber(file, "step"));
  info.seed = metadataNumber(file, "seed");
  if (info.step < 0)
    fail("%s is not a checkpoint: its step is not within 0 to 2^63 - 1", file.path().c_str());
  if (std::string other = otherStep(folder, info.step); !other.empty())
    fail("%s: %s", file.path().c_str(), other.c_str());
  auto format = file.metadata().find("format");
  std::string found = format == file.metadata().end() ? "" : format->second;
  if (!isUnshardedFormat(found) && !isShardedFormat(found))
    fail("%s: its format is '%s', this program reads '%s' and '%s', and older versions of either",
         file.path().c_str(), found.c_str(), kUnshardedFormat, kShardedFormat);
  if (auto data = file.metadata().find("data"); data != file.metadata().end())
    info.data = data->second;
  if (auto order = file.metadata().find("order"); order != file.metadata().end())
    info.shuffle = order->second != kFileOrder; // older checkpoints have no order and were shuffled
  if (file.metadata().count(kSkippedSteps))
    info.skipped = int64_t(metadataNumber(file, kSkippedSteps));
  if (info.skipped < 0 || info.skipped > info.step)
    fail("%s is not a checkpoint: it has skipped %lld of %lld steps", file.path().c_str(),
         (long long)info.skipped, (long long)info.step);
  return info;
}

/// Compares parameters only: their states depend on the optimizer and the precision.
void checkSameModel(const Program &program, const std::string &folder) {
  CheckpointFiles file(checkpointFile(folder));
  int64_t differ = 0;
  std::string first;
  for (const Parameter &parameter : program.parameters) {
    auto found = file.tensors().find(parameter.name);
    bool isThere = found != file.tensors().end();
    if (isThere && found->second.shape == parameter.globalShape)
      continue;
    if (differ++ == 0)
      first = "'" + std::string(parameter.name) + "' is " +
              (isThere ? toString(found->second.shape) : std::string("missing")) + " there, " +
              toString(parameter.globalShape) + " here";
  }
  if (differ > 0)
    fail(
        "--resume: %s is a checkpoint of another model: %lld of this program's %lld parameters are "
        "missing or have another shape (%s); give --checkpoint another folder, or resume with the "
        "program that wrote this one",
        file.path().c_str(), (long long)differ, (long long)program.parameters.size(),
        first.c_str());
  if (std::string other = otherParameter(program, file); !other.empty())
    fail("--resume: %s is a checkpoint of another model: it has parameter '%s', which this program "
         "does not have; give --checkpoint another folder, or resume with the program that wrote "
         "this one",
         file.path().c_str(), other.c_str());
}

void checkNoCheckpoint(const Program &program, const std::string &folder) {
  std::string found, error;
  auto attempt = [&error](auto read) {
    try {
      read();
    } catch (const Error &caught) {
      error = caught.what();
    }
    return error.empty();
  };
  if (!hasCheckpoint(folder))
    return;
  std::string newest = newestEntry(folder);
  if (!attempt([&] { found = " of step " + std::to_string(readCheckpointInfo(newest).step); }))
    fail(
        "--checkpoint: %s holds a checkpoint that cannot be read (%s); --overwrite replaces it, or "
        "name another folder",
        folder.c_str(), error.c_str());
  bool continues = attempt([&] { checkSameModel(program, newest); });
  fail("--checkpoint: %s holds a checkpoint%s%s--overwrite replaces it, or name another folder",
       folder.c_str(), found.c_str(),
       continues ? "; --resume continues it, " : " of another model; ");
}

std::string allDamagedText(const std::string &folder, const std::string &damage) {
  return "--resume: every checkpoint in " + folder + " is damaged, the newest: " + damage +
         "; 'partita checkpoint verify " + folder + "' says what each lacks";
}

std::string skippedText(const std::string &folder, const std::string &damage) {
  return folder + " cannot be used, taking the checkpoint before it: " + damage;
}

void printCheckpointNote(const std::string &note) {
  if (!note.empty())
    std::printf("%-14s %s\n", "checkpoint", note.c_str());
}

std::map<std::string, std::string> metadataOf(const Program &program, const CheckpointInfo &info) {
  std::map<std::string, std::string> metadata = {{"program", program.name},
                                                 {"optimizer", program.optimizer},
                                                 {"samples_per_step", stepOf(program)},
                                                 {"step", std::to_string(info.step)},
                                                 {"seed", std::to_string(info.seed)},
                                                 {"order", info.shuffle ? "shuffled" : kFileOrder},
                                                 {"data", info.data}};
  std::string scalars;
  for (const ScalarState &state : program.scalarStates)
    scalars += (scalars.empty() ? "" : ",") + std::string(state.name);
  if (!scalars.empty())
    metadata[kScalarStates] = scalars;
  if (info.skipped > 0)
    metadata[kSkippedSteps] = std::to_string(info.skipped);
  return metadata;
}

namespace {

/// Runs `read` on every rank. Returns the error of the first rank that has one, "" if none has: ranks
/// go on together, or take another checkpoint together.
template <typename Read> std::string errorOnAnyRank(Rank &rank, const char *what, Read read) {
  std::vector<int64_t> mine(128); // its text, cut off where it is longer
  try {
    read();
  } catch (const Error &error) {
    std::strncpy(reinterpret_cast<char *>(mine.data()), error.what(),
                 mine.size() * sizeof(int64_t) - 1);
  }
  std::vector<int64_t> all = gathered(rank, mine, what);
  for (size_t r = 0; r < size_t(rank.ranks); ++r)
    if (auto *text = reinterpret_cast<const char *>(all.data() + r * mine.size()); *text)
      return text;
  return "";
}

/// Fails unless all ranks have found the same checkpoints: their hosts may not share the folder.
void checkSameFolder(Rank &rank, const std::vector<ResumePoint> &points) {
  struct Found {
    int64_t count = 0, newest = 0;
    uint64_t all = 0; ///< a hash of what each is
    char host[64] = {};
  };
  Found mine;
  mine.count = int64_t(points.size());
  mine.newest = points.empty() ? 0 : points[0].info.step;
  for (const ResumePoint &point : points)
    mine.all = (mine.all ^ point.info.identity) * 0x9e3779b97f4a7c15 + uint64_t(point.info.step);
  std::strncpy(mine.host, hostName().c_str(), sizeof(mine.host) - 1);
  std::vector<Found> found = gathered(rank, mine, "the checkpoints that ranks find");
  auto text = [&](size_t r) {
    return "rank " + std::to_string(r) + " (host " + found[r].host + ") finds " +
           std::to_string(found[r].count) + " there, the newest of step " +
           std::to_string(found[r].newest);
  };
  for (size_t r = 1; r < found.size(); ++r)
    if (found[r].all != found[0].all || found[r].count != found[0].count)
      fail(
          "--resume: ranks see different checkpoints in %s: %s, %s%s; all hosts must see one folder",
          rank.options ? rank.options->checkpoint.c_str() : "the folder", text(0).c_str(),
          text(r).c_str(), found[r].newest == found[0].newest ? ", which is not the same one" : "");
}

/// Fails if another run has saved into the folder since the step was read, or between two ranks'
/// reads.
void checkSameCheckpoint(Rank &rank, const CheckpointFiles &file, int64_t step) {
  int64_t own = int64_t(hashOf(file.metadata()));
  std::vector<int64_t> all = gathered(rank, own, "the checkpoint that ranks read");
  bool same = int64_t(metadataNumber(file, "step")) == step;
  if (!same || std::count(all.begin(), all.end(), own) != rank.ranks)
    fail("--resume: %s was replaced while it was being read; another run saves into this folder",
         file.path().c_str());
}

/// Fails if the checkpoint is intact but of a run that this program cannot continue.
void checkContinues(const Program &program, const CheckpointFiles &file) {
  auto noted = file.metadata().find("samples_per_step");
  std::string before = noted == file.metadata().end() ? "" : noted->second;
  if (std::string now = stepOf(program); before != now)
    fail(
        "--resume: a step of the checkpoint took %s, one of this program takes %s: the data order "
        "would not continue; compile with the same (--dim batch, --accumulate, --pack), or start a new run "
        "from its parameters: --init with its folder, and another --checkpoint",
        before.empty() ? "an unknown number of samples" : before.c_str(),
        now.empty() ? "none" : now.c_str());
  auto optimizer = file.metadata().find("optimizer"); // absent from older checkpoints
  if (optimizer != file.metadata().end() && optimizer->second != program.optimizer)
    fail("--resume: the checkpoint's states are those of %s, this program updates by %s; --init "
         "with its folder starts anew from its parameters",
         optimizer->second.c_str(), program.optimizer);
}

/// Sets all elements of a scalar state that the checkpoint lacks.
void setInitial(char *values, const TensorShard &shard, double initial) {
  auto put = [&](auto value) {
    for (int64_t i = 0; i < shard.local.elements(); ++i)
      std::memcpy(values + i * int64_t(sizeof(value)), &value, sizeof(value));
  };
  switch (shard.dtype) {
  case DType::Float32:
    return put(float(initial));
  case DType::Float64:
    return put(initial);
  case DType::Int32:
    return put(int32_t(initial));
  default:
    return put(int64_t(initial));
  }
}

/// Adds up the rows that are there and takes this rank's share.
void shareRows(float *values, const CheckpointFiles &file, const TensorShard &shard,
               const Source &source, const std::vector<Run> &runs) {
  file.forParts(source.tensor, runs, [&](const unsigned char *bytes, const Run &run) {
    std::vector<float> row(static_cast<size_t>(run.count));
    convertFloats(reinterpret_cast<char *>(row.data()), DType::Float32, bytes, source.dtype,
                  run.count);
    for (int64_t i = 0; i < run.count; ++i)
      values[run.local + i] += row[size_t(i)];
  });
  for (int64_t i = 0; i < shard.local.elements(); ++i)
    values[i] /= float(shard.rows);
}

/// Reads one shard, whose runs these are. Returns how many elements have become infinite.
int64_t readShard(Rank &rank, const CheckpointFiles &file, const TensorShard &shard,
                  const Source &source, const std::vector<Run> &runs) {
  int64_t width = sizeOf(shard.dtype), size = shard.local.elements() * width, infinite = 0;
  HostEdit values(rank, shard.data, size);
  std::memset(values.data(), 0, size_t(size)); // padding is zero
  if (source.tensor.empty())
    setInitial(values.data(), shard, source.initial);
  else if (source.rows > 0)
    shareRows(reinterpret_cast<float *>(values.data()), file, shard, source, runs);
  else
    file.forParts(source.tensor, runs, [&](const unsigned char *bytes, const Run &run) {
      char *to = values.data() + run.local * width;
      if (source.dtype == shard.dtype)
        std::memcpy(to, bytes, size_t(run.count * width));
      else
        infinite += convertFloats(to, shard.dtype, bytes, source.dtype, run.count);
    });
  values.send();
  return infinite;
}

/// Reads this rank's shards. Errors but damage have been found before. Returns why the values do not
/// fit the program's types; "" if they do.
std::string readShards(Rank &rank, const CheckpointFiles &file, const Sources &sources) {
  std::vector<TensorShard> shards = heldShards(rank);
  std::vector<std::vector<Run>> runs;
  for (const TensorShard &shard : shards) { // most damage is found before anything changes
    const Source &source = sources.of(shard.name);
    runs.push_back(source.rows > 0 ? runsOfRows(rank, shard, source.rows)
                                   : runsOf(rank, shard.global, shard.splits));
    if (!source.tensor.empty())
      file.openParts(source.tensor, runs.back());
  }
  std::string unfit;
  for (size_t i = 0; i < shards.size(); ++i) {
    const TensorShard &shard = shards[i];
    const Source &source = sources.of(shard.name);
    int64_t infinite = readShard(rank, file, shard, source, runs[i]);
    if (infinite > 0 && source.mustStayFinite && unfit.empty())
      unfit = "--resume: parameter '" + std::string(shard.name) + "' would be infinite in " +
              nameOf(shard.dtype) + (infinite == 1 ? ": a value of " : ": values of ") +
              file.path() + (infinite == 1 ? " is" : " are") + " beyond its max" +
              (shard.dtype == DType::Float16 ? ", 65504" : "");
    else if (infinite > 0 &&
             isFirstOwner(*rank.program, rank.coordinates, shard.splits, shard.stages))
      std::fprintf(stderr,
                   "%s: warning: '%s' has values of %s beyond the range of %s: they become "
                   "infinite\n",
                   rank.program->name, printable(shard.name).c_str(),
                   printable(file.path()).c_str(), nameOf(shard.dtype));
  }
  return unfit;
}

/// Runs `read`, which returns an error that is no damage, or "". Returns the damage that any rank
/// finds; throws Error on all ranks if one of them cannot read, or has an error that is no damage.
template <typename Read> std::string damageOnAnyRank(Rank &rank, Read read) {
  std::string other;
  std::string damage = errorOnAnyRank(rank, "damage of a checkpoint", [&] {
    try {
      other = read();
    } catch (const Unreadable &error) {
      other = error.what();
    }
  });
  std::string error = errorOnAnyRank(rank, "errors about a checkpoint", [&] {
    if (!other.empty())
      fail("%s", other.c_str());
  });
  if (!error.empty())
    fail("%s", error.c_str());
  return damage;
}

/// Reads a checkpoint; returns the damage that any rank finds, "" if none does.
std::string readCheckpoint(Rank &rank, const ResumePoint &point) {
  std::unique_ptr<CheckpointFiles> file;
  if (std::string damage =
          damageOnAnyRank(rank,
                          [&] {
                            file = std::make_unique<CheckpointFiles>(checkpointFile(point.folder));
                            return "";
                          });
      !damage.empty())
    return damage;
  checkSameCheckpoint(rank, *file, point.info.step);
  if (rank.rank == 0)
    printCheckpointNote(file->note());
  checkContinues(*rank.program, *file);
  Sources sources(*rank.program, *file, point.info.skipped);
  std::string damage = damageOnAnyRank(rank, [&] { return readShards(rank, *file, sources); });
  if (!damage.empty())
    return damage;
  if (rank.rank == 0)
    printCheckpointNote(sources.note());
  return "";
}

} // namespace

const ResumePoint &resumeFrom(Rank &rank, const std::vector<ResumePoint> &points) {
  checkSameFolder(rank, points);
  std::string first;
  for (const ResumePoint &point : points) {
    std::string damage = readCheckpoint(rank, point);
    if (damage.empty())
      return point;
    if (first.empty())
      first = damage;
    if (rank.rank == 0 && &point != &points.back())
      std::fprintf(stderr, "%s: warning: %s\n", rank.program->name,
                   printable(skippedText(point.folder, damage)).c_str());
  }
  const std::string &newest = points.front().folder;
  fail("%s", points.size() == 1
                 ? first.c_str()
                 : allDamagedText(newest.substr(0, newest.rfind('/')), first).c_str());
}

void writeParameters(Rank &rank, const std::string &path) {
  writeTensors(rank, path, parameterShards(rank),
               {{"program", rank.program->name}, {kHolds, "parameters"}});
}

void writeOutputs(Rank &rank, const std::string &path) {
  const Program &program = *rank.program;
  std::vector<TensorShard> shards;
  for (const Output &o : program.outputs) {
    bool held = o.stages.contains(rank.stageNumber);
    shards.push_back({o.name, o.dtype, o.globalShape, o.localShape, o.splits,
                      held ? rank.at<char>(o.offset) : nullptr, o.stages});
  }
  for (int64_t i = 0; i < program.inputs.size(); ++i) {
    const Input &in = program.inputs[i];
    shards.push_back(
        {in.name, in.dtype, in.globalShape, in.localShape, in.splits, rank.inputs[i], {}});
  }
  writeTensors(rank, path, shards, {{"program", program.name}});
}

} // namespace partita_rt
