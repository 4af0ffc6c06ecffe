// Initial values, safetensors and other files, checksums.

#include "reference.h"
#include "temporary_folder.h"

#include "common/json.h"
#include "common/mesh/launch.h"
#include "common/mesh/mesh.h"
#include "common/options/command_line.h"
#include "common/report/metrics.h"
#include "common/run/interruption.h"
#include "common/temporary_file.h"
#include "common/tensors/safetensors.h"
#include "partita_rt/checksum.h"
#include "partita_rt/fingerprint.h"
#include "partita_rt/printable.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

static int failingFolders = 0; ///< the error of a sync of a folder; 0: none

/// In place of the library's.
extern "C" int fsync(int descriptor) {
  struct stat status;
  if (failingFolders != 0 && fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    errno = failingFolders;
    return -1;
  }
  return int(syscall(SYS_fsync, descriptor));
}

namespace partita_rt {
namespace {

class Sync : public InTemporaryFolder {
protected:
  void TearDown() override {
    failingFolders = 0;
    InTemporaryFolder::TearDown();
  }
};

TEST_F(Sync, OfAFolderMayFail) {
  for (auto [error, text] : {std::pair(0, ""), {EINVAL, ""}, {EIO, "Input/output error"}}) {
    failingFolders = error;
    std::string thrown;
    try {
      TemporaryFile file(folder + "/file");
      file.write("text", 4);
      file.commit();
    } catch (const Error &problem) {
      thrown = problem.what();
    }
    EXPECT_EQ(thrown, *text ? "cannot write the folder " + folder + "/: " + text : "");
  }
}

TEST(Init, IsWhatTheDocumentationSays) {
  // tools/python/partita_init.py gives the same numbers (init.test).
  EXPECT_EQ(mix64(0), 0xE220A8397B1DCDAFu);
  EXPECT_EQ(randomKey(0, ""), mix64(mix64(0) ^ 0xCBF29CE484222325u));
  double sum = 0, squares = 0, fourth = 0;
  int64_t n = 200000;
  uint64_t key = randomKey(7, "wte");
  for (int64_t i = 0; i < n; ++i) {
    double x = standardNormal(key, uint64_t(i));
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / double(n), 0.0, 0.01);
  EXPECT_NEAR(squares / double(n), 1.0, 0.01);
  EXPECT_NEAR(fourth / double(n), 2.9, 0.06); // 3 - 6/5/12
}

TEST_F(Files, SafetensorsRoundTrip) {
  std::string name = "a \"quoted\"\\\n\x01 name \xc3\xa9", path = folder + "/x.safetensors";
  Floats values = {1.5f, -2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
  int64_t scalar = 42;
  {
    SafetensorsWriter writer(path, {{name, DType::Float32, {2, 3}}, {"n", DType::Int64, {}}},
                             {{"step", "7"}, {"k\"", "v\n"}});
    writer.write(values.data(), 24);
    writer.write(&scalar, 8);
    writer.commit();
  }
  SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("k\""), "v\n");
  const StoredTensor &tensor = file.get(name, {2, 3});
  EXPECT_EQ(std::memcmp(tensor.data, values.data(), 24), 0);
  EXPECT_EQ(std::memcmp(file.get("n", {}).data, &scalar, 8), 0);
  EXPECT_EQ(filesInFolder(), 1); // no temporary file
  EXPECT_NE(errorOf([&] { file.get("n", {2}); }).find("tensor 'n' is scalar, the program needs 2"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { file.get("m", {}); }).find("has no tensor 'm'"), std::string::npos);
}

TEST_F(Files, AnUnfinishedFileLeavesTheOldOne) {
  std::string path = write("x", "old");
  {
    SafetensorsWriter writer(path, {{"a", DType::Float32, {1}}}, {});
  }
  std::string content;
  std::ifstream(path) >> content;
  EXPECT_EQ(content, "old");
  EXPECT_EQ(filesInFolder(), 1); // no temporary file
}

/// Ctrl-C in the middle of a checkpoint.
TEST_F(Files, SignalsRemoveWhatIsNotCommitted) {
  std::string path = folder + "/half.safetensors";
  pid_t child = fork();
  if (child == 0) {
    handleSignals("files", false);
    SafetensorsWriter writer(path, {{"a", DType::Float32, {1}}}, {});
    raise(SIGTERM);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
  EXPECT_EQ(filesInFolder(), 0);
}

/// The next writer of a file removes what a killed process has left of it, but neither a live
/// writer's file nor one that may be another machine's.
TEST_F(Files, TemporaryFilesOfTheDeadGo) {
  std::string path = folder + "/log.safetensors";
  std::vector<SafetensorsWriter::Entry> entries{{"a", DType::Float32, {1}}};
  pid_t child = fork();
  if (child == 0) {
    SafetensorsWriter writer(path, entries, {});
    raise(SIGKILL);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_EQ(filesInFolder(), 1);
  SafetensorsWriter other(folder + "/log.safetensors.index", entries, {});
  EXPECT_EQ(filesInFolder(), 2);
  {
    SafetensorsWriter living(path, entries, {});
    EXPECT_EQ(filesInFolder(), 2);
    write("log.safetensors.0123456789abcdef-0a1b2c.tmp", "another machine's");
    write("log.safetensors.0a1b2c.tmp", "nobody's");
    SafetensorsWriter next(path, entries, {});
    EXPECT_EQ(filesInFolder(), 5);
  }
  EXPECT_EQ(filesInFolder(), 3);
}

/// A log that starts anew has no temporary file of its own.
TEST_F(Files, ALogRemovesWhatAnotherRunHasLeftOfIt) {
  std::string path = folder + "/log.csv";
  pid_t child = fork();
  if (child == 0) {
    TemporaryFile file(path);
    raise(SIGKILL);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(filesInFolder(), 1);
  StepLog log(path, 0, {});
  EXPECT_EQ(filesInFolder(), 1);
  EXPECT_TRUE(std::filesystem::exists(path));
}

/// A file that must not grow holds back what is added, and gets it when it may: nothing is missing, and
/// nothing twice.
TEST_F(Files, GrowingFilesHoldBack) {
  std::string path = folder + "/log.csv";
  std::string lines[] = {std::string(600, 'a') + "\n", std::string(600, 'b') + "\n", "c\n", "d\n"};
  rlimit before, small;
  getrlimit(RLIMIT_FSIZE, &before);
  small = before;
  small.rlim_cur = 1000; // for what it says too
  auto action = std::signal(SIGXFSZ, SIG_IGN);
  testing::internal::CaptureStderr();
  {
    GrowingFile file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666), "--log: log.csv");
    setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 3; ++i)
      file.add(lines[i]);
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, action);
    EXPECT_EQ(std::filesystem::file_size(path), 1000u);
    file.add(lines[3]);
  }
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      "warning: --log: log.csv: cannot be written: File too large; training goes on, and what "
      "is missing is written when it can be\n"
      "--log: log.csv: is written again, and nothing is missing\n");
  std::ifstream written(path);
  std::string text(std::istreambuf_iterator<char>(written), {});
  EXPECT_EQ(text, lines[0] + lines[1] + lines[2] + lines[3]);
}

