//===- Resolver.h - reading keys, setting options -----------------------------------*- C++ -*-===//
//
// What the files of the blocks share. Each has its rows and one function that reads them:
//
//     bool resolveBatch(Resolver &r);      false after one message
//
// find, flag, real, whole and word read a key by its path and mark it as read; set and run say
// which option it becomes, and compare it with the command line's; value says what was made of an
// "auto".
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_DEEPSPEED_RESOLVER_H
#define PARTITA_LIB_DEEPSPEED_RESOLVER_H

#include "lib/DeepSpeed/Rows.h"
#include "partita/DeepSpeed/Resolve.h"
#include "llvm/ADT/StringMap.h"

namespace partita::config {

/// A key that the file gives.
struct Given {
  const Key *key = nullptr;
  const Value *value = nullptr;
  llvm::SMLoc at;       ///< of the key
  std::string spelled;  ///< its path as the file has it
  bool dropped = false; ///< null, or an "auto" that DeepSpeed drops: as if it were absent
};
using GivenKeys = llvm::StringMap<Given>;

/// Checks every key by its row. False after one message.
bool collectKeys(const Document &document, GivenKeys &given);

/// Why there is no optimizer of this name; nothing where there is one.
std::string optimizerProblem(llvm::StringRef name);

/// An option's text as the value of a key, JSON.
std::string jsonOf(llvm::StringRef path, llvm::StringRef text);

class Resolver {
public:
  Resolver(const Document &document, const Facts &facts, Resolution &out)
      : document(document), facts(facts), out(out) {}

  const Document &document;
  const Facts &facts;
  Resolution &out;
  GivenKeys given;
  /// What several blocks need: settled by the first that does.
  std::string precision = "float32";
  double rate = 1e-3; ///< the optimizer's learning rate
  int64_t stage = 0;
  bool offloadsParameters = false;

  /// The key as the file has it; null when it is absent or dropped.
  const Given *find(llvm::StringRef path);
  bool has(llvm::StringRef path) { return find(path); }
  /// The same, without marking it as read: to say that it does not belong here.
  bool isGiven(llvm::StringRef path) const {
    auto found = given.find(path);
    return found != given.end() && !found->second.dropped;
  }
  bool isAuto(llvm::StringRef path);
  /// The value, or the default; of an "auto" the default too.
  bool flag(llvm::StringRef path);
  double real(llvm::StringRef path);
  int64_t whole(llvm::StringRef path);
  std::string word(llvm::StringRef path); ///< a Choice in small letters, a Text as it is

  /// The message at the key's value, or at the file's beginning where it is absent. Returns false.
  bool fail(llvm::StringRef path, const llvm::Twine &message);
  /// How a message names the key: as the file spells it, in quotes.
  std::string name(llvm::StringRef path);
  llvm::SMLoc placeOf(llvm::StringRef path);

  /// The key becomes a plan option. False after a message: the command line says something else.
  /// `path` may be of an absent key, whose default it is; then the command line counts.
  bool set(llvm::StringRef path, llvm::StringRef option, llvm::StringRef text);
  /// The key asks for something in the host's memory: a word of the plan option offload, of which
  /// there is one for all.
  void offload(llvm::StringRef path, llvm::StringRef what);
  /// A default of the program's run options.
  void setRun(llvm::StringRef path, llvm::StringRef option, llvm::StringRef text);
  /// What the key's value was resolved to, as JSON, and from where.
  void value(llvm::StringRef path, llvm::StringRef json, llvm::StringRef from);
  /// The key has no effect here, for this reason.
  void idle(llvm::StringRef path, llvm::StringRef reason);
  /// No value for an "auto"; `how` says what would give one.
  void lacks(llvm::StringRef path, llvm::StringRef how) {
    lacking.push_back({path.str(), how.str()});
  }

  /// A number that is a plan option: the file's; of an "auto" the command line's or `initial`. Sets
  /// it, and `text` to what it is.
  bool settle(llvm::StringRef path, llvm::StringRef option, llvm::StringRef initial,
              std::string &text);

  const std::string *commandLine(llvm::StringRef option) const;
  /// A plan option as the command line or a key has set it so far; "" where none has.
  std::string planned(llvm::StringRef option) const;
  /// Ranks of an axis; of all.
  int64_t size(llvm::StringRef axis) const;
  int64_t world() const;
  /// Ranks that the batch is split over.
  int64_t dataParallel() const { return size("dp") * size("fsdp"); }
  /// Do ranks have gradients of the same parameters? Those of key heads that several ranks of tp have count for nothing here.
  bool reducesGradients() const { return dataParallel() > 1 || planned("sequence-parallel") == "true"; }
  int64_t elementBytes() const { return precision == "float32" ? 4 : 2; }

  /// Once all blocks are read: the entries in order, every "auto" without a value in one message,
  /// and what is asked for that is not there yet.
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
bool resolveGradientTypes(Resolver &r); ///< knows the batch
bool resolveOptimizer(Resolver &r);
bool resolveScheduler(Resolver &r);
bool resolveZero(Resolver &r);
bool resolveOffload(Resolver &r);
bool resolveActivationCheckpointing(Resolver &r);
bool resolveMonitors(Resolver &r);
bool resolveTensorParallel(Resolver &r);
bool resolvePipeline(Resolver &r); ///< before checkpointing: it may ask for recomputation

} // namespace partita::config

#endif // PARTITA_LIB_DEEPSPEED_RESOLVER_H
