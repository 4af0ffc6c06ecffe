// A test fixture that saves checkpoints as a run does.

#ifndef PARTITA_RT_TESTS_SAVERS_H
#define PARTITA_RT_TESTS_SAVERS_H

#include "checkpoints.h"

#include "common/checkpoint/folder.h"
#include "common/checkpoint/saver.h"
#include "common/mesh/mesh.h"

#include <algorithm>
#include <atomic>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace partita_rt {

inline std::atomic<int> copyPause{
    0}; ///< milliseconds, before the thread that copies copies a chunk

class Saver : public Checkpoints {
protected:
  using From = CheckpointSaver::From;
  std::string saveFolder() const { return folder + "/run"; }
  bool announcesChanges = false, preparesCopy = false, changesMeanwhile = true;

  /// The thread that copies sleeps over each chunk, so that the rank copies the others.
  struct SlowCopy {
    explicit SlowCopy(int milliseconds) { copyPause = milliseconds; }
    ~SlowCopy() { copyPause = 0; }
  };

  /// Saves steps under a plan as a run does; the ranks' memory changes while files are written, and
  /// where the program announces it, before it is copied. Returns the message of a failure.
  std::string save(const Plan &plan, std::vector<int64_t> steps, From from = From::Copy,
                   int64_t keep = 2, std::set<int64_t> kept = {}) const {
    PlanTables tables(plan);
    tables.program.announcesChanges = announcesChanges;
    return World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      CheckpointSaver saver(rank, saveFolder(), keep, kept);
      if (preparesCopy)
        saver.prepareCopy();
      for (int64_t step : steps) {
        fill(rank, step);
        saver.begin({step, 7, true, "data"}, from);
        EXPECT_EQ(rank.changes != nullptr, from == From::Copy && announcesChanges);
        if (changesMeanwhile && from == From::Copy) {
          beginChanges(rank);
          EXPECT_EQ(rank.changes, nullptr);
          fill(rank, -step);
        }
        std::string error = saver.complete().why;
        EXPECT_EQ(rank.changes, nullptr);
        if (error.empty())
          error = saver.finish().why;
        if (!error.empty())
          fail("%s", error.c_str());
      }
      barrier(*rank.world, "the end"); // a rank that is done must not end before rank 0 reports
    });
  }

  /// Reads the first of these steps that is not damaged, and expects its values.
  std::string readFirst(const Plan &plan, const std::vector<int64_t> &steps, int64_t expected) {
    std::string own = folder;
    std::vector<ResumePoint> points;
    for (int64_t step : steps)
      points.push_back({stepFolder(saveFolder(), step), {step, 7, true, "data"}});
    PlanTables tables(plan);
    std::string error = World(tables.program).run(tables.program, nullptr, [&](Rank &rank) {
      EXPECT_EQ(resumeFrom(rank, points).info.step, expected);
    });
    if (!error.empty())
      return error;
    folder = stepFolder(saveFolder(), expected);
    error = read(plan, expected);
    folder = own;
    return error;
  }

  /// Without the numbers of starts.
  std::set<std::string> inFolder() const {
    std::set<std::string> result;
    for (const auto &entry : fs::directory_iterator(saveFolder()))
      result.insert(std::regex_replace(entry.path().filename().string(),
                                       std::regex("\\.[0-9a-f]{16}\\.tmp$"), ".tmp"));
    return result;
  }
  using Names = std::set<std::string>;

  /// Returns a file of a checkpoint that has elements of `table` on the last rank.
  std::string lastFile(int64_t step) const {
    std::string last;
    for (const auto &entry : fs::directory_iterator(stepFolder(saveFolder(), step)))
      if (entry.path().extension() == ".safetensors")
        last = std::max(last, entry.path().string());
    return last;
  }
};

} // namespace partita_rt

#endif // PARTITA_RT_TESTS_SAVERS_H
