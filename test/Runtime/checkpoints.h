// Checkpoints for tests: plans that split the same tensors in many ways, and a folder in which they
// are written and read.

#ifndef PARTITA_TEST_RUNTIME_CHECKPOINTS_H
#define PARTITA_TEST_RUNTIME_CHECKPOINTS_H

#include "reference.h"
#include "temporary_folder.h"

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/checkpoint_files.h"
#include "common/checkpoint/shards.h"
#include "common/mesh/launch.h"
#include "common/replicas/replicas.h"
#include "common/run/check_program.h"
#include "common/run_options.h"
#include "common/tensors/layout.h"
#include "partita_rt/checksum.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <unistd.h>

namespace partita_rt {

namespace fs = std::filesystem;

/// The tensors of all plans, and of programs in 16 bits the masters: a table whose row count is prime, a weight with three blocks of
/// columns, one with unequal blocks of rows, a bias, and a scalar.
inline const char *const kNames[] = {"table", "qkv.weight", "packed \"weight\"", "bias", "count"};
inline const char *const kStates[] = {"table.m", "qkv.weight.m", "packed \"weight\".m", "bias.m"};
inline const char *const kMasters[] = {"table.master", "qkv.weight.master",
                                       "packed \"weight\".master", "bias.master"};
inline const Shape kShapes[] = {{7, 6}, {4, 24}, {16, 3}, {5}};

/// A mesh, how parameters and states are split over it, and the axis of its stages.
struct Plan {
  std::vector<Axis> mesh;
  std::vector<Splits> parameters, states;
  int stageAxis = -1;
  std::vector<StageSet> stages = {{}, {}, {}, {}}; ///< per parameter
};

inline Shape localOf(const Plan &plan, Shape shape, const Splits &splits) {
  int64_t parts = 1;
  for (const Split &split : splits) {
    int size = plan.mesh[size_t(split.axis)].size;
    if (split.dim == kFlat)
      parts *= size;
    else
      shape.dims[split.dim] = shardSize(shape[split.dim], size);
  }
  return parts == 1 ? shape : Shape{shardSize(shape.elements(), parts)};
}

template <typename T> Table<T> tableOf(const std::vector<T> &values) {
  Table<T> table;
  table.data = values.data();
  table.count = int64_t(values.size());
  return table;
}

struct PlanTables {
  Program program;
  std::vector<Axis> mesh;
  std::vector<Parameter> parameters;
  std::vector<OptimizerState> states;
  std::vector<ScalarState> scalars;
  std::vector<Stage> stages;

