//===- Collectives.h - what ranks communicate, and why ------------------------------*- C++ -*-===//
//
// One record per collective of a program, with its cause (#par.cause): what the runtime will count.
// The records come from the ops in phases 'differentiate' to 'memory'; later from the module, on
// which `lower-to-rt` writes them (#rt.collective). Reports and limits add these records up: by
// place in the model (Census), or as the rows that the runtime checks (CensusRow). Nothing counts
// ops again.
//
//===----------------------------------------------------------------------------------------------===//

#ifndef PARTITA_ANALYSIS_COLLECTIVES_H
#define PARTITA_ANALYSIS_COLLECTIVES_H

#include "dialects/Par/Par.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <map>

namespace partita::rt {
class CollectiveAttr;
} // namespace partita::rt

namespace partita::analysis {

/// On a module compiled without --sequence-parallel that would also compile with it.
inline constexpr llvm::StringLiteral kMaySplitSequence = "par.may_split_sequence";

/// A place in the model: a layer by its number, or one of these.
enum Place : int64_t { Elsewhere = -5, Gradients = -4, Once = -3, After = -2, Before = -1 };

/// The steps of training that issue a collective.
using partita_rt::Steps;
/// Null for all steps.
par::ExactStepsAttr exactStepsOf(const Steps &steps, mlir::MLIRContext *context);
/// Adds them to a row of the manifest, unless they are all.
void addSteps(const Steps &steps, llvm::json::Object &object);

struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  std::string function, axis;
  std::string communicator; ///< its name (Communicators.h)
  std::string type;         ///< of the elements: "float32", "bfloat16", "int64"
  std::string called;       ///< its name if it has no cause
  bool backward = false;
  int64_t calls = 1;                     ///< per call of the function
  int64_t bytes = 0, tensors = 1;        ///< per call, as the runtime counts; tensors in its bucket
  int64_t stage = -1;                    ///< of a pipeline; -1: no stages
  int64_t microBatches = 1;              ///< per call of the function
  Steps steps;                           ///< in which it is issued
  int64_t place = Elsewhere, layers = 0; ///< and the number of layers
  /// The cause, or the first cause of a bucket; none, and empty, if none is noted.
  std::optional<par::Role> role;
  std::string letter, rule, op, node;  ///< no letter where no rule asked for it
  std::string seed, words;             ///< who requested the split, and how
  std::vector<std::string> parameters; ///< split together for it: "name@dimension"
  /// The same for the other splits that one sum serves: parallel branches.
  std::vector<std::vector<std::string>> merged;
  int64_t others = 0;      ///< further splits that a bucket of gradients has tensors of
  bool mayScatter = false; ///< --sequence-parallel, which the plan lacks, would split the rows

  /// Returns its name in `explain`, the manifest, the emitted program and its census.
  std::string name() const;
  /// Return why ranks communicate here, which split made them, and what would remove it.
  std::string why() const;
  std::string seedText() const;
  std::string removal() const;
  /// Returns true if every plan needs it. Then `removal` says why.
  bool isRequired() const;
  /// Returns text that is equal for collectives that differ only in the names of nodes and
  /// parameters and in the layer.
  std::string shape() const;

  const CollectiveRow &row() const { return partita_rt::rowOf(kind); }
  rt::CollectiveAttr toAttr(mlir::MLIRContext *context) const;
  static Collective fromAttr(rt::CollectiveAttr attribute);
  llvm::json::Object toJson() const;
  /// Fails if the kind or the role is unknown.
  static llvm::Expected<Collective> fromJson(const llvm::json::Object &object);
};

/// Returns the collectives of all functions, in order; with pipeline stages, stage by stage.
std::vector<Collective> collectivesOf(mlir::ModuleOp module);

/// Returns the parts of training within which every step communicates the same, in order: one, all steps, unless a collective
/// is of some steps only.
std::vector<Steps> phasesOf(llvm::ArrayRef<Collective> collectives);

/// Returns the collectives that one rank issues, for each stage; without stages, a single list.
std::vector<std::vector<Collective>> byStage(llvm::ArrayRef<Collective> collectives);

/// Consecutive layers, which a chunk of a pipeline stage has.
struct LayerRange {
  int64_t first = 0, count = 0;
};

/// The layers of each chunk of a stage, of a model with this number of layers; none where `module` is no stage, or nothing has been
/// cut yet.
std::vector<LayerRange> layerRangesOf(mlir::ModuleOp stage, int64_t layers);

/// A function's name in reports and in the census: its entry point, whatever its symbol; else its symbol.
llvm::StringRef functionName(mlir::Operation *function);

/// Reads what `toJson` wrote.
llvm::Expected<std::vector<Collective>> collectivesIn(const llvm::json::Array *records);

/// Returns Collective::name() of the op: by its cause, else by what the compiler noted, else by the
/// op that made it necessary.
std::string nameOf(mlir::Operation *op);

/// Returns the place at which collectives of a kind for a role of #par.cause are reported; nothing
/// if that is their layer.
std::optional<Place> placeOfRole(par::Role role, CollectiveKind kind);

/// The collectives that one rank issues over one communicator under one name in one call of a function:
/// a row of the program's census, which the runtime compares with what it counts.
struct CensusRow {
  std::string function;
  CollectiveKind kind;
  std::string communicator, name;
  int64_t calls = 0, bytes = 0;
  Steps steps;
};

/// Returns the rows in order of first use.
std::vector<CensusRow> censusRows(llvm::ArrayRef<Collective> collectives);

struct Count {
  int64_t calls = 0, bytes = 0;
  Count &operator+=(const Count &other) {
    calls += other.calls, bytes += other.bytes;
    return *this;
  }
};

/// The collectives of one function, added up by place, direction and kind: in a layer, before the
/// first and after the last one per micro-batch, elsewhere per call of the function.
struct Census {
  using Kinds = std::map<std::string, Count>; ///< by the kind's name
  std::string function;
  Steps steps;
  int64_t microBatches = 1;
  int64_t layers = 0; ///< of the model, if a collective says so; else up to the end of the stage
  std::map<int64_t, std::array<Kinds, 2>> places; ///< forward, backward

  /// Counts the collectives of one stage, or of a program without stages. `ranges` are the stage's layers, which have a place each
  /// even where they communicate nothing; none: every layer of the model. With phases: a step of `steps`, by default of the first.
  static Census of(llvm::ArrayRef<Collective> collectives, llvm::StringRef function,
                   llvm::ArrayRef<LayerRange> ranges = {},
                   std::optional<Steps> steps = std::nullopt);
  /// The function whose census is reported: train_step, or forward if there is none.
  static std::string mainFunction(llvm::ArrayRef<Collective> collectives);
  static bool isPerMicroBatch(int64_t place) { return place >= After; }
  /// Returns places in program order.
  std::vector<int64_t> inOrder() const;
  llvm::json::Object toJson() const;
};

/// Returns "before the first layer", "layer 3", ...
std::string placeText(int64_t place);

} // namespace partita::analysis

#endif // PARTITA_ANALYSIS_COLLECTIVES_H
