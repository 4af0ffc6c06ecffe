// Checkpoints of one precision in programs of another, under every plan.

#include "checkpoints.h"

#include "common/checkpoint/sources.h"
#include "partita_rt/half.h"
#include "partita_rt/state_names.h"

#include <cmath>

namespace partita_rt {
namespace {

constexpr DType kFloats[] = {DType::Float32, DType::BFloat16, DType::Float16};

/// Element k of parameter i, or with i + 4 of its moment: no 16-bit number.
float exact(size_t i, int64_t k) {
  return i == 0 && k == 3 ? 1 + 0x1p-8f // halfway between two of bfloat16's
                          : 2 * std::sin(float(1 + 100 * int64_t(i) + k));
}

uint16_t rounded(float value, DType dtype) {
  return dtype == DType::Float16 ? Half(value).bits : BFloat16(value).bits;
}

float roundedTo(DType dtype, float value) {
  return dtype == DType::Float32   ? value
         : dtype == DType::Float16 ? float(Half(value))
                                   : float(BFloat16(value));
}

/// Returns what a rank has of a float tensor; a parameter's values come from a program of type
/// `from`, which has no master of them, if it is not float32.
std::vector<unsigned char> expected(const Rank &rank, const TensorShard &shard, size_t tensor,
                                    DType from) {
  std::vector<float> floats(size_t(shard.local.elements()), 0.0f);
  forRuns(*rank.program, rank.coordinates, shard.global, shard.splits,
          [&](int64_t global, int64_t local, int64_t n) {
            for (int64_t k = 0; k < n; ++k)
              floats[size_t(local + k)] =
                  roundedTo(tensor < 4 ? from : DType::Float32, exact(tensor, global + k));
          });
  size_t width = size_t(sizeOf(shard.dtype));
  std::vector<unsigned char> bytes(floats.size() * width);
  for (size_t k = 0; k < floats.size(); ++k) {
    uint16_t narrow = rounded(floats[k], shard.dtype);
    const void *value = width == 2 ? static_cast<const void *>(&narrow) : &floats[k];
    std::memcpy(&bytes[k * width], value, width);
  }
  return bytes;
}

class OfAnotherPrecision : public Checkpoints {
protected:
  /// Calls visit(shard, bytes) with what the rank's shards of parameters, moments and masters are.
  template <typename Visit> static void forExpected(Rank &rank, DType from, Visit visit) {
    std::vector<TensorShard> shards = persistentShards(rank);
    size_t count = shards.size() - size_t(rank.program->scalarStates.size());
    for (size_t i = 0; i < count; ++i)
      if (shards[i].data)
        visit(shards[i], expected(rank, shards[i], i < 8 ? i : i - 8, from));
  }

  static void save(Rank &rank, const std::string &into) {
    ShardSave shards(rank, into, metadataOf(*rank.program, {12, 7, true, "data", 2}), nullptr);
    writeAll(rank, shards);
  }

  std::string place(const char *name) const { return folder + "/" + name; }
  std::string emptied(const char *name) const {
    fs::remove_all(place(name));
    fs::create_directory(place(name));
    return place(name);
  }

  /// Writes a checkpoint of a program of this type; returns the message of a failure.
  std::string writeIn(const Plan &plan, DType dtype, const char *into,
                      bool hasMasters = true) const {
    std::string to = emptied(into);
    PlanTables tables(plan, dtype);
    if (!hasMasters)
      tables.states.resize(4);
    tables.program.optimizerStates = tableOf(tables.states);
    return World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      forExpected(rank, DType::Float32, [](const TensorShard &shard, const auto &bytes) {
        std::memcpy(shard.data, bytes.data(), bytes.size());
      });
      for (const ScalarState &scalar : rank.program->scalarStates)
        if (scalar.dtype == DType::Int64)
          *rank.persistent<int64_t>(scalar.offset) = scalar.countsSkipped ? 2 : 5;
        else
          *rank.persistent<float>(scalar.offset) = 1024;
      save(rank, to);
    });
  }

