//===- RequestedSplits.h - splits that the user or the model requests ---------------*- C++ -*-===//

#ifndef PARTITA_LIB_PARTITION_PLANT_H
#define PARTITA_LIB_PARTITION_PLANT_H

#include "lib/Partition/Forms.h"
#include "lib/Partition/Seeds.h"
#include "lib/Partition/SeparateBlocks.h"

namespace partita {

/// A dimension of a value that is to be split, with all that the rules unite it with.
struct Request {
  std::string about; ///< what an error about it begins with
  std::string by;    ///< who asks for it, where another request meets it
  std::string name;  ///< the value's
  mlir::Value value;
  mlir::StringAttr axis;
  unsigned dim = 0;
  /// Each of so many blocks of the dimension is split; 0: of as few as will hold.
  int64_t blocks = 0;
  /// A wish: where it cannot hold, a remark says why.
  bool optional = false;
  /// What #par.seed says of who asks: the kind, and the words.
  llvm::StringRef kind = "user";
  std::string words;
};

/// Splits what requests ask for, in their order, each tried on what those before it have split, and
/// writes what is split on the parameters (kArgumentSplit). Where a size is in the way, ops take
/// another form; where a fused weight is, its blocks are separated over tp. A request that cannot
/// hold is an error that says why, and which other it meets.
class Planter {
public:
  Planter(mlir::ModuleOp module, par::MeshAttr mesh) : module(module), mesh(mesh) {}

  /// `collect` is asked again after ops took another form.
  mlir::LogicalResult
  plant(llvm::function_ref<mlir::FailureOr<llvm::SmallVector<Request>>()> collect);

  /// Parameters that stay unsplit (kKeepWhole), but not their blocks.
  llvm::DenseSet<mlir::StringAttr> wholeInMemory;

private:
  mlir::LogicalResult plantAll(llvm::ArrayRef<Request> requests);
  /// Success when the value is split as asked, or is to be once an op has another form.
  mlir::LogicalResult plantOne(Propagation &propagation, const Request &request);
  Attempt tryOut(Propagation &propagation, const Request &request, LastResort resort);
  /// Is a block of another parameter in the way, and can be had alone?
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

/// The first read of every parameter that is read, by its symbol.
llvm::DenseMap<mlir::StringAttr, mlir::Value> firstReads(mlir::ModuleOp module);

} // namespace partita

#endif // PARTITA_LIB_PARTITION_PLANT_H
