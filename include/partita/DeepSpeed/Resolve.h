//===- Resolve.h - what a configuration asks for ------------------------------------*- C++ -*-===//
//
// A configuration that has been checked becomes plan options, default options of the program's
// runs, and sizes of the model's dimensions; every "auto" is given a value by Hugging Face's rules,
// from the command line, the model and the mesh. No weight is looked at.
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

/// What is known of the model without its weights.
struct ModelFacts {
  std::string path;
  std::optional<int64_t> batch; ///< the whole program's for one micro-step, where it is fixed
  std::vector<std::string> batchNames; ///< what --dim calls it where it is not
  std::string batchAxis;               ///< the same as INPUT.AXIS
  std::optional<int64_t> hidden;       ///< elements of a token's vector
};

/// What the configuration is resolved against.
struct Facts {
  std::vector<std::pair<std::string, int64_t>> mesh; ///< empty: one rank, no --mesh
  std::map<std::string, std::string> commandLine;    ///< plan options that are given there
  std::vector<std::pair<std::string, int64_t>> dims; ///< --dim
  std::optional<int64_t> warmupSteps, totalSteps;    ///< --warmup-steps, --total-steps
  std::optional<ModelFacts> model;                   ///< none: no model was named
  /// Is there a plan option, a run option of this name? What is not there yet is refused.
  std::function<bool(llvm::StringRef)> knowsPlan, knowsRun;
};

/// An option that a key sets. `key` is empty where no key does: DeepSpeed's default for one that is
/// absent.
struct Setting {
  std::string option, value; ///< "zero-stage", "2"; a flag's value is "true"
  const Key *key = nullptr;
  llvm::SMLoc at;
};

/// A value as it was resolved.
struct Entry {
  const Key *key = nullptr;
  std::string value;   ///< JSON
  std::string from;    ///< "ds_config.json:12", "command line, --lr", "default"
  std::string becomes; ///< "--lr 3e-05"; empty where nothing follows from it
  std::string idle;    ///< why nothing does
};

struct Resolution {
  std::vector<Setting> plan, run;
  std::vector<std::pair<std::string, int64_t>> dims; ///< that the batch binds; not those of --dim
  std::vector<Entry> entries;                        ///< in the order of keys
  llvm::StringSet<> read;                            ///< the rows that were looked at
  llvm::StringSet<> given;                           ///< the rows that the file gives

  bool isGiven(const Key &key) const { return given.contains(key.path); }

  /// The resolved configuration, with a comment on each value's source: JSON with comments, which
  /// Document and DeepSpeed read.
  void print(llvm::raw_ostream &os) const;
  /// The same as JSON proper: {"keys": {path: {"value", "from", "sets", "no_effect"}}, "plan":
  /// {...}, "run": {...}, "dims": {...}}.
  void printJson(llvm::raw_ostream &os) const;
};

/// Checks the document against the rows alone: unknown keys, types, bounds, refused values. False
/// after one message.
bool checkKeys(const Document &document);

/// Checks and resolves. False after one message.
bool resolve(const Document &document, const Facts &facts, Resolution &resolution);

} // namespace partita::config

#endif // PARTITA_DEEPSPEED_RESOLVE_H