  /// Reads the checkpoint, expects the same values, and writes it as another one, `into`. `from`: as
  /// forExpected takes it.
  std::string readIn(const Plan &plan, DType dtype, const char *name, const char *into = "",
                     DType from = DType::Float32) const {
    std::string to = *into ? emptied(into) : "";
    PlanTables tables(plan, dtype);
    ResumePoint point{place(name), readCheckpointInfo(place(name))};
    EXPECT_EQ(point.info.skipped, 2);
    return World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      for (const TensorShard &shard : heldShards(rank))
        std::memset(shard.data, 0x55, size_t(shard.local.elements() * sizeOf(shard.dtype)));
      resumeFrom(rank, {point});
      forExpected(rank, from, [](const TensorShard &shard, const auto &bytes) {
        if (std::memcmp(shard.data, bytes.data(), bytes.size()) != 0)
          fail("%s has another value", shard.name);
      });
      for (const ScalarState &scalar : rank.program->scalarStates)
        if (scalar.dtype == DType::Int64
                ? *rank.persistent<int64_t>(scalar.offset) != (scalar.countsSkipped ? 2 : 5)
                : *rank.persistent<float>(scalar.offset) != 1024)
          fail("%s has another value", scalar.name);
      if (!to.empty())
        save(rank, to);
    });
  }

  /// Writes a file with such tensors, all elements of which have these bytes.
  std::string writeFile(const std::vector<SafetensorsWriter::Entry> &entries,
                        unsigned char byte = 0) const {
    std::string path = folder + "/file.safetensors";
    SafetensorsWriter writer(path, entries, {{kScalarStates, "count,maxima"}});
    for (const auto &entry : entries) {
      std::vector<unsigned char> bytes(size_t(entry.shape.elements() * sizeOf(entry.dtype)), byte);
      writer.write(bytes.data(), int64_t(bytes.size()));
    }
    writer.commit();
    return path;
  }
};

/// Masters are exact, so precisions in any order, without a step, end with the bits of the first.
TEST_F(OfAnotherPrecision, EveryPrecisionContinuesEveryOtherUnderAnyPlan) {
  std::vector<Plan> all = plans();
  size_t next = 0;
  for (DType from : kFloats)
    for (DType to : kFloats)
      for (size_t writer = 0; writer < all.size(); writer += 3, ++next) {
        std::string about =
            std::string(nameOf(from)) + " to " + nameOf(to) + ", plan " + std::to_string(writer);
        ASSERT_EQ(writeIn(all[writer], from, "a"), "") << about;
        ASSERT_EQ(readIn(all[next % all.size()], to, "a", "b"), "") << about;
        ASSERT_EQ(readIn(all[(next + 5) % all.size()], from, "b"), "") << about;
      }
}

TEST_F(OfAnotherPrecision, WithoutMastersTheParametersCount) {
  for (DType from : {DType::BFloat16, DType::Float16})
    for (DType to : kFloats) {
      ASSERT_EQ(writeIn(plans()[3], from, "a", /*hasMasters=*/false), "");
      EXPECT_EQ(readIn(plans()[8], to, "a", "", from), "") << nameOf(from) << " to " << nameOf(to);
    }
}

TEST_F(OfAnotherPrecision, OneLineSaysWhatIsConverted) {
  auto note = [&](DType from, DType to, bool hasMasters = true) {
    EXPECT_EQ(writeIn(plans()[0], from, "a", hasMasters), "");
    PlanTables tables(plans()[0], to);
    CheckpointFiles files(checkpointFile(place("a")));
    std::string text = Sources(tables.program, files, 0).note(), path = files.path();
    EXPECT_EQ(text.rfind(text.empty() ? "" : path, 0), 0u) << text;
    return text.empty() ? "" : text.substr(path.size());
  };
  for (DType same : kFloats)
    EXPECT_EQ(note(same, same), "");
  EXPECT_EQ(note(DType::Float32, DType::BFloat16),
            " has parameters in float32, this program in bfloat16: 4 masters taken from its "
            "parameters; 4 parameters rounded");
  EXPECT_EQ(note(DType::BFloat16, DType::Float32),
            " has parameters in bfloat16, this program in float32: 4 parameters taken from its "
            "masters");
  EXPECT_EQ(note(DType::BFloat16, DType::Float32, false),
            " has parameters in bfloat16, this program in float32: 4 parameters widened");
  EXPECT_EQ(note(DType::BFloat16, DType::Float16),
            " has parameters in bfloat16, this program in float16: 4 parameters taken from its "
            "masters, rounded; starts anew: scale");
  EXPECT_EQ(note(DType::Float16, DType::BFloat16),
            " has parameters in float16, this program in bfloat16: 4 parameters taken from its "
            "masters, rounded; left out: scale, scale.skipped");
}

