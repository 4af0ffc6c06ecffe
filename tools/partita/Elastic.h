//===- Elastic.h - one model compiled for several numbers of ranks ------------------*- C++ -*-===//
//
// `partita compile --elastic dp=2..4 -o gpt2` makes a folder of programs, one per size of the axis.
// A training step of each takes the same samples in the same order, so a checkpoint of one is
// continued by any other:
//
//     gpt2/elastic.json
//     gpt2/gpt2-dp2/     a program's folder (Program.h)
//     gpt2/gpt2-dp3/
//     gpt2/gpt2-dp4/
//
// The programs share the kernels of the runtime's library. The few that are emitted (GPT-2: twelve
// loops, 130 of 1,400 lines) are repeated in each, so that each folder can be read, moved and built
// by itself.
//
// elastic.json: {"axis": "dp", "samples": of a training step, "programs": [{"size": 2, "ranks": 4,
// "folder": "gpt2-dp2"}, ...]}, smallest first.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_ELASTIC_H
#define PARTITA_TOOLS_ELASTIC_H

#include "tools/partita/MemoryLimit.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace partita::tool {

/// The sizes of --elastic: "dp=2..8" or "dp=2,4,8".
struct ElasticSizes {
  std::string axis;
  std::vector<int64_t> sizes; ///< ascending

  bool isSet() const { return !axis.empty(); }
  /// Reads the option's value; returns the problem, or "".
  std::string parse(llvm::StringRef text);
  /// The option's value as a list: "dp=2,4,8".
  std::string text() const;
};

/// The batch of a plan: what every size keeps.
struct ElasticBatch {
  int64_t microBatch = 0;            ///< samples of one micro-batch, over all ranks
  int64_t accumulate = 1;            ///< micro-batches per training step
  std::vector<std::string> dimNames; ///< that bind it in --dim; none: the model fixes it

  int64_t samples() const { return microBatch * accumulate; }
};

/// Checks that the plan, whose mesh has the largest size, can be changed to all sizes: that each
/// divides the samples of a training step. Returns the problem, or "".
std::string checkElastic(const ElasticSizes &elastic, const ElasticBatch &batch, const Plan &plan);

/// Returns the request for one size: its mesh, and the largest micro-batch that gives a rank no more
/// samples than the plan does, accumulated to the samples of a training step. Has been checked.
Request requestFor(int64_t size, const ElasticSizes &elastic, const ElasticBatch &batch,
                   const Request &request);

/// A program of a folder that --elastic made.
struct ElasticProgram {
  int64_t size = 1;  ///< of the axis
  int64_t ranks = 1; ///< of the program
  std::string folder;
};

/// What a folder's elastic.json says.
struct ElasticFolder {
  std::string axis;
  int64_t samples = 0;
  std::vector<ElasticProgram> programs; ///< smallest first; their folders with the path

  /// Returns the text of elastic.json, with the folders' names alone.
  std::string toJson() const;
  /// "2, 4 or 8 ranks".
  std::string ranksText() const;
};

/// Is this a folder that --elastic made?
bool isElastic(llvm::StringRef folder);
/// Reads it; nothing, with `problem` set, if its elastic.json cannot be read.
std::optional<ElasticFolder> readElastic(llvm::StringRef folder, std::string &problem);

/// Returns why --elastic may not replace the folder, or "": it must be empty or one that --elastic
/// made, with nothing else in it.
std::string checkElasticTarget(llvm::StringRef folder);

} // namespace partita::tool

#endif // PARTITA_TOOLS_ELASTIC_H
