//===- RequestedSplits.h - splits that the user or the model requests ---------------*- C++ -*-===//

#ifndef PARTITA_LIB_PARTITION_REQUESTEDSPLITS_H
#define PARTITA_LIB_PARTITION_REQUESTEDSPLITS_H

#include "lib/Partition/Forms.h"
#include "lib/Partition/Seeds.h"
#include "lib/Partition/SeparateBlocks.h"

namespace partita {

/// A request to split a dimension of a value, and everything that the rules unite with it.
struct Request {
  std::string about; ///< the beginning of an error about it
  std::string by;    ///< who requests it, for conflicts with other requests
  std::string name;  ///< the value's
  mlir::Value value;
  mlir::StringAttr axis;
  unsigned dim = 0;
  /// Each of this many blocks of the dimension is split; 0: as few as will hold.
  int64_t blocks = 0;
  /// Optional requests that cannot hold get a remark that says why.
  bool optional = false;
  /// The origin, as in #par.seed: its kind and words.
  llvm::StringRef kind = "user";
  std::string words;
};

/// Applies requests in order, each on top of the splits of those before it, and writes the splits
/// on the parameters (kArgumentSplit). If a size prevents a split, ops take another form; if a
/// fused weight does, its blocks are separated over tp. A request that cannot hold is an error with
/// the reason and the request it conflicts with.
class Planter {
public:
  Planter(mlir::ModuleOp module, par::MeshAttr mesh) : module(module), mesh(mesh) {}

  /// Calls `collect` again after ops have taken another form.
  mlir::LogicalResult
  plant(llvm::function_ref<mlir::FailureOr<llvm::SmallVector<Request>>()> collect);

  /// Parameters that stay unsplit (kKeepFull), although their blocks may be split.
  llvm::DenseSet<mlir::StringAttr> fullInMemory;

private:
  mlir::LogicalResult plantAll(llvm::ArrayRef<Request> requests);
  /// Succeeds if the value is split as requested, or will be once an op has taken another form.
  mlir::LogicalResult plantOne(Propagation &propagation, const Request &request);
  Attempt tryOut(Propagation &propagation, const Request &request, LastResort resort);
  /// Returns true if a block of another parameter prevents the split, and can be separated.
  bool separates(const Propagation &propagation, const Request &request, const Stop &stop);
  mlir::InFlightDiagnostic tell(const Request &request);
  void contradicts(const Request &request, int dim);
  void stopped(const Request &request, const Stop &stop);
  void indivisible(const Request &request, const Attempt &attempt);

  mlir::ModuleOp module;
  par::MeshAttr mesh;
  Forms forms;
  SeparateBlocks blocks;
  bool separated = false, tryAgain = false;
  SeedLog log;
  /// The first request that split an op over an axis.
  llvm::DenseMap<std::pair<mlir::Operation *, mlir::StringAttr>, const Request *> splitBy;
};

/// Returns the first read of every parameter that is read, by symbol.
llvm::DenseMap<mlir::StringAttr, mlir::Value> firstReads(mlir::ModuleOp module);

} // namespace partita

#endif // PARTITA_LIB_PARTITION_REQUESTEDSPLITS_H