/// Of two parameters, one trained: what the other's moments are if it was trained, and if it is now.
TEST_F(OfAnotherPrecision, WhatWasFrozenAndWhatIsNowIsNamed) {
  Parameter parameters[] = {{"w", {3}, {3}, {}, 0}, {"v", {3}, {3}, {}, 64}};
  OptimizerState moments[] = {{"w.m", 0, {3}, {}, 128}, {"v.m", 1, {3}, {}, 192}};
  OptimizerState first[] = {moments[0]};
  Program program;
  program.parameters = parameters;
  program.optimizerStates = moments;
  auto with = [&](std::vector<const char *> names) {
    std::vector<SafetensorsWriter::Entry> entries;
    for (const char *name : names)
      entries.push_back({name, DType::Float32, {3}});
    return writeFile(entries);
  };
  auto error = [&](const std::string &path) {
    CheckpointFiles files(path);
    return errorOf([&] { Sources(program, files, 0); });
  };
  std::string path = with({"w", "w.m", "v"});
  EXPECT_EQ(error(path), "--resume: 'v' is trained by this program, and was frozen when " + path +
                             " was saved, which has no moments of it ('v.m'); compile with the "
                             "--freeze of that run, or start anew from its parameters by --init "
                             "with its folder");
  EXPECT_EQ(error(with({"w", "v"})), "checkpoint " + path + " has no tensor 'w.m'");
  parameters[1].trainable = false;
  program.optimizerStates = first;
  EXPECT_EQ(error(with({"v", "v.m", "w"})).rfind("--resume: 'w' is trained by this program", 0),
            0u);
  CheckpointFiles files(with({"w", "w.m", "v", "v.m"}));
  EXPECT_EQ(Sources(program, files, 0).note(),
            path +
                ": left out: count, maxima; left out: the moments of 'v', frozen in this program");
}

/// A frozen parameter may have a type of its own.
TEST_F(OfAnotherPrecision, TheTypesOfTrainedParametersAreNamed) {
  Parameter parameters[] = {{"a", {3}, {3}, {}, 0, false}, {"b", {3}, {3}, {}, 64}};
  ScalarState scalars[] = {{kFp8Maxima, DType::Float32, 128, false, {3}}};
  Program program;
  program.parameters = parameters;
  program.scalarStates = scalars;
  auto note = [&](DType frozen, DType trained) {
    CheckpointFiles files(writeFile({{"a", frozen, {3}}, {"b", trained, {3}}}));
    std::string text = Sources(program, files, 0).note();
    return text.substr(files.path().size(), text.find(':') - files.path().size());
  };
  EXPECT_EQ(note(DType::Float16, DType::BFloat16),
            " has parameters in bfloat16, this program in float32 (fp8)");
  EXPECT_EQ(note(DType::Float16, DType::Float32),
            " has frozen parameters in float16, this program in float32 (fp8)");
}

