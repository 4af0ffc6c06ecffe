//===- Resolve.h - resolves a DeepSpeed configuration -------------------------------*- C++ -*-===//
//
// Turns a checked configuration into plan options, default options of the program's runs, and sizes
// of the model's dimensions. Every "auto" gets a value by Hugging Face's rules, from the command
// line, the model and the mesh. Weights are not read.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_DEEPSPEED_RESOLVE_H
#define PARTITA_DEEPSPEED_RESOLVE_H

#include "partita/DeepSpeed/Document.h"
#include "partita/DeepSpeed/Keys.h"
#include "llvm/ADT/StringSet.h"
#include <functional>
#include <map>
#include <optional>
#include <utility>

namespace partita::config {

/// What is known about the model without its weights.
struct ModelFacts {
  std::string path;
  std::optional<int64_t> batch;        ///< of all ranks for one micro-step, if it is fixed
  std::vector<std::string> batchNames; ///< its names for --dim if it is not
  std::string batchAxis;               ///< the same as INPUT.AXIS
  std::optional<int64_t> hidden;       ///< elements of a token's vector
};

/// The context in which the configuration is resolved.
struct Facts {
  std::vector<std::pair<std::string, int64_t>> mesh; ///< empty: one rank, no --mesh
  std::map<std::string, std::string> commandLine;    ///< plan options given there
  std::vector<std::pair<std::string, int64_t>> dims; ///< --dim
  std::optional<int64_t> warmupSteps, totalSteps;    ///< --warmup-steps, --total-steps
  std::optional<ModelFacts> model;                   ///< none: no model was named
  /// Return true if there is a plan option, or a run option, with this name. A key that needs a
  /// missing one is refused.
  std::function<bool(llvm::StringRef)> knowsPlan, knowsRun;
};

/// An option that a key sets. `key` is empty for DeepSpeed's default of an absent key.
struct Setting {
  std::string option, value; ///< "zero-stage", "2"; a flag's value is "true"
  const Key *key = nullptr;
  llvm::SMLoc at;
};

/// A resolved value.
struct Entry {
  const Key *key = nullptr;
  std::string value;   ///< JSON
  std::string from;    ///< "ds_config.json:12", "command line, --lr", "default"
  std::string becomes; ///< "--lr 3e-05"; empty if it has no effect
  std::string idle;    ///< why it has no effect
};

struct Resolution {
  std::vector<Setting> plan, run;
  std::vector<std::pair<std::string, int64_t>> dims; ///< set by the batch; excludes those of --dim
  std::vector<Entry> entries;                        ///< in the order of keys
  llvm::StringSet<> read;                            ///< the rows that were read
  llvm::StringSet<> given;                           ///< the rows that are in the file

  bool isGiven(const Key &key) const { return given.contains(key.path); }

  /// Prints the resolved configuration, with a comment on each value's origin: JSON with comments,
  /// which Document and DeepSpeed read.
  void print(llvm::raw_ostream &os) const;
  /// Prints it as plain JSON: {"keys": {path: {"value", "from", "sets", "no_effect"}}, "plan":
  /// {...}, "run": {...}, "dims": {...}}.
  void printJson(llvm::raw_ostream &os) const;
};

/// Only checks the document against the rows: unknown keys, types, bounds, refused values. Returns
/// false after one error.
bool checkKeys(const Document &document);

/// Checks and resolves the document. Returns false after one error.
bool resolve(const Document &document, const Facts &facts, Resolution &resolution);

} // namespace partita::config

#endif // PARTITA_DEEPSPEED_RESOLVE_H
