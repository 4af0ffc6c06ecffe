// Checkpoints written under any plan are read under any other; interrupted saves.

#include "checkpoints.h"

#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>

namespace partita_rt {
namespace {

TEST_F(Checkpoints, AnyPlanReadsWhatAnyOtherWrote) {
  int64_t save = 0;
  std::vector<Plan> all = plans();
  for (size_t a = 0; a < all.size(); ++a) {
    ASSERT_EQ(write(all[a], ++save), "") << "plan " << a;
    for (size_t b = 0; b < all.size(); ++b)
      EXPECT_EQ(read(all[b], save), "") << "plan " << a << " read by " << b;
    // Nothing of the previous plan's checkpoint remains, in either form.
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
  Tables tables({{{"dp", 2}}, repeated({}), repeated({})});
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
  ASSERT_EQ(write(plan, 1), "");
  std::set<std::string> before = names();
  std::string index = textOf(indexPath(folder));
  ASSERT_EQ(write(plan, 1), "");
  EXPECT_EQ(names(), before);
  EXPECT_EQ(textOf(indexPath(folder)), index);
  ASSERT_EQ(write(plan, 2), "");
  for (const std::string &name : shards())
    EXPECT_EQ(before.count(name), 0u) << "a file of the earlier save is replaced";
}

/// A process is killed while it writes a rank's file, or the index after all of these exist.
TEST_F(Checkpoints, AnInterruptedSaveLeavesTheEarlierOne) {
  const Plan plan = plans()[7];
  ASSERT_EQ(write(plan, 1), "");
  std::set<std::string> before = names();
  uintmax_t largest = 0;
  for (const std::string &name : shards())
    largest = std::max(largest, fs::file_size(folder + "/" + name));
  ASSERT_GT(fs::file_size(indexPath(folder)), largest);
  int64_t save = 1;
  std::set<std::string> left; // by the previous interrupted save
  for (uintmax_t limit : {largest - 1, largest}) {
    ++save;
    pid_t child = fork();
    if (child == 0) {
      rlimit most{limit, limit}, none{0, 0};
      setrlimit(RLIMIT_FSIZE, &most);
      setrlimit(RLIMIT_CORE, &none);
      write(plan, save);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
    for (const std::string &name : left)
      EXPECT_EQ(names().count(name), 0u) << "what fills the disk stays";
    for (const std::string &name : names())
      if (!before.count(name))
        left.insert(name);
    EXPECT_FALSE(left.empty()) << "nothing was interrupted";
    for (const Plan &other : plans())
      EXPECT_EQ(read(other, 1), "");
  }
  EXPECT_GE(shards().size(), 2 * before.size() - 2) << "the index was not what was interrupted";
  ASSERT_EQ(write(plan, 4), "");
  EXPECT_EQ(read(plan, 4), "");
  EXPECT_EQ(names().size(), before.size()) << "what was left over is still there";
}

/// Errors, not signals: a file cannot grow, or the index cannot be replaced.
TEST_F(Checkpoints, ARankThatCannotWriteLeavesTheEarlierOne) {
  const Plan plan = plans()[7];
  ASSERT_EQ(write(plan, 1), "");
  size_t before = names().size();
  pid_t child = fork();
  if (child == 0) {
    rlimit most{1, 1};
    setrlimit(RLIMIT_FSIZE, &most);
    std::signal(SIGXFSZ, SIG_IGN);
    _exit(write(plan, 2).find("cannot write " + folder) == std::string::npos);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(names().size(), before);
  EXPECT_EQ(read(plan, 1), "");
}

TEST_F(Checkpoints, AFailedSaveLeavesTheEarlierOne) {
  const Plan plan = plans()[2];
  ASSERT_EQ(write(plans()[0], 1), "");
  fs::create_directory(indexPath(folder));
  std::string error = write(plan, 2);
  EXPECT_NE(error.find("checkpoint.safetensors.index.json is not a regular file"),
            std::string::npos)
      << error;
  fs::remove(indexPath(folder));
  EXPECT_EQ(names(), std::set<std::string>{"checkpoint.safetensors"});
  EXPECT_EQ(read(plan, 1), "");
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
