// Errors of compressed sums in checkpoints: another number of ranks has the same sum.

#include "checkpoints.h"

namespace partita_rt {
namespace {

/// A program of parameters that `tp` ranks split in dimension 1, with the errors of `dp` ranks if
/// there are several.
struct ErrorTables {
  static constexpr const char *kWorkers[] = {"table.worker", "qkv.weight.worker"};
  static constexpr const char *kServers[] = {"table.server", "qkv.weight.server"};
  Program program;
  std::vector<Axis> mesh;
  std::vector<Parameter> parameters;
  std::vector<OptimizerState> states;
  std::vector<Stage> stages;

  ErrorTables(int dp, int tp) : mesh{{"dp", dp}, {"tp", tp}} {
    int64_t bytes = 0;
    auto place = [&](const Shape &shape) {
      int64_t at = bytes;
      bytes += (shape.elements() * 4 + 63) / 64 * 64;
      return at;
    };
    Splits split = {{1, 1}}, flat = {{1, 1}, {kFlat, 0}}, rows = {{0, 0}, {2, 1}};
    for (int i = 0; i < 2; ++i) {
      Shape full = kShapes[i], local{full[0], full[1] / tp};
      parameters.push_back({kNames[i], full, local, split, place(local)});
      if (dp == 1)
        continue;
      Shape row{1, local[0], local[1]}, chunk{shardSize(local.elements(), dp)};
      states.push_back({kWorkers[i], i, row, rows, place(row)});
      states.back().rows = dp;
      states.push_back({kServers[i], i, chunk, flat, place(chunk)});
    }
    program.name = "errors";
    Stage stage;
    stage.persistentBytes = bytes;
    stage.init = [](Rank &) {};
    stages = {stage};
    program.stages = tableOf(stages);
    program.mesh = tableOf(mesh);
    program.parameters = tableOf(parameters);
    program.optimizerStates = tableOf(states);
    checkProgram(program);
  }
  ErrorTables(const ErrorTables &) = delete;
};

/// What all ranks of dp together have not sent of the mean's element, or a server, or a parameter's value.
float unsent(size_t tensor, int64_t element) { return float(tensor * 1000 + 100 + 2 * element); }

class CheckpointsOfErrors : public Checkpoints {
protected:
  /// Writes what `dp` ranks have not sent, in unequal shares.
  std::string write(int dp, int tp) const {
    ErrorTables tables(dp, tp);
    return World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      std::vector<TensorShard> shards = persistentShards(rank);
      for (size_t i = 0; i < shards.size(); ++i) {
        const TensorShard &shard = shards[i];
        auto *data = static_cast<float *>(shard.data);
        int64_t of = shard.rows ? shard.global.elements() / dp : shard.global.elements();
        float share = shard.rows ? float(2 * rank.coordinates[0] + 1) / float(dp * dp) : 1;
        forRuns(*rank.program, rank.coordinates, shard.global, shard.splits,
                [&](int64_t global, int64_t local, int64_t n) {
                  for (int64_t k = 0; k < n; ++k)
                    data[local + k] = unsent(i, (global + k) % of) * share;
                });
      }
      ShardSave save(rank, folder, metadataOf(tables.program, {1, 7, true, "data"}), nullptr);
      writeAll(rank, save);
    });
  }

  /// Reads what `dp` ranks have not sent, in equal shares; `begins` says that a rank has nothing to read.
  std::string read(int dp, int tp, bool begins = false) const {
    ErrorTables tables(dp, tp);
    return World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      resumeFrom(rank, {{folder, {1, 7, true, "data"}}});
      std::vector<TensorShard> shards = persistentShards(rank);
      for (size_t i = 0; i < shards.size(); ++i) {
        const TensorShard &shard = shards[i];
        auto *data = static_cast<const float *>(shard.data);
        int64_t of = shard.rows ? shard.global.elements() / dp : shard.global.elements();
        float share = begins && i >= 2 ? 0 : shard.rows ? 1 / float(dp) : 1;
        forRuns(*rank.program, rank.coordinates, shard.global, shard.splits,
                [&](int64_t global, int64_t local, int64_t n) {
                  for (int64_t k = 0; k < n; ++k)
                    if (float wanted = unsent(i, (global + k) % of) * share;
                        !(std::abs(data[local + k] - wanted) <= 1e-5f * wanted))
                      fail("%s is %g, not %g", shard.name, double(data[local + k]), double(wanted));
                });
      }
    });
  }
};

TEST_F(CheckpointsOfErrors, AnotherNumberOfRanksOwesTheSame) {
  for (auto [from, fromTp] : {std::pair(2, 1), {4, 1}, {3, 2}}) {
    ASSERT_EQ(write(from, fromTp), "");
    for (auto [to, toTp] : {std::pair(2, 1), {3, 1}, {4, 2}, {2, 3}}) {
      std::string error = to == from ? "" : read(to, toTp);
      EXPECT_EQ(error, "") << from << " ranks read by " << to;
    }
  }
}

TEST_F(CheckpointsOfErrors, OneRankLeavesThemOutAndSeveralBeginWithNone) {
  ASSERT_EQ(write(2, 1), "");
  testing::internal::CaptureStdout();
  EXPECT_EQ(read(1, 1), "");
  EXPECT_NE(testing::internal::GetCapturedStdout().find("left out: 4 errors of compressed sums"),
            std::string::npos);
  ASSERT_EQ(write(1, 1), "");
  testing::internal::CaptureStdout();
  EXPECT_EQ(read(2, 1, /*begins=*/true), "");
  EXPECT_NE(testing::internal::GetCapturedStdout().find("4 errors of compressed sums begin with 0"),
            std::string::npos);
}

TEST_F(CheckpointsOfErrors, AnotherShapeOfARowIsAnError) {
  ASSERT_EQ(write(2, 1), "");
  edit(indexPath(folder), "[2, 7, 6]", "[2, 6, 7]");
  EXPECT_NE(read(4, 1).find("table.worker"), std::string::npos) << read(4, 1);
}

} // namespace
} // namespace partita_rt
