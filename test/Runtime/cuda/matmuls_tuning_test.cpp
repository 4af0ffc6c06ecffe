// Which algorithm of the simulated cuBLASLt is the fastest for a matmul, and the file that keeps it.

#include "matmuls_stream.h"

#include "partita_rt/cuda/kernel_times.h"

#include <cstdio>
#include <fstream>

#if !defined(PARTITA_TEST_ON_GPU) // which algorithms there are is for the simulated one to say
namespace partita_rt::cuda {
namespace {

class Tuning : public testing::Test {
protected:
  Tuning() : left(integers(128, "a")), right(integers(128, "b")), c(64) {}
  ~Tuning() override {
    for (simulated::Algorithm each : {simulated::kAligned, simulated::kSplit, simulated::kAnywhere})
      simulated::slowDown(each, 0);
    std::remove(path.c_str());
  }
  void make(Stream &stream) { makeOne(stream, left, right, c); }
  /// Where the split algorithm is the fastest.
  std::vector<Choice> tune(MatmulsStream &stream) {
    simulated::slowDown(simulated::kAligned, 3000);
    simulated::slowDown(simulated::kAnywhere, 3000);
    stream.made.beginRecording();
    make(stream);
    make(stream);
    return stream.made.tuneRecorded(stream, 3);
  }
  std::string text() const {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// The error of reading the file after `replace` has been replaced in it.
  std::string errorWith(const std::string &replace, const std::string &with) {
    std::string changed = text();
    size_t at = changed.find(replace);
    EXPECT_NE(at, std::string::npos) << changed;
    std::ofstream(path) << changed.replace(at, replace.size(), with);
    MatmulsStream other;
    return errorOf([&] { other.made.readChoices(path); });
  }
  Tensor<float> left, right, c;
  std::string path = testing::TempDir() + "partita_matmuls_" + std::to_string(getpid()) + ".json";
};

TEST_F(Tuning, TakesTheFastestAndKeepsIt) {
  MatmulsStream stream;
  std::vector<Choice> choices = tune(stream);
  ASSERT_EQ(choices.size(), 1u); // the shape, not the calls
  EXPECT_GE(choices[0].first, 3000000);
  EXPECT_LT(choices[0].nanoseconds, choices[0].first);
  EXPECT_EQ(counted(simulated::kSplit, [&] { make(stream); }), 1);
  stream.made.writeChoices(path);

  MatmulsStream other;
  EXPECT_TRUE(other.made.readChoices(path));
  EXPECT_EQ(counted(simulated::kSplit, [&] { make(other); }), 1);
  EXPECT_EQ(other.made.choicesText(), stream.made.choicesText());
  MatmulsStream untuned;
  EXPECT_FALSE(untuned.made.readChoices(path + ".none"));
  EXPECT_EQ(counted(simulated::kAligned, [&] { make(untuned); }), 1);
}

/// Slow ones take part in the round that loads kernels and in two that are timed, of five matmuls
/// each; the fastest in all rounds.
TEST_F(Tuning, SlowOnesAreLeftOutOfLaterRounds) {
  constexpr int64_t kMatmuls = 5, kRounds = 6;
  MatmulsStream stream;
  simulated::slowDown(simulated::kAligned, 10000);
  simulated::slowDown(simulated::kAnywhere, 10000);
  stream.made.beginRecording();
  make(stream);
  ASSERT_EQ(cudaStreamSynchronize(stream.handle), cudaSuccess);
  int64_t fast = 0, slow = 0;
  slow = counted(simulated::kAnywhere, [&] {
    fast = counted(simulated::kSplit, [&] { stream.made.tuneRecorded(stream, kRounds); });
  });
  EXPECT_EQ(fast, (1 + kRounds) * kMatmuls);
  EXPECT_EQ(slow, (1 + 2) * kMatmuls);
}

/// Sums of operands exist with the slow ones alone.
TEST_F(Tuning, ApartWhereThatIsFaster) {
  const int64_t m = 16, n = 8, k = 24;
  Floats a = integers(k * m, "a"), b = integers(k * n, "b"), expected(size_t(m * n));
  Tensor<float> x(a), dy(b), dw(m * n), sums(n);
  auto make = [&](Stream &stream) {
    gemmBiasGrad(stream, Cotangent::B, m, n, k, x.in(), m, dy.in(), n, dw.data(), n, sums.data());
  };
  MatmulsStream stream;
  simulated::slowDown(simulated::kAligned, 3000);
  simulated::slowDown(simulated::kSplit, 3000);
  stream.made.beginRecording();
  make(stream);
  std::vector<Choice> choices = stream.made.tuneRecorded(stream, 3);
  ASSERT_EQ(choices.size(), 2u); // the matmul alone, too
  EXPECT_FALSE(choices[0].apart);
  EXPECT_TRUE(choices[1].apart);
  EXPECT_GE(choices[1].first, 3000000);
  EXPECT_LT(choices[1].nanoseconds, 3000000);
  EXPECT_GE(choices[1].oneKernel, 3000000); // of either kind, what the fastest takes
  EXPECT_EQ(choices[1].kernelsApart, choices[1].nanoseconds);
  stream.made.writeChoices(path);
  MatmulsStream other;
  EXPECT_TRUE(other.made.readChoices(path));
  EXPECT_EQ(other.made.choicesText(), stream.made.choicesText());
  for (MatmulsStream *each : {&stream, &other})
    EXPECT_EQ(counted(simulated::kAnywhere, [&] { make(*each); }), 1);
  partita_rt::gemm(Trans::Yes, Trans::No, m, n, k, 1.0f, a.data(), m, b.data(), n, 0.0f,
                   expected.data(), n);
  EXPECT_BITS(dw, expected);
}

/// How many kernels and matmuls a stream begins.
struct Launches : KernelTimes {
  int launches = 0;
  void begin(cudaStream_t, const char *, const void *, double) override { ++launches; }
  void end(cudaStream_t) override {}
};

/// A long sum into few tiles: apart until tuning has found one kernel to be faster.
TEST_F(Tuning, LongSumsAreApartAtFirst) {
  const int64_t m = 16, n = 8, k = 4096;
  Tensor<float> x(integers(k * m, "a")), dy(integers(k * n, "b")), dw(m * n), sums(n), again(m * n);
  auto make = [&](Stream &stream, Tensor<float> &result) {
    gemmBiasGrad(stream, Cotangent::B, m, n, k, x.in(), m, dy.in(), n, result.data(), n,
                 sums.data());
  };
  MatmulsStream stream;
  auto launches = [&] {
    Launches counted;
    stream.times = &counted;
    make(stream, dw);
    stream.times = nullptr;
    return counted.launches;
  };
  EXPECT_GT(launches(), 1);
  Floats wanted = sums.floats();
  stream.made.beginRecording();
  make(stream, dw);
  std::vector<Choice> choices = stream.made.tuneRecorded(stream, 2);
  ASSERT_EQ(choices.size(), 2u);
  EXPECT_GT(choices[1].oneKernel, 0);
  EXPECT_GT(choices[1].kernelsApart, 0);
  EXPECT_EQ(launches() == 1, !choices[1].apart);
  make(stream, again);
  EXPECT_BITS(again, dw.floats());
  EXPECT_BITS(sums, wanted);
}

TEST_F(Tuning, DamagedFilesAreRefusedAndReplaced) {
  MatmulsStream stream;
  tune(stream);
  stream.made.writeChoices(path);
  EXPECT_NE(errorWith("\"algorithm\": \"", "\"algorithm\": \"0").find("64 bytes"),
            std::string::npos);
  stream.made.writeChoices(path);
  EXPECT_NE(errorWith("\"shape\"", "\"form\"").find("'shape' is missing"), std::string::npos);
  EXPECT_NE(errorWith("[", "(").find(path), std::string::npos);
  stream.made.writeChoices(path);
  MatmulsStream other;
  EXPECT_TRUE(other.made.readChoices(path));
  EXPECT_NE(errorWith("\"tunings\"", "\"others\"").find("'tunings' is missing"), std::string::npos);
}

/// Of each device and version the file has the choices of its last tuning.
TEST_F(Tuning, AFileKeepsTheChoicesOfEachDeviceAndVersion) {
  MatmulsStream stream;
  tune(stream);
  stream.made.writeChoices(path);
  std::string ours = text();
  for (auto [from, to] :
       {std::pair{"130000", "120000"}, {"\"device\": \"", "\"device\": \"another "}}) {
    EXPECT_EQ(errorWith(from, to), "");
    MatmulsStream untuned;
    EXPECT_FALSE(untuned.made.readChoices(path));
    EXPECT_NE(untuned.made.whyUntuned().find(" with cuBLASLt 1"), std::string::npos);
    EXPECT_EQ(untuned.made.whyUntuned().find(path + " is for "), 0u);
    EXPECT_EQ(counted(simulated::kAligned, [&] { make(untuned); }), 1);
    stream.made.writeChoices(path);
  }
  std::vector<DeviceChoices> all = parseTunings(text(), path);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(writeTunings({all[0]}), ours); // the last tuning comes first
  EXPECT_EQ(all[1].device, "another " + all[0].device);
  EXPECT_EQ(all[2].version, 120000);
  EXPECT_EQ(writeTunings(all), text());
  MatmulsStream tuned;
  EXPECT_TRUE(tuned.made.readChoices(path));
  EXPECT_EQ(tuned.made.whyUntuned(), "");
  EXPECT_EQ(counted(simulated::kSplit, [&] { make(tuned); }), 1);
}

/// What earlier programs wrote: one device and version, without a list.
TEST_F(Tuning, FilesOfOneDeviceAreRead) {
  MatmulsStream stream;
  tune(stream);
  std::string one = stream.made.choicesText();
  one.replace(0, one.find("{\"device\""), "");
  one.erase(one.rfind("\n]}"));
  std::ofstream(path) << one;
  MatmulsStream other;
  EXPECT_TRUE(other.made.readChoices(path));
  EXPECT_EQ(other.made.choicesText(), stream.made.choicesText());
}

TEST_F(Tuning, AnAlgorithmForAnotherShapeIsNamed) {
  MatmulsStream stream;
  tune(stream);
  std::string text = stream.made.choicesText();
  size_t at = text.find("[8, 16]");
  ASSERT_NE(at, std::string::npos);
  MatmulsStream other;
  other.made.useChoices(text.replace(at, 7, "[4, 16]"), "rank 0's matmuls");
  std::string message = errorOf([&] {
    gemm(other, Trans::No, Trans::No, 4, 8, 16, 1.0f, left.in(), 16, right.in(), 8, 0.0f, c.data(),
         8);
  });
  EXPECT_EQ(message, ""); // C's rows are in the text too: that shape is untuned
  size_t result = text.find("[8, 8] by 8, aligned");
  ASSERT_NE(result, std::string::npos);
  other.made.useChoices(text.replace(result, 6, "[4, 8]"), "rank 0's matmuls");
  message = errorOf([&] {
    gemm(other, Trans::No, Trans::No, 4, 8, 16, 1.0f, left.in(), 16, right.in(), 8, 0.0f, c.data(),
         8);
  });
  EXPECT_EQ(message.find("rank 0's matmuls: the algorithm of 'matmul float32[4, 16] by 16 * "), 0u)
      << message;
  EXPECT_NE(message.find("' is refused by cuBLASLt: "), std::string::npos) << message;
}

TEST_F(Tuning, AFolderIsNoFile) {
  MatmulsStream stream;
  EXPECT_EQ(errorOf([&] { stream.made.readChoices(testing::TempDir()); }),
            testing::TempDir() + ": is a folder; the choices for matmuls are a file");
}

} // namespace
} // namespace partita_rt::cuda
#endif
