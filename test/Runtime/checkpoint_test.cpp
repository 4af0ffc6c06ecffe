// Checkpoints written under any plan are read under any other.

#include "checkpoints.h"

namespace partita_rt {
namespace {

TEST_F(Checkpoints, AnyPlanReadsWhatAnyOtherWrote) {
  int64_t save = 0;
  std::vector<Plan> all = plans();
  for (size_t a = 0; a < all.size(); ++a) {
    ASSERT_EQ(write(all[a], ++save), "") << "plan " << a;
    for (size_t b = 0; b < all.size(); ++b)
      EXPECT_EQ(read(all[b], save), "") << "plan " << a << " read by " << b;
    std::set<std::string> files = names();
    EXPECT_EQ(files.size(), 1 + shards().size());
    EXPECT_EQ(files.count("checkpoint.safetensors"), a < 2 ? 1u : 0u);
    EXPECT_EQ(files.count("checkpoint.safetensors.index.json"), a < 2 ? 0u : 1u);
  }
  ASSERT_EQ(write(all[0], ++save), "");
  EXPECT_EQ(names(), std::set<std::string>{"checkpoint.safetensors"});
}

TEST_F(Checkpoints, EveryElementIsWrittenOnce) {
  for (const Plan &plan : plans()) {
    ASSERT_EQ(write(plan, 1), "");
    int64_t elements = 0;
    for (const auto &entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".safetensors")
        continue;
      SafetensorsFile file(entry.path().string());
      for (const auto &[name, tensor] : file.tensors()) {
        elements += tensor.shape.elements();
        auto *values = reinterpret_cast<const float *>(tensor.data);
        for (int64_t i = 0; tensor.dtype == DType::Float32 && i < tensor.shape.elements(); ++i)
          EXPECT_FALSE(std::isnan(values[i])) << name;
      }
    }
    EXPECT_EQ(elements, 2 * (42 + 96 + 48 + 5) + 1);
  }
}

/// The output of --forward for a mask of which each rank has three bytes.
TEST_F(Checkpoints, AnOddNumberOfBytesIsGathered) {
  PlanTables tables({{{"dp", 2}}, repeated({}), repeated({})});
  std::vector<Input> inputs = {{"mask", InputRole::Data, DType::Bool, {2, 3}, {1, 3}, {{0, 0}}, 0}};
  tables.program.inputs = tableOf(inputs);
  const bool mask[2][3] = {{true, false, true}, {false, true, true}};
  std::string path = folder + "/outputs.safetensors",
              error = World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
                std::memcpy(rank.hostInputs[0], mask[rank.rank], sizeof(mask[0]));
                writeOutputs(rank, path);
              });
  ASSERT_EQ(error, "");
  SafetensorsFile file(path);
  EXPECT_EQ(std::memcmp(file.get("mask", {2, 3}).data, mask, sizeof(mask)), 0);
}

TEST_F(Checkpoints, SameContentsAreTheSameFiles) {
  const Plan plan = plans()[7];
  auto contents = [&] {
    std::map<std::string, std::string> all;
    for (const std::string &name : names())
      all[name] = textOf(folder + "/" + name);
    return all;
  };
  ASSERT_EQ(write(plan, 1), "");
  std::map<std::string, std::string> before = contents();
  ASSERT_EQ(write(plan, 1), "");
  EXPECT_EQ(contents(), before);
  ASSERT_EQ(write(plan, 2), "");
  for (const std::string &name : shards())
    EXPECT_EQ(before.count(name), 0u) << "two saves have one name";
}

TEST_F(Checkpoints, OfBothFormsTheOneWrittenLastIsRead) {
  ASSERT_EQ(write(plans()[0], 1), "");
  std::string unsharded = textOf(unshardedPath(folder));
  ASSERT_EQ(write(plans()[2], 2), "");
  put(unshardedPath(folder), unsharded);
  auto now = fs::file_time_type::clock::now();
  fs::last_write_time(indexPath(folder), now);
  fs::last_write_time(unshardedPath(folder), now - std::chrono::hours(1));
  EXPECT_EQ(read(plans()[2], 2), "");
  fs::last_write_time(unshardedPath(folder), now + std::chrono::hours(1));
  EXPECT_EQ(read(plans()[2], 1), "");
}

/// A rank whose shards are in one file does not open the others.
TEST_F(Checkpoints, OnlyFilesWithNeededElementsAreOpened) {
  ASSERT_EQ(write(plans()[5], 1), "");
  ASSERT_EQ(shards().size(), 2u);
  std::string second = folder + "/" + shards()[1];
  put(second, std::string(fs::file_size(second), '\0'));
  CheckpointFiles files(indexPath(folder));
  int64_t elements = 0;
  files.forParts("table", {{0, 0, 24}},
                 [&](const unsigned char *, const partita_rt::Run &run) { elements += run.count; });
  EXPECT_EQ(elements, 24); // the first four rows
  EXPECT_NE(errorOf([&] {
              files.forParts("table", {{0, 0, 25}}, [](auto...) {});
            }).find(second + ", header"),
            std::string::npos);
}

} // namespace
} // namespace partita_rt
