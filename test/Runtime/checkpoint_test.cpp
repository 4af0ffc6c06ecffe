// Checkpoints: written under any plan, read under any other; what interrupts them, and what is
// wrong with them.

#include "reference.h"

#include "common/checkpoint.h"
#include "common/checkpoint_files.h"
#include "common/launch.h"
#include "common/layout.h"
#include "common/options.h"
#include "partita_rt/checksum.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace partita_rt {
namespace {

namespace fs = std::filesystem;

/// The tensors of all plans: a table whose rows divide by nothing, a weight of three blocks in its
/// columns, one of unequal blocks in its rows, a bias, and a scalar.
const char *const kNames[] = {"table", "qkv.weight", "packed \"weight\"", "bias", "count"};
const char *const kStates[] = {"table.m", "qkv.weight.m", "packed \"weight\".m", "bias.m"};
const Shape kShapes[] = {{7, 6}, {4, 24}, {16, 3}, {5}};

/// A mesh, and how parameters and states are split over it.
struct Plan {
  std::vector<Axis> mesh;
  std::vector<Splits> parameters, states;
};

Shape localOf(const Plan &plan, Shape shape, const Splits &splits) {
  int64_t parts = 1;
  for (const Split &split : splits) {
    int size = plan.mesh[size_t(split.axis)].size;
    if (split.dim == kFlat)
      parts *= size;
    else
      shape.dims[split.dim] = pieceSize(shape[split.dim], size);
  }
  return parts == 1 ? shape : Shape{pieceSize(shape.elements(), parts)};
}

template <typename T> Table<T> tableOf(const std::vector<T> &values) {
  Table<T> table;
  table.data = values.data();
  table.count = int64_t(values.size());
  return table;
}

struct Tables {
  Program program;
  std::vector<Axis> mesh;
  std::vector<Parameter> parameters;
  std::vector<OptimizerState> states;
  std::vector<ScalarState> scalars;

  explicit Tables(const Plan &plan) : mesh(plan.mesh) {
    auto place = [&](int64_t bytes) {
      int64_t at = program.persistentBytes;
      program.persistentBytes += (bytes + 63) / 64 * 64;
      return at;
    };
    for (size_t i = 0; i < 4; ++i) {
      Shape local = localOf(plan, kShapes[i], plan.parameters[i]);
      parameters.push_back(
          {kNames[i], kShapes[i], local, plan.parameters[i], place(local.elements() * 4)});
      local = localOf(plan, kShapes[i], plan.states[i]);
      states.push_back({kStates[i], int(i), local, plan.states[i], place(local.elements() * 4)});
    }
    scalars.push_back({kNames[4], DType::Int64, place(8)});
    program.name = "plan";
    program.init = [](Rank &) {};
    program.mesh = tableOf(mesh);
    program.parameters = tableOf(parameters);
    program.optimizerStates = tableOf(states);
    program.scalarStates = tableOf(scalars);
    checkProgram(program);
  }
  Tables(const Tables &) = delete;
};

std::vector<Splits> repeated(const Splits &splits) { return std::vector<Splits>(4, splits); }

/// Splits over `axis` as tensor parallelism makes them.
std::vector<Splits> tensorParallel(int axis) {
  return {{{0, axis}}, {{1, axis, 3}}, {{0, axis, 3, {8, 4, 4}}}, {}};
}
std::vector<Splits> andFlat(std::vector<Splits> splits, int axis) {
  for (Splits &each : splits)
    each.list[each.count++] = {kFlat, axis};
  return splits;
}

std::vector<Plan> plans() {
  std::vector<Splits> whole = repeated({}), flat = repeated({{kFlat, 0}}), tp = tensorParallel(0);
  return {{{}, whole, whole},
          {{{"dp", 2}}, whole, whole},
          {{{"dp", 2}}, whole, flat},
          {{{"dp", 3}}, flat, flat},
          {{{"dp", 16}}, whole, flat}, // more ranks than elements of the bias
          {{{"tp", 2}}, tp, tp},
          {{{"tp", 4}}, tp, tp}, // the table's rows: 2, 2, 2, 1
          {{{"dp", 2}, {"tp", 2}}, tensorParallel(1), andFlat(tensorParallel(1), 0)},
          {{{"tp", 4}, {"dp", 3}}, andFlat(tp, 1), andFlat(tp, 1)},
          {{{"dp", 2}, {"fsdp", 2}}, repeated({{kFlat, 1}}), repeated({{kFlat, 0}, {kFlat, 1}})},
          {{{"a", 2}, {"b", 2}},
           {{{1, 0}}, {{0, 0}, {1, 1, 3}}, {{0, 0}, {0, 1, 4}}, {}},
           {{{1, 1}}, {{1, 0}, {1, 1, 4}}, {{0, 1}}, {{kFlat, 1}}}}};
}

float valueOf(size_t tensor, int64_t element, int64_t save) {
  return float(tensor * 1000) + float(element) + float(save) / 64;
}

class Checkpoints : public testing::Test {
protected:
  void SetUp() override {
    char pattern[] = "/tmp/partita-XXXXXX";
    ASSERT_TRUE(mkdtemp(pattern));
    folder = pattern;
  }
  void TearDown() override { fs::remove_all(folder); }

