// Data files, and the batches that they become.

#include "reference.h"
#include "temporary_folder.h"

#include "common/data/drawn_samples.h"
#include "common/data/packed_rows.h"
#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"

#include <algorithm>
#include <set>

namespace partita_rt {
namespace {

using Data = Files;

std::string llmcHeader(int32_t magic, int32_t version, int32_t count) {
  std::vector<int32_t> header(256);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return std::string(reinterpret_cast<const char *>(header.data()), 1024);
}

TEST_F(Data, ReadsEveryFormat) {
  std::vector<uint16_t> narrow = {7, 300, 65535};
  std::vector<uint32_t> wide = {7, 300, 100000};
  auto tokens = [](const std::string &argument) {
    TokenFile file(argument, "--data", 200000);
    std::vector<int64_t> out;
    for (int64_t i = 0; i < file.tokens(); ++i)
      out.push_back(file.token(i));
    return out;
  };
  using Ids = std::vector<int64_t>;
  EXPECT_EQ(tokens(write("nano.bin", bytesOf(narrow))), (Ids{7, 300, 65535}));
  EXPECT_EQ(tokens(write("c.bin", llmcHeader(20240520, 1, 3) + bytesOf(narrow))),
            (Ids{7, 300, 65535}));
  EXPECT_EQ(tokens(write("llama.bin", llmcHeader(20240801, 7, 3) + bytesOf(wide))),
            (Ids{7, 300, 100000}));
  EXPECT_EQ(tokens("uint32:" + write("raw", bytesOf(wide))), (Ids{7, 300, 100000}));
  EXPECT_EQ(tokens("uint16:" + write("raw16", bytesOf(narrow))), (Ids{7, 300, 65535}));
  EXPECT_EQ(tokens("text:" + write("t", "a\xff\n")), (Ids{97, 255, 10}));
}

TEST_F(Data, RefusesBadFiles) {
  auto error = [](const std::string &argument, int64_t vocabulary = 1000) {
    return errorOf([&] { TokenFile(argument, "--data", vocabulary); });
  };
  EXPECT_EQ(error(folder + "/none.bin"),
            "--data: " + folder + "/none.bin: No such file or directory");
  EXPECT_EQ(error("text:" + folder), "--data: " + folder + ": not a regular file");
  std::string empty = write("empty.bin", "");
  EXPECT_EQ(error(empty), "--data: " + empty + " is empty");
  EXPECT_NE(error(write("odd.bin", "abc")).find("3 bytes, not a whole number of 2-byte tokens"),
            std::string::npos);
  EXPECT_NE(error(write("v.bin", llmcHeader(20240520, 9, 0))).find("version 9"), std::string::npos);
  EXPECT_NE(error(write("short.bin", llmcHeader(20240520, 1, 5) + "abcd"))
                .find("should have 5 tokens by its header, it has 2"),
            std::string::npos);
  EXPECT_NE(error(write("neg.bin", llmcHeader(20240520, 1, -5) + "abcd")).find("-5 tokens"),
            std::string::npos);
  EXPECT_NE(error(write("plain.txt", "abcd")).find("text:FILE"), std::string::npos);
  std::string big = write("big.bin", bytesOf(std::vector<uint16_t>{1, 2, 1000}));
  EXPECT_EQ(error(big),
            "--data: " + big +
                ": token 1000 at position 2 is not below the model's vocabulary of 1000");
}

TEST(Permute, IsAPermutationThatDependsOnTheKey) {
  for (int64_t n : {1, 2, 3, 5, 16, 17, 1000}) {
    std::set<int64_t> seen;
    int64_t moved = 0;
    for (int64_t i = 0; i < n; ++i) {
      int64_t to = permute(42, i, n);
      EXPECT_TRUE(to >= 0 && to < n);
      seen.insert(to);
      moved += to != permute(43, i, n);
    }
    EXPECT_EQ(int64_t(seen.size()), n);
    if (n >= 16) {
      EXPECT_GT(moved, n / 2);
    }
  }
}

const Axis kMesh[] = {{"dp", 2}};
const Input kInputs[] = {
    {"ids", InputRole::TokenIds, DType::Int64, {4, 3}, {2, 3}, {{0, 0}}, 256},
    {"labels", InputRole::Labels, DType::Int64, {4, 3}, {2, 3}, {{0, 0}}, 256},
    {"positions", InputRole::PositionIds, DType::Int32, {1, 3}, {1, 3}, {}, 0},
    {"mask", InputRole::Ones, DType::Float32, {4, 3}, {2, 3}, {{0, 0}}, 0},
};

/// Input buffers of one rank of the program above.
struct Buffers {
  int64_t ids[2][2][3], labels[2][2][3];
  int32_t positions[2][3];
  float mask[2][2][3];
  void *all[4] = {ids, labels, positions, mask};
  Rank rank;
  Buffers(const Program &program, int number) {
    setCoordinates(rank, program, number);
    rank.inputs = rank.hostInputs = all;
  }
};

Program ofTwoMicroBatches() {
  Program program;
  program.mesh = kMesh;
  program.inputs = kInputs;
  program.accumulate = 2;
  return program;
}

/// The tokens 0, 1, 2 and so on.
std::string counted(int tokens) {
  std::string text;
  for (int i = 0; i < tokens; ++i)
    text += char(i);
  return text;
}

TEST_F(Data, BatchesAreAFunctionOfSeedAndStep) {
  Program program = ofTwoMicroBatches();
  std::unique_ptr<Samples> file =
      openSamples("text:" + write("t", counted(100)), "--data", program);
  Batches batches(*file, "--data", program, 5, true, 2);
  EXPECT_EQ(batches.samplesInFile(), 33);
  std::multiset<int64_t> firsts;
  for (int64_t step = 0; step < 9; ++step)
    for (int number = 0; number < 2; ++number) {
      Buffers b(program, number);
      batches.fill(b.rank, step, 2);
      for (int micro = 0; micro < 2; ++micro)
        for (int row = 0; row < 2; ++row) {
          if (step * 8 + micro * 4 + number * 2 + row < 33)
            firsts.insert(b.ids[micro][row][0]);
          for (int i = 0; i < 3; ++i) {
            EXPECT_EQ(b.ids[micro][row][i], b.ids[micro][row][0] + i);
            EXPECT_EQ(b.labels[micro][row][i], b.ids[micro][row][i] + 1);
            EXPECT_EQ(b.positions[micro][i], i);
            EXPECT_EQ(b.mask[micro][row][i], 1.0f);
          }
        }
    }
  EXPECT_EQ(firsts.size(), 33u); // the first epoch: every window once
  EXPECT_EQ(std::set<int64_t>(firsts.begin(), firsts.end()).size(), 33u);

  EXPECT_EQ(errorOf([&] { Batches(*file, "--data", program, 5, true, 9); }),
            "--data: 100 tokens give 33 samples of 3 + 1 tokens, one step needs 36");
}

/// Sample w of the text is the tokens from 3 w on. A step of this program takes eight: each of two
/// micro-batches four, of which each of two ranks has two.
TEST_F(Data, WithoutShufflingRowsAreTheFiles) {
  Program program = ofTwoMicroBatches();
  std::string text = counted(31); // ten samples
  std::unique_ptr<Samples> file = openSamples("text:" + write("t", text), "--data", program);
  Batches batches(*file, "--data", program, 5, false, 2);
  std::vector<int64_t> found;
  for (int64_t step = 0; step < 3; ++step)
    for (int number = 0; number < 2; ++number) {
      Buffers b(program, number);
      batches.fill(b.rank, step, 2);
      for (int micro = 0; micro < 2; ++micro)
        for (int row = 0; row < 2; ++row)
          found.push_back(b.ids[micro][row][0] / 3);
    }
  // A line is a step: rank 0's rows of both micro-batches, then rank 1's.
  EXPECT_EQ(found, (std::vector<int64_t>{0, 1, 4, 5, 2, 3, 6, 7, //
                                         8, 9, 2, 3, 0, 1, 4, 5, //
                                         6, 7, 0, 1, 8, 9, 2, 3}));
}

/// Rows of three of the documents "ab.", ".", "cdefg.", "h.", "i". The long one is cut: "cde" fills a row, and so does what
/// is left of it. "." and "i" have no label and are in no row.
TEST_F(Data, PacksWholeDocumentsIntoRows) {
  Program program = ofTwoMicroBatches();
  program.documentEnd = '.';
  std::unique_ptr<Samples> file =
      openSamples("text:" + write("t", "ab..cdefg.h.i"), "--data", program);
  auto rows = [&](int input) {
    std::string text;
    for (int64_t row = 0; row < file->count(); ++row)
      for (int64_t i = 0; i < 3; ++i) {
        int64_t token = 0;
        file->read(kInputs[input], row, i, 1, &token); // one at a time, as of a rank's part
        text += token == 0 ? ' ' : char(token);
      }
    return text;
  };
  //                    ab. cde fg. h._
  EXPECT_EQ(rows(0), "ab.cdefg.h..");
  EXPECT_EQ(rows(1), "b. defg. .  ");
  EXPECT_EQ(file->text(), "13 tokens of 3 documents and 2 of a single token give 4 samples of 3 "
                          "tokens, 1 of them padding");
  int64_t whole[3];
  file->read(kInputs[0], 1, 0, 3, whole);
  EXPECT_EQ(whole[0] * 65536 + whole[1] * 256 + whole[2], ('c' * 256 + 'd') * 256 + 'e');
  program.documentEnd = 7;
  std::string path = folder + "/t";
  EXPECT_EQ(
      errorOf([&] { openSamples("text:" + path, "--data", program); }),
      "--data: " + path +
          " has no token 7, which ends a document in this program (compiled with --pack 7); "
          "pack by the token that ends the documents of this file, or compile without --pack");
}

/// Each token is in exactly one row, documents in one piece, whatever their lengths. Those of one token are in none, and so
/// is the end of a document if it is all that is left behind a cut.
TEST_F(Data, PacksEveryTokenOnce) {
  std::string text;
  for (int i = 0; i < 20000; ++i)
    text += mix64(uint64_t(i)) % 60 == 0 ? '.' : char(97 + i % 20);
  TokenFile file("text:" + write("long", text), "--data", 256);
  PackedRows packed(file, "--data", "long", 64, '.');
  std::vector<int> count(text.size());
  int64_t padding = 0, cuts = 0;
  for (int64_t row = 0; row < packed.rows(); ++row) {
    int64_t before = -1;
    packed.forTokens(row, 0, 64, [&](int64_t, int64_t position) {
      if (position >= 0)
        ++count[size_t(position)];
      padding += position < 0;
      if (before >= 0 && position != before + 1 && text[size_t(before)] != '.')
        ++cuts; // a document ends that has not
      before = position;
    });
  }
  size_t begin = 0; // of the document
  for (size_t i = 0; i < text.size(); ++i) {
    bool isEnd = text[i] == '.', isAlone = isEnd && (i - begin) % 64 == 0;
    EXPECT_EQ(count[i], isAlone ? 0 : 1) << i;
    begin = isEnd ? i + 1 : begin;
  }
  EXPECT_EQ(padding, packed.padding());
  EXPECT_LT(padding, int64_t(text.size()) / 20);
  EXPECT_LE(cuts, 1); // of the file's last document
}

/// Both ranks together have the same samples as one, whose tokens spread over the vocabulary.
TEST(DrawnSamples, AreTheSameInEveryRunAndWithinBounds) {
  Program program = ofTwoMicroBatches();
  DrawnSamples drawn;
  Batches batches(drawn, "--tune", program, 0, false, 2);
  std::set<int64_t> ids, labels;
  for (int number = 0; number < 2; ++number) {
    Buffers b(program, number), again(program, number);
    batches.fill(b.rank, 0, 2);
    batches.fill(again.rank, 0, 2);
    for (int i = 0; i < 12; ++i) {
      int64_t id = b.ids[i / 6][i / 3 % 2][i % 3], label = b.labels[i / 6][i / 3 % 2][i % 3];
      EXPECT_TRUE(id >= 0 && id < 256 && label >= 0 && label < 256) << id << ' ' << label;
      EXPECT_EQ(id, again.ids[i / 6][i / 3 % 2][i % 3]);
      ids.insert(id);
      labels.insert(label);
    }
    EXPECT_EQ(b.positions[1][2], 2);
    EXPECT_EQ(b.mask[1][1][2], 1.0f);
  }
  EXPECT_GT(ids.size(), 18u);
  EXPECT_GT(labels.size(), 18u);
  EXPECT_NE(ids, labels);
}

TEST(DrawnSamples, FillEveryTypeOfInput) {
  DrawnSamples drawn;
  float numbers[64];
  uint8_t bits[64];
  int32_t unlimited[64], shifted[64];
  Shape shape = {1, 64};
  drawn.read({"x", InputRole::Data, DType::Float32, shape, shape, {}, 0}, 0, 0, 64, numbers);
  drawn.read({"m", InputRole::Data, DType::Bool, shape, shape, {}, 0}, 0, 0, 64, bits);
  drawn.read({"i", InputRole::Data, DType::Int32, shape, shape, {}, 0}, 0, 0, 64, unlimited);
  drawn.read({"s", InputRole::Shifted, DType::Int32, shape, shape, {}, 9, 300}, 0, 0, 64, shifted);
  EXPECT_EQ(std::set<float>(numbers, numbers + 64).size(), 64u);
  EXPECT_EQ(std::set<uint8_t>(bits, bits + 64), (std::set<uint8_t>{0, 1}));
  EXPECT_EQ(std::set<int32_t>(unlimited, unlimited + 64), std::set<int32_t>{0});
  EXPECT_EQ(shifted[0], 300);
  EXPECT_LT(*std::max_element(shifted + 1, shifted + 64), 9);
}

} // namespace
} // namespace partita_rt