/// The model may have a parameter that is called like another one's master.
TEST_F(OfAnotherPrecision, MastersAreFoundByTheNamesThatTheCompilerGives) {
  Parameter parameters[] = {{"w", {3}, {3}, {}, 0}, {"w.master", {3}, {3}, {}, 64}};
  OptimizerState masters[] = {{"w.state.master", 0, {3}, {}, 128},
                              {"w.master.master", 1, {3}, {}, 192}};
  Program program;
  program.parameters = parameters;
  auto source = [&](const std::string &path, const char *tensor) {
    CheckpointFiles files(path);
    return Sources(program, files, 0).of(tensor).tensor;
  };
  std::string path = writeFile({{"w", DType::BFloat16, {3}},
                                {"w.master", DType::BFloat16, {3}},
                                {"w.state.master", DType::Float32, {3}},
                                {"w.master.master", DType::Float32, {3}}});
  EXPECT_EQ(source(path, "w"), "w.state.master");
  EXPECT_EQ(source(path, "w.master"), "w.master.master");
  path = writeFile({{"w", DType::Float32, {3}}, {"w.master", DType::Float32, {3}}});
  EXPECT_EQ(source(path, "w"), "w");
  for (Parameter &parameter : parameters)
    parameter.dtype = DType::BFloat16;
  program.optimizerStates = masters;
  EXPECT_EQ(source(path, "w.state.master"), "w");
  EXPECT_EQ(source(path, "w.master.master"), "w.master");
  EXPECT_EQ(source(path, "w.master"), "w.master");
}

TEST_F(OfAnotherPrecision, WhatDoesNotFitIsAnError) {
  Parameter parameters[] = {{"w", {3}, {3}, {}, 0}};
  OptimizerState moments[] = {{"w.m", 0, {3}, {}, 64}};
  ScalarState scalars[] = {{"maxima", DType::Float32, 128, false, {4}}};
  Program program;
  program.parameters = parameters;
  program.optimizerStates = moments;
  program.scalarStates = scalars;
  auto error = [&](DType w, const Shape &shape, DType m, const Shape &maxima, const char *moment) {
    CheckpointFiles files(
        writeFile({{"w", w, shape}, {moment, m, shape}, {"maxima", DType::Float32, maxima}}));
    std::string text = errorOf([&] { Sources(program, files, 0); });
    return text.substr(std::min(text.size(), text.find("tensor '")));
  };
  EXPECT_EQ(error(DType::BFloat16, {3}, DType::Float16, {4}, "w.m"), "");
  EXPECT_EQ(error(DType::BFloat16, {3}, DType::Float32, {4}, "w.v"), "tensor 'w.m'");
  EXPECT_EQ(error(DType::BFloat16, {4}, DType::Float32, {4}, "w.m"),
            "tensor 'w' is bfloat16 4, the program needs bfloat16 3");
  EXPECT_EQ(error(DType::Int32, {3}, DType::Float32, {4}, "w.m"),
            "tensor 'w' is int32 3, the program needs float32 3");
  EXPECT_EQ(error(DType::Float64, {3}, DType::Float32, {4}, "w.m"),
            "tensor 'w' is float64 3, the program needs float32 3");
  EXPECT_EQ(error(DType::Float32, {3}, DType::Float32, {5}, "w.m"),
            "tensor 'maxima' is float32 5, the program needs float32 4");
}

/// A bfloat16 beyond float16's max; one that is not trained may become infinite, as a mask does.
TEST_F(OfAnotherPrecision, NoTrainedParameterBecomesInfinite) {
  ASSERT_EQ(writeIn(plans()[2], DType::Float32, "a"), "");
  auto readHuge = [&](bool trainable) {
    PlanTables wide(plans()[2]), narrow(plans()[7], DType::Float16);
    EXPECT_EQ(World(wide.program)
                  .run(wide.program, nullptr,
                       [&](Rank &rank) {
                         for (const TensorShard &shard : heldShards(rank))
                           std::memset(shard.data, 0,
                                       size_t(shard.local.elements() * sizeOf(shard.dtype)));
                         *rank.persistent<float>(wide.parameters[0].offset) = 65536;
                         save(rank, place("a"));
                       }),
              "");
    for (Parameter &parameter : narrow.parameters)
      parameter.trainable = trainable;
    return World(narrow.program).run(narrow.program, nullptr, [&](Rank &rank) {
      resumeFrom(rank, {{place("a"), readCheckpointInfo(place("a"))}});
    });
  };
  EXPECT_EQ(readHuge(false), "");
  EXPECT_NE(readHuge(true).find("--resume: parameter 'table' would be infinite in float16: a value "
                                "of " +
                                place("a")),
            std::string::npos);
}

} // namespace
} // namespace partita_rt