/// Two writers of one file do not interfere: the file is one's or the other's, complete.
TEST_F(Files, TemporaryFilesHaveNamesOfTheirOwn) {
  std::string path = folder + "/both.safetensors";
  float one = 1, two = 2;
  SafetensorsWriter first(path, {{"a", DType::Float32, {1}}}, {});
  SafetensorsWriter second(path, {{"a", DType::Float32, {1}}}, {});
  first.write(&one, 4);
  second.write(&two, 4);
  first.commit();
  EXPECT_EQ(*reinterpret_cast<const float *>(SafetensorsFile(path).find("a")->data), 1);
  second.commit();
  EXPECT_EQ(*reinterpret_cast<const float *>(SafetensorsFile(path).find("a")->data), 2);
}

TEST_F(Files, SafetensorsRefusesWhatDoesNotFit) {
  auto error = [&](const std::string &header, const std::string &data = "12345678") {
    uint64_t length = header.size();
    std::string bytes(reinterpret_cast<const char *>(&length), 8);
    std::string path = write("bad.safetensors", bytes + header + data);
    return errorOf([&] { SafetensorsFile file(path); });
  };
  auto entry = [](const std::string &rest) { return "{\"a\":{" + rest + "}}"; };
  EXPECT_EQ(error(entry("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]")), "");
  EXPECT_NE(errorOf([&] {
              SafetensorsFile file(write("s", "1234"));
            }).find("at least 8 bytes, the file has 4"),
            std::string::npos);
  EXPECT_NE(errorOf([&] {
              SafetensorsFile file(write("s", std::string(8, '\xff')));
            }).find("does not fit into a file of 8 bytes"),
            std::string::npos);
  EXPECT_NE(errorOf([&] {
              SafetensorsFile file(write("s", "root:x:0:0:root:/root:/bin/bash"));
            }).find("is not a safetensors file, or its beginning is damaged"),
            std::string::npos);
  for (const char *header :
       {"", "{", "[]", "{\"a\":1}", "{\"a\":{}}", "{\"a\" {}}", "{} x", "\"\\ud800\"",
        "{\"a\":{},\"a\":{}}", "{\"a\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}",
        "{\"a\":{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999],\"data_offsets\":[0,8]}}",
        "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}"})
    EXPECT_NE(error(header), "") << header;
  EXPECT_NE(error(std::string(300, '[')).find("nesting"), std::string::npos);
  // The format requires that all data belong to some tensor.
  auto words = [&](const char *first, const char *second, int bytes) {
    std::string one = std::string("{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[");
    return error("{\"a\":" + one + first + "]},\"b\":" + one + second + "]}}",
                 std::string(size_t(bytes), 'x'));
  };
  EXPECT_EQ(words("4,8", "0,4", 8), "");
  EXPECT_NE(words("0,4", "8,12", 12).find("header: bytes 4 .. 8 of the data belong to no tensor"),
            std::string::npos);
  EXPECT_NE(words("4,8", "8,12", 12).find("header: bytes 0 .. 4 of the data belong to no tensor"),
            std::string::npos);
  EXPECT_NE(words("0,4", "4,8", 9)
                .find("header: its tensors have 8 bytes, 9 follow the header: "
                      "the file has 1 byte too many"),
            std::string::npos);
}