  /// Save number `save` under a plan; what is beyond a whole is no number. The message of its
  /// failure.
  std::string write(const Plan &plan, int64_t save) const {
    Tables tables(plan);
    World world(tables.program);
    FolderClaim claim;
    return world.run(tables.program, nullptr, [&](Rank &rank) {
      std::vector<TensorPiece> pieces = persistentPieces(rank);
      for (size_t i = 0; i < pieces.size(); ++i) {
        const TensorPiece &piece = pieces[i];
        if (piece.dtype == DType::Int64) {
          *static_cast<int64_t *>(piece.data) = save;
          continue;
        }
        auto *data = static_cast<float *>(piece.data);
        std::fill_n(data, piece.local.elements(), NAN);
        forRuns(tables.program, rank.coordinates, piece.global, piece.splits,
                [&](int64_t global, int64_t local, int64_t n) {
                  for (int64_t k = 0; k < n; ++k)
                    data[local + k] = valueOf(i, global + k, save);
                });
      }
      writeCheckpoint(rank, folder, {save, 7, "data"}, claim);
    });
  }

  /// Reads under a plan. Expects save number `save`, and zeros beyond a whole; the message of its
  /// failure.
  std::string read(const Plan &plan, int64_t save) const {
    Tables tables(plan);
    World world(tables.program);
    std::string error = errorOf([&] {
      EXPECT_EQ(readCheckpointInfo(folder).step, save);
      EXPECT_EQ(readCheckpointInfo(folder).seed, 7u);
    });
    if (!error.empty())
      return error;
    return world.run(tables.program, nullptr, [&](Rank &rank) {
      std::vector<TensorPiece> pieces = persistentPieces(rank);
      for (const TensorPiece &piece : pieces)
        std::memset(piece.data, 0x55, size_t(piece.local.elements() * sizeOf(piece.dtype)));
      readCheckpoint(rank, folder, save);
      for (size_t i = 0; i < pieces.size(); ++i) {
        const TensorPiece &piece = pieces[i];
        if (piece.dtype == DType::Int64) {
          if (*static_cast<int64_t *>(piece.data) != save)
            fail("%s is of another save", piece.name);
          continue;
        }
        std::vector<float> expected(size_t(piece.local.elements()), 0.0f);
        forRuns(tables.program, rank.coordinates, piece.global, piece.splits,
                [&](int64_t global, int64_t local, int64_t n) {
                  for (int64_t k = 0; k < n; ++k)
                    expected[size_t(local + k)] = valueOf(i, global + k, save);
                });
        if (std::memcmp(expected.data(), piece.data, expected.size() * 4) != 0)
          fail("%s is not what was written", piece.name);
      }
    });
  }