  explicit PlanTables(const Plan &plan, DType dtype = DType::Float32) : mesh(plan.mesh) {
    int64_t persistentBytes = 0;
    auto place = [&](int64_t bytes) {
      int64_t at = persistentBytes;
      persistentBytes += (bytes + 63) / 64 * 64;
      return at;
    };
    for (size_t i = 0; i < 4; ++i) {
      Shape local = localOf(plan, kShapes[i], plan.parameters[i]);
      parameters.push_back(
          {kNames[i], kShapes[i], local, plan.parameters[i], place(local.elements() * 4)});
      parameters.back().stages = plan.stages[i];
      parameters.back().dtype = dtype;
      local = localOf(plan, kShapes[i], plan.states[i]);
      states.push_back({kStates[i], int(i), local, plan.states[i], place(local.elements() * 4)});
    }
    for (size_t i = 0; i < 4 && isShortFloat(dtype); ++i)
      states.push_back({kMasters[i], int(i), states[i].localShape, plan.states[i],
                        place(states[i].localShape.elements() * 4)});
    scalars.push_back({kNames[4], DType::Int64, place(8)});
    if (dtype == DType::Float16) {
      scalars.push_back({"scale", DType::Float32, place(4), false, {}, 1024});
      scalars.push_back({"scale.skipped", DType::Int64, place(8), true});
    }
    program.name = "plan";
    Stage stage;
    stage.persistentBytes = persistentBytes;
    stage.init = [](Rank &) {};
    stages.assign(plan.stageAxis < 0 ? 1 : size_t(mesh[size_t(plan.stageAxis)].size), stage);
    program.stages = tableOf(stages);
    program.stageAxis = plan.stageAxis;
    program.mesh = tableOf(mesh);
    program.parameters = tableOf(parameters);
    program.optimizerStates = tableOf(states);
    program.scalarStates = tableOf(scalars);
    checkProgram(program);
  }
  PlanTables(const PlanTables &) = delete;
};

inline std::vector<Splits> repeated(const Splits &splits) { return std::vector<Splits>(4, splits); }

/// Returns splits over `axis` as in tensor parallelism.
inline std::vector<Splits> tensorParallel(int axis) {
  return {{{0, axis}}, {{1, axis, 3}}, {{0, axis, 3, {8, 4, 4}}}, {}};
}
inline std::vector<Splits> andFlat(std::vector<Splits> splits, int axis) {
  for (Splits &each : splits)
    each.list[each.count++] = {kFlat, axis};
  return splits;
}

inline std::vector<Plan> plans() {
  std::vector<Splits> full = repeated({}), flat = repeated({{kFlat, 0}}), tp = tensorParallel(0);
  return {
      {{}, full, full},
      {{{"dp", 2}}, full, full},
      {{{"dp", 2}}, full, flat},
      {{{"dp", 3}}, flat, flat},
      {{{"dp", 16}}, full, flat}, // more ranks than the bias has elements
      {{{"tp", 2}}, tp, tp},
      {{{"tp", 4}}, tp, tp}, // the table's rows: 2, 2, 2, 1
      {{{"dp", 2}, {"tp", 2}}, tensorParallel(1), andFlat(tensorParallel(1), 0)},
      {{{"tp", 4}, {"dp", 3}}, andFlat(tp, 1), andFlat(tp, 1)},
      {{{"dp", 2}, {"fsdp", 2}}, repeated({{kFlat, 1}}), repeated({{kFlat, 0}, {kFlat, 1}})},
      {{{"a", 2}, {"b", 2}},
       {{{1, 0}}, {{0, 0}, {1, 1, 3}}, {{0, 0}, {0, 1, 4}}, {}},
       {{{1, 1}}, {{1, 0}, {1, 1, 4}}, {{0, 1}}, {{kFlat, 1}}}},
      // Stages: outermost, with the table on the first and the last; alone, where rank 0 has
      // only the scalar; innermost.
      {{{"pp", 3}, {"dp", 2}}, full, repeated({{kFlat, 1}}), 0, {{0, 2}, {0}, {1}, {2}}},
      {{{"pp", 2}}, full, full, 0, {{1}, {1}, {1}, {1}}},
      {{{"dp", 2}, {"tp", 2}, {"pp", 2}},
       andFlat(tensorParallel(1), 0),
       andFlat(tensorParallel(1), 0),
       2,
       {{0, 1}, {1}, {0}, {1}}},
      // Shards of shards, each with padding of its own: of the bias's 5 elements 3 and 2, and of
      // these the last ranks none. Beside tp, whose shards of the table are padded too.
      {{{"dp", 4}, {"cp", 2}}, full, andFlat(repeated({{kFlat, 1}}), 0)},
      {{{"dp", 2}, {"cp", 3}, {"tp", 4}},
       andFlat(andFlat(tensorParallel(2), 1), 0),
       andFlat(andFlat(tensorParallel(2), 1), 0)}};
}

inline float valueOf(size_t tensor, int64_t element, int64_t save) {
  return float(tensor * 1000) + float(element) + float(save) / 64;
}

/// Writes a rank's shards, and the index once all ranks have.
inline void writeAll(Rank &rank, ShardSave &shards) {
  shards.copy(ShardSave::By::Rank);
  shards.write();
  int64_t checksum = shards.checksum();
  std::vector<int64_t> all(size_t(rank.ranks));
  allGather(*rank.world, {{&checksum, all.data(), 1}}, "checksums");
  if (rank.rank == 0)
    shards.writeIndex(all);
}

class Checkpoints : public InTemporaryFolder {
protected:
  /// Fills a rank's tensors as save number `save` has them; elements beyond a full tensor are NaN.
  static void fill(Rank &rank, int64_t save) {
    std::vector<TensorShard> shards = persistentShards(rank);
    for (size_t i = 0; i < shards.size(); ++i) {
      const TensorShard &shard = shards[i];
      if (!shard.data) // on another stage
        continue;
      if (shard.dtype == DType::Int64) {
        *static_cast<int64_t *>(shard.data) = save;
        continue;
      }
      auto *data = static_cast<float *>(shard.data);
      std::fill_n(data, shard.local.elements(), NAN);
      forRuns(*rank.program, rank.coordinates, shard.global, shard.splits,
              [&](int64_t global, int64_t local, int64_t n) {
                for (int64_t k = 0; k < n; ++k)
                  data[local + k] = valueOf(i, global + k, save);
              });
    }
  }