/// The header's own key is not a tensor's name.
TEST_F(Files, ATensorMayBeCalledMetadata) {
  const std::vector<std::string> names = {"__metadata__", "__metadata__.tensor",
                                          "__metadata__.tensor.tensor", "__metadata__.tensors"};
  std::string path = folder + "/x.safetensors";
  {
    std::vector<SafetensorsWriter::Entry> entries;
    for (const std::string &name : names)
      entries.push_back({name, DType::Float32, {}});
    SafetensorsWriter writer(path, entries, {{"step", "7"}});
    for (size_t i = 0; i < names.size(); ++i) {
      float value = float(i);
      writer.write(&value, 4);
    }
    writer.commit();
  }
  SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("step"), "7");
  ASSERT_EQ(file.tensors().size(), names.size());
  for (size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(*reinterpret_cast<const float *>(file.get(names[i], {}).data), float(i));
}

TEST(Printable, EscapesWhatIsNoCharacter) {
  EXPECT_EQ(printable("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 'b'"),
            "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 'b'");
  EXPECT_EQ(printable(std::string("\0\n\x1b[31m\x7f", 8)), "\\x00\\x0A\\x1B[31m\\x7F");
  // Half a character, an overlong encoding, a surrogate, two-byte control characters.
  EXPECT_EQ(printable("\xc3"), "\\xC3");
  EXPECT_EQ(printable("\xc0\xaf"), "\\xC0\\xAF");
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xED\\xA0\\x80");
  EXPECT_EQ(printable("\xc2\x9b"
                      "m"),
            "\\xC2\\x9Bm");
  EXPECT_EQ(printable("\xff\xfe"), "\\xFF\\xFE");
}

TEST(Checksum, IsCrc32c) {
  auto of = [](const std::string &text) {
    return crc32c(reinterpret_cast<const unsigned char *>(text.data()), int64_t(text.size()));
  };
  EXPECT_EQ(of("123456789"), 0xE3069283u);           // the check value in the catalogue of CRCs
  EXPECT_EQ(of(std::string(32, '\0')), 0x8A9136AAu); // RFC 3720, B.4
  EXPECT_EQ(of(std::string(32, '\xff')), 0x62A8AB43u);
  std::string text = "any text, of which a part comes first";
  for (size_t i = 0; i <= text.size(); ++i)
    EXPECT_EQ(crc32c(reinterpret_cast<const unsigned char *>(text.data()) + i,
                     int64_t(text.size() - i), of(text.substr(0, i))),
              of(text));
}

