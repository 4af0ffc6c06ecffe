//===- Resolver.h - reads keys, sets options ----------------------------------------*- C++ -*-===//
//
// Shared by the files of the blocks. Each has its rows and one function that reads them:
//
//     bool resolveBatch(Resolver &r);      false after one error
//
// find, flag, real, integer and word read a key by its path and mark it as read. set and setRun
// record the option that it becomes, and compare it with the command line's. value records what an
// "auto" was resolved to.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_DEEPSPEED_RESOLVER_H
#define PARTITA_LIB_DEEPSPEED_RESOLVER_H

#include "lib/DeepSpeed/Rows.h"
#include "partita/DeepSpeed/Resolve.h"
#include "llvm/ADT/StringMap.h"

namespace partita::config {

/// A key in the file.
struct Given {
  const Key *key = nullptr;
  const Value *value = nullptr;
  llvm::SMLoc at;       ///< of the key
  std::string spelled;  ///< its path as the file has it
  bool dropped = false; ///< null, or an "auto" that DeepSpeed drops: treated as absent
};
using GivenKeys = llvm::StringMap<Given>;

/// Checks every key by its row. Returns false after one error.
bool collectKeys(const Document &document, GivenKeys &given);

/// Returns why there is no optimizer of this name; "" if there is one.
std::string optimizerProblem(llvm::StringRef name);
/// What other blocks ask of an optimizer.
struct OptimizerFacts {
  bool hasBetas;    ///< that decay moments
  bool hasRatio;    ///< of norms, by which it scales updates: a Lamb
  bool sumsMomenta; ///< with a bit per element
};
/// Returns the facts of the optimizer that DeepSpeed, or the plan option, calls so; none if there is no such one.
std::optional<OptimizerFacts> factsOfOptimizer(llvm::StringRef name);

/// Converts an option's text to the JSON value of a key.
std::string jsonOf(llvm::StringRef path, llvm::StringRef text);

class Resolver {
public:
  Resolver(const Document &document, const Facts &facts, Resolution &out)
      : document(document), facts(facts), out(out) {}

  const Document &document;
  const Facts &facts;
  Resolution &out;
  GivenKeys given;
  /// Shared by several blocks, set by the first that needs it.
  std::string precision = "float32";
  double rate = 1e-3; ///< the optimizer's learning rate
  int64_t stage = 0;
  bool offloadsParameters = false;

  /// Returns the key as the file has it; null if it is absent or dropped.
  const Given *find(llvm::StringRef path);
  bool has(llvm::StringRef path) { return find(path); }
  /// Returns true if the file has the key, without marking it as read, e.g. to report it as
  /// misplaced.
  bool isGiven(llvm::StringRef path) const {
    auto found = given.find(path);
    return found != given.end() && !found->second.dropped;
  }
  bool isAuto(llvm::StringRef path);
  /// Return the value, or the default for an absent key or an "auto".
  bool flag(llvm::StringRef path);
  double real(llvm::StringRef path);
  int64_t integer(llvm::StringRef path);
  std::string word(llvm::StringRef path); ///< a Choice in lower case, a Text verbatim

  /// Reports an error at the key's value or, if it is absent, at the block that it belongs to. Returns
  /// false.
  bool fail(llvm::StringRef path, const llvm::Twine &message);
  /// Returns the key's name for messages: as the file spells it, in quotes.
  std::string name(llvm::StringRef path);
  llvm::SMLoc placeOf(llvm::StringRef path);

  /// Sets the plan option that the key becomes. Returns false after an error if the command line
  /// has another value. `path` may be absent from the file: then `text` is a default, and the
  /// command line takes precedence.
  bool set(llvm::StringRef path, llvm::StringRef option, llvm::StringRef text);
  /// Adds a word to the plan option offload, which all keys share.
  void offload(llvm::StringRef path, llvm::StringRef what);
  /// Sets a default of the program's run options.
  void setRun(llvm::StringRef path, llvm::StringRef option, llvm::StringRef text);
  /// Records the JSON value that the key was resolved to, and its origin.
  void value(llvm::StringRef path, llvm::StringRef json, llvm::StringRef from);
  /// Records that the key has no effect here, and why.
  void idle(llvm::StringRef path, llvm::StringRef reason);
  /// Records that an "auto" has no value; `how` describes what would give one.
  void lacks(llvm::StringRef path, llvm::StringRef how) {
    lacking.push_back({path.str(), how.str()});
  }

  /// Resolves a number that becomes a plan option: the file's or, for an "auto", the command line's
  /// or `initial`. Sets the option, and `text` to its value.
  bool settle(llvm::StringRef path, llvm::StringRef option, llvm::StringRef initial,
              std::string &text);

  const std::string *commandLine(llvm::StringRef option) const;
  /// Returns a plan option as set so far by the command line or a key, or "".
  std::string planned(llvm::StringRef option) const;
  /// Returns the number of ranks of an axis, or of all axes.
  int64_t size(llvm::StringRef axis) const;
  int64_t world() const;
  /// Returns the number of ranks that the batch is split over.
  int64_t dataParallel() const { return size("dp") * size("fsdp"); }
  /// The ranks that have the same parameters, over which ZeRO can shard the model's state.
  int64_t sharing() const { return dataParallel() * size("cp") * size("ulysses"); }
  /// Do ranks have gradients of the same parameters? Those of key heads that several ranks of tp have count for nothing here.
  bool reducesGradients() const { return sharing() > 1 || planned("sequence-parallel") == "true"; }
  int64_t elementBytes() const { return precision == "float32" ? 4 : 2; }

  /// Finishes once all blocks are read: sorts the entries, reports every "auto" without a value in
  /// one message, and options that are requested but missing.
  bool finish();

private:
  bool refuseWhatIsNotThere();
  llvm::StringMap<Entry> entryOf;
  std::vector<std::pair<std::string, std::string>> offloaded; ///< key, word
  std::vector<std::pair<std::string, std::string>> lacking;
};

bool resolveBatch(Resolver &r);
bool resolveStep(Resolver &r);
bool resolvePrecision(Resolver &r);
bool resolveGradientTypes(Resolver &r); ///< after the batch
bool resolveOptimizer(Resolver &r);
bool resolveScheduler(Resolver &r);
bool resolveZero(Resolver &r);
bool resolveOffload(Resolver &r);
bool resolveActivationCheckpointing(Resolver &r);
bool resolveMonitors(Resolver &r);
bool resolveTensorParallel(Resolver &r);
bool resolveSparseAttention(Resolver &r);
bool resolvePipeline(Resolver &r); ///< before checkpointing, since it may request recomputation

} // namespace partita::config

#endif // PARTITA_LIB_DEEPSPEED_RESOLVER_H