  /// Writes save number `save` under a plan into `folder`, which it empties. Returns the message of a
  /// failure.
  std::string write(const Plan &plan, int64_t save) const {
    for (const std::string &name : names())
      fs::remove_all(folder + "/" + name);
    return writeBeside(plan, save);
  }
  std::string writeBeside(const Plan &plan, int64_t save) const {
    PlanTables tables(plan);
    return World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      fill(rank, save);
      SaveBuffer copies;
      ShardSave shards(rank, folder, metadataOf(tables.program, {save, 7, true, "data"}),
                       save % 2 ? &copies : nullptr);
      writeAll(rank, shards);
    });
  }

  /// Reads under a plan. Expects save number `save`, and zeros beyond a full tensor; returns the
  /// message of a failure.
  std::string read(const Plan &plan, int64_t save) const {
    PlanTables tables(plan);
    World world(tables.program);
    std::string error = errorOf([&] {
      EXPECT_EQ(readCheckpointInfo(folder).step, save);
      EXPECT_EQ(readCheckpointInfo(folder).seed, 7u);
    });
    if (!error.empty())
      return error;
    return world.run(tables.program, nullptr, [&](Rank &rank) {
      std::vector<TensorShard> shards = persistentShards(rank);
      for (const TensorShard &shard : heldShards(rank))
        std::memset(shard.data, 0x55, size_t(shard.local.elements() * sizeOf(shard.dtype)));
      resumeFrom(rank, {{folder, {save, 7, true, "data"}}});
      for (size_t i = 0; i < shards.size(); ++i) {
        const TensorShard &shard = shards[i];
        if (!shard.data) // on another stage
          continue;
        if (shard.dtype == DType::Int64) {
          if (*static_cast<int64_t *>(shard.data) != save)
            fail("%s is of another save", shard.name);
          continue;
        }
        std::vector<float> expected(size_t(shard.local.elements()), 0.0f);
        forRuns(tables.program, rank.coordinates, shard.global, shard.splits,
                [&](int64_t global, int64_t local, int64_t n) {
                  for (int64_t k = 0; k < n; ++k)
                    expected[size_t(local + k)] = valueOf(i, global + k, save);
                });
        if (std::memcmp(expected.data(), shard.data, expected.size() * 4) != 0)
          fail("%s is not what was written", shard.name);
      }
    });
  }

  /// Runs ranks that hold save number 1, whose replicas were compared and are again every `every` steps, through
  /// body(rank, replicas). Adds what they print to `printed`; returns the message of a failure.
  template <typename Body>
  static std::string runCompared(const PlanTables &tables, int64_t every, Body body,
                                 std::string *printed = nullptr) {
    RunOptions options;
    options.checkReplicas = every;
    options.steps = 9;
    testing::internal::CaptureStdout();
    std::string error = World(tables.program).run(tables.program, &options, [&](Rank &rank) {
      fill(rank, 1);
      ReplicaCheck replicas(rank, options);
      replicas.begin(0);
      body(rank, replicas);
    });
    std::string text = testing::internal::GetCapturedStdout();
    if (printed)
      *printed += text;
    return error;
  }

  std::set<std::string> names() const {
    std::set<std::string> result;
    for (const auto &entry : fs::directory_iterator(folder))
      result.insert(entry.path().filename().string());
    return result;
  }
  /// Returns the names of shard files, in order.
  std::vector<std::string> shards() const {
    std::vector<std::string> result;
    for (const std::string &name : names())
      if (name.find("-of-") != std::string::npos)
        result.push_back(name);
    return result;
  }
  std::string textOf(const std::string &path) const {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  void put(const std::string &path, const std::string &text) const {
    std::ofstream(path, std::ios::binary) << text;
  }
  /// Replaces a text in a file (of the same length in a safetensors file) and updates the checksum,
  /// as if a program had written it.
  void edit(const std::string &path, const std::string &from, const std::string &to) const {
    std::string bytes = textOf(path);
    size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from << " is not in " << path;
    bytes.replace(at, from.size(), to);
    if (path == indexPath(folder)) {
      setTextChecksum(bytes);
    } else {
      uint64_t length;
      std::memcpy(&length, bytes.data(), 8);
      std::string header = bytes.substr(8, length);
      setTextChecksum(header);
      bytes.replace(8, length, header);
    }
    put(path, bytes);
  }
  /// Returns shard files, and the file that lists them or has everything.
  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const std::string &name : names())
      paths.push_back(folder + "/" + name);
    return paths;
  }
};

} // namespace partita_rt

#endif // PARTITA_TEST_RUNTIME_CHECKPOINTS_H
