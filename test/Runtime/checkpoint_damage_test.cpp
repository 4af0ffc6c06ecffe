// Invalid checkpoints: files of another save or format, damage, inconsistent indexes.

#include "checkpoints.h"

#include "partita_rt/machine.h"

namespace partita_rt {
namespace {

TEST_F(Checkpoints, ShardsOfTwoSavesAreNoCheckpoint) {
  const Plan plan = plans()[5];
  ASSERT_EQ(write(plan, 1), "");
  std::string second = textOf(folder + "/" + shards()[1]);
  ASSERT_EQ(write(plan, 2), "");
  put(folder + "/" + shards()[1], second);
  std::string error = read(plan, 2);
  EXPECT_NE(error.find(shards()[1] + " is of another save"), std::string::npos) << error;
}

/// Two shards of one save with the same size, tensors and shapes differ only in their headers'
/// checksums, which the index has.
TEST_F(Checkpoints, ShardsUnderEachOthersNamesAreRefused) {
  const Plan plan = plans()[8]; // twelve shards
  ASSERT_EQ(write(plan, 1), "");
  std::string first, second;
  for (const std::string &a : shards())
    for (const std::string &b : shards())
      if (a < b && fs::file_size(folder + "/" + a) == fs::file_size(folder + "/" + b))
        first = folder + "/" + a, second = folder + "/" + b;
  ASSERT_NE(first, "");
  const std::string one = textOf(first), two = textOf(second);
  auto expectRefused = [&](const std::string &file, const std::string &other) {
    std::string said = "checkpoint index " + indexPath(folder) + ": its file " + file +
                       " has the contents of " + other +
                       ": shards were swapped, or one was copied over another",
                error = read(plan, 1);
    EXPECT_NE(error.find(said), std::string::npos) << error;
  };
  put(first, two);
  expectRefused(first, second);
  put(second, one);
  EXPECT_NE(read(plan, 1).find(" has the contents of "), std::string::npos);
  put(first, one);
  expectRefused(second, first);
  put(second, two);
  EXPECT_EQ(read(plan, 1), "");
}

/// A file that a program could have written, but not in this save.
TEST_F(Checkpoints, AShardWithAnotherHeaderIsRefused) {
  const Plan plan = plans()[3];
  ASSERT_EQ(write(plan, 1), "");
  const std::string second = folder + "/" + shards()[1];
  edit(second, "\"seed\":\"7\"", "\"seed\":\"8\"");
  std::string error = read(plan, 1);
  EXPECT_NE(
      error.find("its file " + second + " is not the one that was saved: its header has CRC-32C "),
      std::string::npos)
      << error;
}

/// The index of format 2 has no checksums of its files' headers: the shards are read unchecked.
TEST_F(Checkpoints, OfFormat2IsReadWithANote) {
  const Plan plan = plans()[3];
  ASSERT_EQ(write(plan, 1), "");
  for (const std::string &path : files())
    edit(path, "sharded checkpoint 3", "sharded checkpoint 2");
  EXPECT_EQ(read(plan, 1), "");
  edit(indexPath(folder), "\"header_crc32c\"", "\"other\"");
  EXPECT_EQ(read(plan, 1), "");
  EXPECT_EQ(CheckpointFiles(indexPath(folder)).note(),
            indexPath(folder) +
                " is of format 'partita sharded checkpoint 2', whose index has no checksums of its "
                "files: shards that lie under each other's names would go unnoticed");
  edit(indexPath(folder), "sharded checkpoint 2", "sharded checkpoint 3");
  EXPECT_NE(read(plan, 1).find("it has no valid \"header_crc32c\""), std::string::npos);
}

/// The checkpoint is saved after the set-up has read the step.
TEST_F(Checkpoints, AnotherCheckpointMeanwhileIsRefused) {
  const Plan plan = plans()[5];
  ASSERT_EQ(write(plan, 1), "");
  ASSERT_EQ(readCheckpointInfo(folder).step, 1);
  ASSERT_EQ(write(plan, 2), "");
  PlanTables tables(plan);
  std::string error = World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
    resumeFrom(rank, {{folder, {1, 7, true, "data"}}});
  });
  EXPECT_NE(error.find("was replaced while it was being read"), std::string::npos) << error;
}