/// A reader of a part of a tensor checks that part's blocks, not the others.
TEST_F(Files, BlocksAreCheckedByWhoReadsThem) {
  std::string path = folder + "/x.safetensors";
  Floats values(size_t(kChecksumBlock / 2 + 1), 1.5f); // two blocks and four bytes
  {
    SafetensorsWriter writer(
        path, {{"b", DType::Float32, {}}, {"a", DType::Float32, {int64_t(values.size())}}}, {});
    writer.write(values.data(), 4);
    for (size_t at = 0, n = 777; at < values.size(); at += n) // as it comes
      writer.write(values.data() + at, int64_t(4 * std::min(n, values.size() - at)));
    writer.commit();
  }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-8, std::ios::end); // the last element of the second block
  file.put('x');
  file.close();
  SafetensorsFile damaged(path);
  const StoredTensor &a = *damaged.find("a");
  damaged.find("b")->check("b", 0, 4);
  a.check("a", 0, kChecksumBlock);
  a.check("a", 2 * kChecksumBlock, 2 * kChecksumBlock + 4);
  std::string error = errorOf([&] { a.check("a", kChecksumBlock - 4, kChecksumBlock + 4); });
  EXPECT_NE(error.find("tensor 'a': its bytes 65536 .. 131072 have CRC-32C "), std::string::npos)
      << error;
}

TEST(Convert, EveryFloatType) {
  auto one = [](auto bits, DType dtype) {
    float out;
    convertToFloat(&out, reinterpret_cast<const unsigned char *>(&bits), dtype, 1);
    return out;
  };
  EXPECT_EQ(one(uint16_t(0x3C00), DType::Float16), 1.0f);
  EXPECT_EQ(one(uint16_t(0xC000), DType::Float16), -2.0f);
  EXPECT_EQ(one(uint16_t(0x0001), DType::Float16), 0x1p-24f);
  EXPECT_EQ(one(uint16_t(0x7BFF), DType::Float16), 65504.0f);
  EXPECT_EQ(one(uint16_t(0x7C00), DType::Float16), INFINITY);
  EXPECT_TRUE(std::isnan(one(uint16_t(0x7E00), DType::Float16)));
  EXPECT_EQ(one(uint16_t(0xBF80), DType::BFloat16), -1.0f);
  EXPECT_EQ(one(0.1, DType::Float64), 0.1f);
  EXPECT_NE(errorOf([&] { one(int64_t(1), DType::Int64); }), "");
}

TEST(Fingerprint, SeesEachByteOfASmallFile) {
  for (int64_t size : {0, 1, 7, 8, 9, 100}) {
    std::vector<unsigned char> bytes(size_t(size), 42);
    std::set<uint64_t> seen = {fingerprint(bytes.data(), size, 100)};
    for (unsigned char &byte : bytes) {
      byte ^= 1;
      EXPECT_TRUE(seen.insert(fingerprint(bytes.data(), size, 100)).second) << size << " bytes";
      byte ^= 1;
    }
  }
}

TEST(Fingerprint, SamplesALargeFileAndReadsNothingBehindIt) {
  constexpr int64_t size = 100003, most = 512;
  std::vector<unsigned char> bytes(size);
  uint64_t before = fingerprint(bytes.data(), size, most);
  int64_t seen = 0, last = -1, widest = 0;
  for (int64_t i = 0; i < size; ++i) {
    bytes[size_t(i)] = 1;
    if (fingerprint(bytes.data(), size, most) != before) {
      ++seen;
      widest = std::max(widest, i - last);
      last = i;
    }
    bytes[size_t(i)] = 0;
  }
  EXPECT_EQ(seen, most);
  EXPECT_EQ(last, size - 1);
  EXPECT_LT(widest, 2 * size / 64);
  EXPECT_NE(fingerprint(bytes.data(), size - 1, most), before);
}

} // namespace
} // namespace partita_rt
