// Replicas: their hash finds every flipped bit; who has them agrees with the elements that ranks
// hold; a difference names tensor, rank and element.

#include "checkpoints.h"

#include "common/mesh/mesh.h"
#include "common/start_marks.h"
#include "partita_rt/exit_status.h"
#include "partita_rt/replica_hash.h"

#include <gtest/gtest.h>
#include <random>

namespace partita_rt {
namespace {

TEST(ReplicaHash, FindsEveryFlippedBitAndPair) {
  std::vector<unsigned char> bytes(1 + 37);
  std::mt19937 draw(1);
  for (unsigned char &byte : bytes)
    byte = static_cast<unsigned char>(draw());
  int64_t size = 37; // at an odd address, with a last word of one byte
  unsigned char *data = bytes.data() + 1;
  auto flip = [&](int64_t bit) { data[bit / 8] ^= static_cast<unsigned char>(1 << bit % 8); };
  uint64_t before = replicaHash(data, size, 0);
  for (int64_t bit = 0; bit < 8 * size; ++bit) {
    flip(bit);
    EXPECT_NE(replicaHash(data, size, 0), before) << bit;
    for (int64_t other = 0; other < bit; ++other) {
      flip(other);
      EXPECT_NE(replicaHash(data, size, 0), before) << bit << " " << other;
      flip(other);
    }
    flip(bit);
  }
  EXPECT_EQ(replicaHash(data, size, 0), before);
}

TEST(ReplicaHash, FindsSwappedWordsAndAddsUpOverRuns) {
  std::vector<uint32_t> words(100'003);
  std::mt19937 draw(2);
  for (uint32_t &word : words)
    word = uint32_t(draw());
  int64_t bytes = int64_t(words.size()) * kHashWord;
  uint64_t whole = replicaHash(words.data(), bytes, 5), sum = 0;
  for (size_t i = 0; i < words.size(); ++i)
    sum += uint64_t(words[i]) * hashFactor(5 + i);
  EXPECT_EQ(whole, sum);
  EXPECT_EQ(replicaHash(words.data(), 4000, 5) +
                replicaHash(words.data() + 1000, bytes - 4000, 1005),
            whole);
  std::swap(words[17], words[70'000]);
  EXPECT_NE(replicaHash(words.data(), bytes, 5), whole);
}

TEST(ReplicaSets, AreRanksThatHoldTheSameElements) {
  for (const Plan &plan : plans()) {
    PlanTables tables(plan);
    const Program &program = tables.program;
    SCOPED_TRACE(meshText(program));
    std::vector<Rank> ranks(size_t(rankCount(program)));
    for (int r = 0; r < int(ranks.size()); ++r)
      setCoordinates(ranks[size_t(r)], program, r);
    std::vector<TensorShard> shards = persistentShards(ranks[0]);
    std::vector<const ReplicaSet *> setOf(shards.size());
    std::vector<ReplicaSet> sets = replicaSets(program, shards);
    for (const ReplicaSet &set : sets)
      for (size_t tensor : set.tensors)
        setOf[tensor] = &set;
    for (size_t i = 0; i < shards.size(); ++i) {
      auto elements = [&](const Rank &rank) {
        std::vector<int64_t> own;
        if (shards[i].stages.contains(rank.stageNumber))
          forRuns(program, rank.coordinates, shards[i].global, shards[i].splits,
                  [&](int64_t global, int64_t, int64_t n) {
                    for (int64_t k = 0; k < n; ++k)
                      own.push_back(global + k);
                  });
        return own;
      };
      bool any = false;
      for (const Rank &a : ranks)
        for (const Rank &b : ranks) {
          if (a.rank >= b.rank || elements(a).empty())
            continue;
          bool same = elements(a) == elements(b);
          any |= same;
          if (setOf[i]) {
            EXPECT_EQ(same, setOf[i]->first[size_t(a.rank)] == setOf[i]->first[size_t(b.rank)])
                << shards[i].name << " on ranks " << a.rank << " and " << b.rank;
          }
        }
      EXPECT_EQ(any, setOf[i] != nullptr) << shards[i].name;
    }
  }
}

TEST(ReplicaDifferences, NameThoseThatAreNotInTheMajority) {
  auto text = [](const Plan &plan, const std::vector<int> &first, std::vector<uint64_t> hashes) {
    PlanTables tables(plan);
    for (size_t r = 0; r < first.size(); ++r) // tensor 0 is the same everywhere
      hashes.insert(hashes.begin() + int64_t(2 * r), 1);
    std::vector<ReplicaDifference> differences =
        findDifferences(tables.program, {{first, {0, 1}}}, hashes, 2);
    return differences.empty() ? "" : differenceText(differences, {"a", "b"});
  };
  std::vector<Splits> full = repeated({});
  Plan four{{{"dp", 4}}, full, full}, five{{{"dp", 5}}, full, full};
  Plan square{{{"dp", 2}, {"tp", 2}}, full, full};
  EXPECT_EQ(text(four, {0, 0, 0, 0}, {7, 7, 7, 7}), "");
  EXPECT_EQ(text(four, {0, 0, 0, 0}, {7, 7, 9, 7}),
            "the replicas of b differ: rank 2 has other values than ranks 0, 1 and 3");
  EXPECT_EQ(text(five, {0, 0, 0, 0, 0}, {7, 8, 9, 7, 7}),
            "the replicas of b differ: ranks 1 and 2 have other values than ranks 0, 3 and 4");
  EXPECT_EQ(text(square, {0, 1, 0, 1}, {7, 9, 7, 8}),
            "the replicas of b differ: ranks 1 and 3 have different values, and which are right is "
            "unknown: no value has a majority");
  EXPECT_EQ(text(four, {0, 0, 0, 0}, {7, 7, 9, 9}),
            "the replicas of b differ: ranks 0, 1, 2 and 3 have different values, and which are "
            "right is unknown: no value has a majority");
}

TEST(ReplicaDifferences, AreThoseOfTheAxisWithFewerTensors) {
  std::vector<Splits> full = repeated({});
  auto text = [&](std::vector<Axis> mesh, const std::vector<uint64_t> &hashes) {
    Plan plan{std::move(mesh), full, full};
    PlanTables tables(plan);
    std::vector<ReplicaSet> sets = {{std::vector<int>(hashes.size() / 2), {0, 1}}};
    return differenceText(findDifferences(tables.program, sets, hashes, 2), {"a", "b"});
  };
  // A bit of b flips on rank 3 (dp 1, tp 1), and everything differs along tp.
  EXPECT_EQ(text({{"dp", 3}, {"tp", 2}}, {1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3, 4}),
            "the replicas of b differ: rank 3 has other values than ranks 1 and 5");
  // Nothing has followed from it: all four are a majority, of two along an axis neither is.
  EXPECT_EQ(text({{"dp", 2}, {"tp", 2}}, {1, 2, 1, 2, 1, 2, 1, 5}),
            "the replicas of b differ: rank 3 has other values than ranks 0, 1 and 2");
}

class Replicas : public Checkpoints {
protected:
  /// Runs a plan's ranks, which compare after a bit of one of them is flipped: of a tensor that the
  /// rank holds, by its number, or none. Returns the error.
  std::string check(const Plan &plan, int flipped, size_t tensor, int64_t bit) {
    PlanTables tables(plan);
    auto flipAndCompare = [&](Rank &rank, ReplicaCheck &replicas) {
      if (rank.rank == flipped)
        static_cast<char *>(persistentShards(rank)[tensor].data)[bit / 8] ^=
            static_cast<char>(1 << bit % 8);
      for (int64_t step = 1; step <= 4; ++step)
        replicas.afterStep(step, {});
    };
    return runCompared(tables, 3, flipAndCompare, &printed);
  }
  std::string printed; ///< by all runs
};

/// A bit flips, the gradients of the next step are NaN, and so are all parameters after its update.
TEST_F(Replicas, AreComparedAsTheyWereBeforeAnUpdateByNaN) {
  std::vector<Splits> full = repeated({});
  Plan plan{{{"dp", 3}}, full, full};
  PlanTables tables(plan);
  RunOptions options;
  options.checkReplicas = 100;
  options.steps = 200;
  auto run = [&](int flipped, const std::vector<float> &gradient) {
    return World(tables.program).run(tables.program, &options, [&](Rank &rank) {
      fill(rank, 1);
      ReplicaCheck replicas(rank, options);
      auto *table = static_cast<float *>(persistentShards(rank)[0].data);
      if (rank.rank == flipped)
        table[7] *= 2;
      for (int64_t step = 1; step <= 2; ++step) {
        GradientSink *sink = replicas.watch(step);
        for (int parameter = 0; parameter < 4; ++parameter) {
          sink->add(rank, parameter, gradient.data(), DType::Float32, {});
          auto *values = static_cast<float *>(persistentShards(rank)[size_t(parameter)].data);
          std::fill_n(values, kShapes[parameter].elements(), NAN);
        }
        replicas.beforeFailure(step);
      }
      fail("the loss is nan");
    });
  };
  std::vector<float> finite(96, 1.0f), infinite(96, INFINITY);
  EXPECT_NE(run(-1, infinite).find("the loss is nan"), std::string::npos);
  EXPECT_NE(run(1, finite).find("the loss is nan"), std::string::npos);
  std::string error = run(1, infinite);
  EXPECT_EQ(error.find("rank 1: the loss of step 1 is not finite, and before the update of step 1 "
                       "the replicas of table differ: rank 1 has other values than ranks 0 and 2; "
                       "the memory or arithmetic of rank 1"),
            0u)
      << error;
}

TEST_F(Replicas, AreEqualUnderEveryPlan) {
  for (const Plan &plan : plans())
    EXPECT_EQ(check(plan, -1, 0, 0), "");
  for (const char *line :
       {"none: the program has one rank", "9 of 9 parameters and states are on several ranks",
        "1 of 9 parameters and states are on several ranks"}) // the scalar
    EXPECT_NE(printed.find(line), std::string::npos) << line << " is not in\n" << printed;
}

/// A restart may help, as it may after a step.
TEST_F(Replicas, ThatDifferFromTheBeginningAreNoRefusal) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::vector<Splits> full = repeated({});
  Plan plan{{{"dp", 3}}, full, full};
  auto run = [&] {
    PlanTables tables(plan);
    RunOptions options;
    options.checkReplicas = 3;
    std::string error = World(tables.program).run(tables.program, &options, [&](Rank &rank) {
      fill(rank, rank.rank == 1 ? 2 : 1);
      ReplicaCheck(rank, options).begin(0);
    });
    std::fprintf(stderr, "%s\n", error.c_str());
    std::exit(failureStatus());
  };
  EXPECT_EXIT(run(), testing::ExitedWithCode(kFailedWhileTraining),
              "rank 1: before step 1 the replicas of table, .* differ: rank 1 has other values");
}

TEST_F(Replicas, DifferByOneBit) {
  std::vector<Splits> full = repeated({});
  Plan four{{{"dp", 4}}, full, full};
  auto expectStart = [](const std::string &error, const std::string &start) {
    EXPECT_EQ(error.substr(0, start.size()), start);
  };
  expectStart(
      check(four, 2, 0, 32 * 5 + 23),
      "rank 2: after step 3 the replicas of table differ: rank 2 has other values than ranks "
      "0, 1 and 3, first in element 5: 0x40208000 on rank 2, 0x40a08000 on rank 0; all were "
      "equal before step 1; the memory or arithmetic of rank 2 (host ");
  expectStart(
      check(four, 0, 8, 3),
      "rank 0: after step 3 the replicas of count differ: rank 0 has other values than ranks "
      "1, 2 and 3, first in element 0: 0x0000000000000009 on rank 0, 0x0000000000000001 on "
      "rank 1; all were equal before step 1; the memory or arithmetic of rank 0 (host ");
  Plan two{{{"dp", 2}}, full, full};
  std::string error = check(two, 1, 2, 0);
  EXPECT_NE(error.find("ranks 0 and 1 have different values, and which are right is unknown"),
            std::string::npos)
      << error;
  // Replicas of shards, on the stages that hold them.
  for (const Plan &plan : plans()) {
    PlanTables tables(plan);
    for (int r = 0; r < rankCount(tables.program); ++r) {
      Rank rank;
      setCoordinates(rank, tables.program, r);
      std::vector<TensorShard> shards = persistentShards(rank);
      for (const ReplicaSet &set : replicaSets(tables.program, shards)) {
        if (set.first[size_t(r)] < 0 ||
            std::count(set.first.begin(), set.first.end(), set.first[size_t(r)]) < 2)
          continue;
        size_t tensor = set.tensors.back();
        Slices slices = slicesOf(tables.program, rank.coordinates, shards[tensor].global,
                                 shards[tensor].splits);
        if (slices.elements() == 0)
          continue;
        std::string text = check(plan, r, tensor, 1);
        EXPECT_NE(text.find(std::string("the replicas of ") + shards[tensor].name + " differ: "),
                  std::string::npos)
            << meshText(tables.program) << " rank " << r << ": " << text;
      }
    }
  }
}

} // namespace
} // namespace partita_rt