/// Their hosts may not share the folder.
TEST_F(Checkpoints, RanksThatSeeDifferentFoldersAreRefused) {
  const Plan plan = plans()[5];
  ASSERT_EQ(write(plan, 1), "");
  PlanTables tables(plan);
  auto error = [&](const std::vector<ResumePoint> &ofOthers) {
    return World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      std::vector<ResumePoint> ofFirst = {{folder, readCheckpointInfo(folder)}};
      resumeFrom(rank, rank.rank == 0 ? ofFirst : ofOthers);
    });
  };
  ResumePoint own{folder, readCheckpointInfo(folder)}, later = own, other = own;
  later.info.step = 2;
  other.info.identity ^= 1;
  EXPECT_EQ(error({own}), "");
  std::string host = " (host " + hostName() + ")",
              begin = "--resume: ranks see different checkpoints in the folder: rank 0" + host +
                      " finds 1 there, the newest of step 1, rank 1" + host,
              end = "; all hosts must see one folder";
  EXPECT_NE(error({later, own}).find(begin + " finds 2 there, the newest of step 2" + end),
            std::string::npos);
  EXPECT_NE(error({other}).find(begin +
                                " finds 1 there, the newest of step 1, which is not the same "
                                "one" +
                                end),
            std::string::npos);
}

TEST_F(Checkpoints, AnUnknownFormatIsRefused) {
  ASSERT_EQ(write(plans()[0], 1), "");
  edit(unshardedPath(folder), "partita checkpoint 2", "partita checkpoint 3");
  EXPECT_EQ(read(plans()[0], 1), unshardedPath(folder) +
                                     ": its format is 'partita checkpoint 3', this program reads "
                                     "'partita checkpoint 2' and 'partita sharded checkpoint 3', "
                                     "and older versions of either");
}

/// Flips one bit of each of the first 16 bytes of every file, in either form, and of every eleventh
/// byte after them; appends a byte; removes the last byte.
TEST_F(Checkpoints, DamageIsSeen) {
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
  std::string bytes = textOf(unshardedPath(folder));
  bytes[bytes.size() - 8] ^= 1; // "count" is the last tensor
  put(unshardedPath(folder), bytes);
  std::string error = read(plans()[0], 1),
              begin = "safetensors file " + unshardedPath(folder) +
                      ", tensor 'count': its bytes 0 .. 8 have CRC-32C ";
  EXPECT_EQ(error.substr(0, begin.size()), begin);
  const std::string end = " was recorded: the file is damaged";
  EXPECT_EQ(error.size(), begin.size() + 8 + std::string(", but ").size() + 8 + end.size());
  EXPECT_EQ(error.substr(error.size() - end.size()), end);
}

/// Checkpoints written before there were checksums.
TEST_F(Checkpoints, WithoutChecksumsAreReadIfTheirFormatHasNone) {
  for (const Plan &plan : {plans()[0], plans()[7]}) {
    ASSERT_EQ(write(plan, 1), "");
    EXPECT_EQ(CheckpointFiles(checkpointFile(folder)).note(), "");
    for (const std::string &path : files()) {
      edit(path, "\"crc32c\"", "\"xrc32c\"");
      if (path != indexPath(folder))
        edit(path, "\"block_crc32c\"", "\"block_xrc32c\"");
    }
    std::string error = read(plan, 1);
    std::string now = isSharded(PlanTables(plan).program) ? "checkpoint 3" : "checkpoint 2";
    EXPECT_NE(error.find(now + "', has checksums, but they are not there"), std::string::npos)
        << error;
    for (const std::string &path : files())
      edit(path, now, "checkpoint 1");
    EXPECT_EQ(read(plan, 1), "");
    std::string note = CheckpointFiles(checkpointFile(folder)).note();
    EXPECT_NE(note.find("checkpoint 1', which has no checksums"), std::string::npos) << note;
  }
}