  std::set<std::string> names() const {
    std::set<std::string> result;
    for (const auto &entry : fs::directory_iterator(folder))
      result.insert(entry.path().filename().string());
    return result;
  }
  /// Names of files of pieces, in order.
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
  /// Replaces a text of a file, by one as long in a safetensors file, and writes the checksum anew:
  /// what a program could have written.
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
  /// Files of pieces, and the one that names them or has everything.
  std::vector<std::string> files() const {
    std::vector<std::string> paths;
    for (const std::string &name : names())
      paths.push_back(folder + "/" + name);
    return paths;
  }
  std::string folder;
};

TEST_F(Checkpoints, AnyPlanReadsWhatAnyOtherWrote) {
  int64_t save = 0;
  std::vector<Plan> all = plans();
  for (size_t a = 0; a < all.size(); ++a) {
    ASSERT_EQ(write(all[a], ++save), "") << "plan " << a;
    for (size_t b = 0; b < all.size(); ++b)
      EXPECT_EQ(read(all[b], save), "") << "plan " << a << " read by " << b;
    // Nothing of the plan before is left, whichever form it had.
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

/// A process that is killed while it writes a rank's file, or the index when all of these are
/// there.
TEST_F(Checkpoints, AnInterruptedSaveLeavesTheEarlierOne) {
  const Plan plan = plans()[7];
  ASSERT_EQ(write(plan, 1), "");
  std::set<std::string> before = names();
  uintmax_t largest = 0;
  for (const std::string &name : shards())
    largest = std::max(largest, fs::file_size(folder + "/" + name));
  ASSERT_GT(fs::file_size(indexPath(folder)), largest);
  int64_t save = 1;
  std::set<std::string> left; // of the interrupted save before
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
  std::string whole = textOf(wholePath(folder));
  ASSERT_EQ(write(plans()[2], 2), "");
  put(wholePath(folder), whole);
  auto now = fs::file_time_type::clock::now();
  fs::last_write_time(indexPath(folder), now);
  fs::last_write_time(wholePath(folder), now - std::chrono::hours(1));
  EXPECT_EQ(read(plans()[2], 2), "");
  fs::last_write_time(wholePath(folder), now + std::chrono::hours(1));
  EXPECT_EQ(read(plans()[2], 1), "");
}

/// A rank whose pieces are in one file does not look into the others.
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

TEST_F(Checkpoints, PiecesOfTwoSavesAreNoCheckpoint) {
  const Plan plan = plans()[5];
  ASSERT_EQ(write(plan, 1), "");
  std::string second = textOf(folder + "/" + shards()[1]);
  ASSERT_EQ(write(plan, 2), "");
  put(folder + "/" + shards()[1], second);
  std::string error = read(plan, 2);
  EXPECT_NE(error.find(shards()[1] + " is of another save"), std::string::npos) << error;
}

/// Saved after the set-up looked at the step.
TEST_F(Checkpoints, AnotherCheckpointMeanwhileIsRefused) {
  const Plan plan = plans()[5];
  ASSERT_EQ(write(plan, 1), "");
  ASSERT_EQ(readCheckpointInfo(folder).step, 1);
  ASSERT_EQ(write(plan, 2), "");
  Tables tables(plan);
  std::string error =
      World(tables.program).run(tables.program, nullptr, [&](Rank &rank) { readCheckpoint(rank, folder, 1); });
  EXPECT_NE(error.find("became another checkpoint while it was opened"), std::string::npos)
      << error;
}

TEST_F(Checkpoints, AnUnknownFormatIsRefused) {
  ASSERT_EQ(write(plans()[0], 1), "");
  edit(wholePath(folder), "partita checkpoint 2", "partita checkpoint 3");
  EXPECT_EQ(read(plans()[0], 1), wholePath(folder) +
                                     ": its format is 'partita checkpoint 3', this program reads "
                                     "'partita checkpoint 2' and 'partita sharded checkpoint 2', "
                                     "and their older forms 1");
}

/// One bit of any byte of any file, in either form; bytes behind the end; bytes that are missing.
TEST_F(Checkpoints, AnyDamageIsSeen) {
  for (const Plan &plan : {plans()[0], plans()[7]}) {
    ASSERT_EQ(write(plan, 1), "");
    for (const std::string &path : files()) {
      const std::string good = textOf(path);
      auto expectError = [&](const std::string &bytes, const std::string &what) {
        put(path, bytes);
        std::string error = read(plan, 1);
        EXPECT_NE(error.find(folder + "/checkpoint"), std::string::npos)
            << path << ", " << what << ": " << error;
        EXPECT_EQ(error.find("is not what was written"), std::string::npos) << error;
        EXPECT_EQ(error.find('\n'), std::string::npos) << error;
      };
      for (size_t at = 0; at < good.size(); at += at < 16 ? 1 : 11) {
        std::string bad = good;
        bad[at] = char(bad[at] ^ 1 << at % 8);
        expectError(bad, "bit " + std::to_string(at % 8) + " of byte " + std::to_string(at));
      }
      expectError(good + '\0', "a byte more");
      expectError(good.substr(0, good.size() - 1), "a byte less");
      put(path, good);
    }
    EXPECT_EQ(read(plan, 1), "");
  }
}

TEST_F(Checkpoints, DamageIsSaidWithFileTensorAndBothChecksums) {
  ASSERT_EQ(write(plans()[0], 1), "");
  std::string bytes = textOf(wholePath(folder));
  bytes[bytes.size() - 8] ^= 1; // "count" is the last tensor
  put(wholePath(folder), bytes);
  std::string error = read(plans()[0], 1),
              begin = "safetensors file " + wholePath(folder) +
                      ", tensor 'count': its bytes 0 .. 8 have CRC-32C ";
  EXPECT_EQ(error.substr(0, begin.size()), begin);
  const std::string end = " was written: the file is damaged";
  EXPECT_EQ(error.size(), begin.size() + 8 + 2 + 8 + end.size());
  EXPECT_EQ(error.substr(error.size() - end.size()), end);
}

/// Checkpoints that were written before there were checksums.
TEST_F(Checkpoints, WithoutChecksumsAreReadIfTheirFormatHasNone) {
  for (const Plan &plan : {plans()[0], plans()[7]}) {
    ASSERT_EQ(write(plan, 1), "");
    EXPECT_EQ(CheckpointFiles(findCheckpoint(folder)).note(), "");
    for (const std::string &path : files()) {
      edit(path, "\"crc32c\"", "\"xrc32c\"");
      if (path != indexPath(folder))
        edit(path, "\"block_crc32c\"", "\"block_xrc32c\"");
    }
    std::string error = read(plan, 1);
    EXPECT_NE(error.find("checkpoint 2', has checksums, but they are not there"), std::string::npos)
        << error;
    for (const std::string &path : files())
      edit(path, "checkpoint 2", "checkpoint 1");
    EXPECT_EQ(read(plan, 1), "");
    std::string note = CheckpointFiles(findCheckpoint(folder)).note();
    EXPECT_NE(note.find("checkpoint 1', which has no checksums"), std::string::npos) << note;
  }
}

TEST_F(Checkpoints, WhatIsWrongWithFilesIsOneMessage) {
  const Plan plan = plans()[5];
  ASSERT_EQ(write(plan, 1), "");
  std::string first = folder + "/" + shards()[0], bytes = textOf(first);
  fs::remove(first);
  EXPECT_EQ(read(plan, 1), "checkpoint index " + indexPath(folder) + ": its file " + first +
                               ": No such file or directory");
  put(first, bytes.substr(0, bytes.size() - 4));
  std::string error = read(plan, 1);
  EXPECT_NE(error.find("its file " + first + " has "), std::string::npos) << error;
  put(first, bytes);
  EXPECT_EQ(read(plan, 1), "");
  fs::remove(indexPath(folder));
  EXPECT_EQ(read(plan, 1), "no checkpoint in " + folder + ": neither " + wholePath(folder) +
                               " nor " + indexPath(folder) + " is there");
}

TEST_F(Checkpoints, WhatIsWrongWithTheIndexIsOneMessage) {
  const Plan plan = plans()[7];
  ASSERT_EQ(write(plan, 1), "");
  const std::string good = textOf(indexPath(folder));
  auto error = [&](const std::string &from, const std::string &to) {
    put(indexPath(folder), good);
    edit(indexPath(folder), from, to);
    return read(plan, 1);
  };
  const std::pair<const char *, const char *> wrong[] = {
      {"partita sharded checkpoint 2", "partita sharded checkpoint 9"},
      {"\"name\": \"", "\"name\": \"../"},
      {"\"name\": \"checkpoint", "\"name\": \"/etc/checkpoint"},
      {"\"name\": \"", "\"nome\": \""},
      {"\"bytes\": 1", "\"bytes\": -1"},
      {"\"file\": 1", "\"file\": 0"},
      {"\"file\": 1", "\"file\": 5"},
      {"\"file\": 1", "\"file\": 2"},
      {"\"dtype\": \"F32\"", "\"dtype\": \"F33\""},
      {"\"dtype\": \"F32\"", "\"dtype\": \"I32\""},
      {"\"shape\": [7, 6]", "\"shape\": [7, 7]"},
      {"\"shape\": [7, 6]", "\"shape\": [8, 6]"},
      {"\"shape\": [7, 6]", "\"shape\": [42]"},
      {"\"shape\": [7, 6]", "\"shape\": [4611686018427387904, 6]"},
      {"\"shape\": [7, 6]", "\"shape\": [-7, 6]"},
      {"[[0, 4], [0, 6]]", "[[0, 3], [0, 6]]"}, // missing rows
      {"[[0, 4], [0, 6]]", "[[0, 5], [0, 6]]"}, // rows twice
      {"[[0, 4], [0, 6]]", "[[3, 7], [0, 6]]"}, // both
      {"[[0, 4], [0, 6]]", "[[0, 4], [0, 7]]"}, // beyond
      {"[[0, 4], [0, 6]]", "[[-1, 4], [0, 6]]"},
      {"[[0, 4], [0, 6]]", "[[4, 0], [0, 6]]"},
      {"[[0, 4], [0, 6]]", "[[0, 4]]"},
      {"[[0, 4], [0, 6]]", "[[0, 4], []]"},
      {"[[0, 4], [0, 6]]", "[[0, 4], [0, 6, 6]]"},
      {"[[0, 4], [0, 6]]", "[[0, \"4\"], [0, 6]]"},
      {"\"elements\": [0, 12]", "\"elements\": [1, 12]"},
      {"\"elements\": [0, 12]", "\"elements\": [0, 13]"},
      {"\"elements\": [0, 12]", "\"elements\": [0, 11]"},
      {"\"elements\": [0, 12]", "\"elements\": [0, 99]"},
      {"\"elements\": [0, 12]", "\"elements\": [0]"},
      {"\"table\"", "\"tables\""},
      {"\"step\": \"1\"", "\"step\": \"x\""},
      {"\"save\": \"", "\"save\": \"0"},
      {"}}", "}"},
      {"\"tensors\"", "\"tenors\""}};
  for (auto [from, to] : wrong) {
    std::string text = error(from, to);
    EXPECT_NE(text.find(folder), std::string::npos) << from << " -> " << to << ": " << text;
    EXPECT_EQ(text.find("not what was written"), std::string::npos) << from << " -> " << to;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
  EXPECT_NE(error("[[0, 4], [0, 6]]", "[[0, 5], [0, 6]]")
                .find("tensor 'table': two of its pieces "
                      "have the same elements"),
            std::string::npos);
  EXPECT_NE(error("\"elements\": [0, 12]", "\"elements\": [0, 11]")
                .find("tensor 'table.m': its pieces lack some of its elements"),
            std::string::npos);
  put(indexPath(folder), good);
  EXPECT_EQ(read(plan, 1), "");
}

} // namespace
} // namespace partita_rt
