// Parameters and states stored in 16 bits: initial values, files, checkpoints.

#include "half_reference.h"
#include "temporary_folder.h"

#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/saver.h"
#include "common/init/initialize.h"
#include "common/mesh/launch.h"
#include "common/run/check_program.h"
#include "common/run_options.h"
#include "common/tensors/safetensors.h"
#include "partita_rt/checkpoint_folder.h"

#include <cstdlib>
#include <filesystem>

namespace partita_rt {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRows = 7, kColumns = 301; // an odd number of elements, of several chunks

/// Two parameters and a state split over `ranks` shards: the first by rows, the others by elements.
template <typename T> struct Tables {
  Program program;
  Axis mesh[1];
  Parameter parameters[2];
  OptimizerState states[1];
  Stage stage[1];

  explicit Tables(int ranks) : mesh{{"dp", ranks}} {
    int64_t rows = (kRows + ranks - 1) / ranks, flat = (kRows * kColumns + ranks - 1) / ranks;
    Shape full{kRows, kColumns}, shard{rows, kColumns}, part{flat};
    if (ranks == 1)
      part = full;
    constexpr int64_t place = (kRows * kColumns * 2 + 63) / 64 * 64;
    DType dtype = kDTypeOf<T>;
    parameters[0] = {"w", full, shard, {{0, 0}}, 0, true, true, Home::Device, dtype};
    parameters[1] = {"b", full, part, {{kFlat, 0}}, place, true, true, Home::Device, dtype};
    states[0] = {"w.m", 0, part, {{kFlat, 0}}, 2 * place, Home::Device, dtype};
    program.name = "narrow";
    program.mesh = mesh;
    program.parameters = parameters;
    program.optimizerStates = states;
    program.stages = stage;
    stage[0].persistentBytes = 3 * place;
    stage[0].init = [](Rank &rank) {
      const Table<Parameter> &table = rank.program->parameters;
      initialValue(rank, 0, rank.persistent<T>(table[0].offset), Fill::normal(0.5));
      initialValue(rank, 1, rank.persistent<T>(table[1].offset), Fill::normal(0.5));
      fill(rank.persistent<T>(rank.program->optimizerStates[0].offset), 0.1f,
           rank.program->optimizerStates[0].localShape.elements());
    };
    checkProgram(program);
  }
};

void saveNow(Rank &rank, const std::string &folder, const CheckpointInfo &info) {
  CheckpointSaver saver(rank, folder, 1, {});
  saver.begin(info, CheckpointSaver::From::Memory);
  std::string error = saver.complete().why;
  if (error.empty())
    error = saver.finish().why;
  if (!error.empty())
    fail("%s", error.c_str());
}

template <typename T> class HalfPrograms : public InTemporaryFolder {
protected:
  /// Returns all values as the ranks have them, in a file.
  std::string run(int ranks, RunOptions options, bool save) const {
    Tables<T> tables(ranks);
    options.programFolder = folder;
    World world(tables.program);
    std::vector<ResumePoint> points;
    if (options.resume)
      points.push_back({stepFolder(folder, 5), {5, 7, true, "data"}});
    return world.run(tables.program, &options, [&](Rank &rank) {
      rank.options = &options;
      initialize(rank, points);
      writeParameters(rank, folder + "/" + std::to_string(ranks) + ".safetensors");
      if (save)
        saveNow(rank, folder, {5, 7, true, "data"});
    });
  }
};
TYPED_TEST_SUITE(HalfPrograms, NarrowTypes);

template <typename T> void expectValues(const std::string &path) {
  SafetensorsFile file(path);
  for (const char *name : {"w", "b"}) {
    const StoredTensor &stored = file.get(name, Shape{kRows, kColumns});
    ASSERT_EQ(stored.dtype, kDTypeOf<T>);
    Narrow<T> values(kRows * kColumns);
    std::memcpy(values.data(), stored.data, values.size() * 2);
    Floats expected(values.size());
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = float(standardNormal(randomKey(3, name), i) * 0.5);
    EXPECT_ROUNDED(values, expected);
  }
}

TYPED_TEST(HalfPrograms, AnyLayoutStartsAndContinuesAlike) {
  RunOptions options;
  options.init = InitFrom::Seed;
  options.initSeed = 3;
  for (int ranks : {1, 3, 2}) {
    EXPECT_EQ(this->run(ranks, options, true), "");
    expectValues<TypeParam>(this->folder + "/" + std::to_string(ranks) + ".safetensors");
  }
  RunOptions resumed; // from the last one's checkpoint
  resumed.resume = true;
  resumed.checkpoint = this->folder;
  EXPECT_EQ(this->run(3, resumed, false), "");
  expectValues<TypeParam>(this->folder + "/3.safetensors");
  RunOptions given; // a file with such values is read exactly
  given.init = InitFrom::Safetensors;
  given.initFile = this->folder + "/3.safetensors";
  EXPECT_EQ(this->run(1, given, false), "");
  expectValues<TypeParam>(this->folder + "/1.safetensors");
}

TEST(HalfPrograms, TypesThatParametersCannotHave) {
  Tables<Half> tables(1);
  tables.parameters[1].dtype = DType::Int32;
  EXPECT_EQ(errorOf([&] { checkProgram(tables.program); }),
            "parameter b is int32; parameters and their states are float32, float16 or bfloat16");
  tables.parameters[1].dtype = DType::BFloat16;
  RunOptions options;
  options.init = InitFrom::Seed;
  World world(tables.program);
  EXPECT_NE(world
                .run(tables.program, &options,
                     [&](Rank &rank) {
                       rank.options = &options;
                       initialize(rank, {});
                     })
                .find("parameter 'b' is bfloat16, init fills it as float16"),
            std::string::npos);
}

} // namespace
} // namespace partita_rt