/// Large files have larger blocks, so that their checksums fit into the header. (This file has no
/// bytes on disk.)
TEST_F(Checkpoints, LargeFilesHaveLargerBlocks) {
  const int64_t limit = kMostFullBlocks * kChecksumBlock;
  EXPECT_EQ(checksumBlock(limit - 1), kChecksumBlock);
  EXPECT_EQ(checksumBlock(limit), 2 * kChecksumBlock);
  EXPECT_EQ(checksumBlock(int64_t(1) << 62) % kChecksumBlock, 0);
  const int64_t block = 2 * kChecksumBlock, blocks = limit / block;
  const std::string zero(size_t(block), '\0');
  std::string digits,
      each = checksumText(crc32c(reinterpret_cast<const unsigned char *>(zero.data()), block));
  for (int64_t i = 0; i < blocks; ++i)
    digits += each;
  std::string header = "{\"__metadata__\":{\"crc32c\":\"00000000\",\"block_crc32c\":\"" + digits +
                       "\"},\"a\":{\"dtype\":\"U8\",\"shape\":[" + std::to_string(limit) +
                       "],\"data_offsets\":[0," + std::to_string(limit) + "]}}";
  setTextChecksum(header);
  const uint64_t length = header.size();
  std::string path = folder + "/large.safetensors";
  put(path, std::string(reinterpret_cast<const char *>(&length), 8) + header);
  fs::resize_file(path, 8 + length + uint64_t(limit));
  auto check = [&] { SafetensorsFile(path).find("a")->check("a", limit - 1, limit); };
  EXPECT_EQ(errorOf(check), "");
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-block, std::ios::end);
  file.put('x');
  file.close();
  std::string error = errorOf(check),
              bytes = std::to_string(limit - block) + " .. " + std::to_string(limit);
  EXPECT_NE(error.find("tensor 'a': its bytes " + bytes + " have CRC-32C "), std::string::npos)
      << error;
}

/// A header that no reader would accept is not written.
TEST_F(Checkpoints, AHeaderLargerThanTheFormatAllowsIsAnError) {
  std::string path = folder + "/x.safetensors", name(100'000'000, 'x'),
              error = errorOf([&] { SafetensorsWriter(path, {{name, DType::Float32, {1}}}, {}); });
  EXPECT_EQ(error.rfind("cannot write " + path + ": its header would have 1000001", 0), 0u)
      << error.substr(0, 200);
  EXPECT_TRUE(names().empty());
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
  std::string lost = read(plan, 1);
  EXPECT_NE(lost.find("2 shards of a checkpoint are there, but not their index"), std::string::npos)
      << lost;
  for (const std::string &shard : shards())
    fs::remove(folder + "/" + shard);
  EXPECT_EQ(read(plan, 1), "no checkpoint in " + folder + ": neither " + unshardedPath(folder) +
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
      {"partita sharded checkpoint 3", "partita sharded checkpoint 9"},
      {"\"header_crc32c\": \"", "\"header_crc32c\": \"0"},
      {"\"header_crc32c\"", "\"crc32c\""},
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
      {"[[0, 4], [0, 6]]", "[[3, 7], [0, 6]]"}, // missing and twice
      {"[[0, 4], [0, 6]]", "[[0, 4], [0, 7]]"}, // out of range
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
                .find("tensor 'table': two of its shards hold the same elements"),
            std::string::npos);
  EXPECT_NE(error("\"elements\": [0, 12]", "\"elements\": [0, 11]")
                .find("tensor 'table.m': its shards lack some of its elements"),
            std::string::npos);
  put(indexPath(folder), good);
  EXPECT_EQ(read(plan, 1), "");
}

} // namespace
} // namespace partita_rt
