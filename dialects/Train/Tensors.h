//===- Tensors.h - the tensors of the model file that hold a parameter --------------*- C++ -*-===//
//
// Exporters fold constants: the file may hold a parameter transposed, sliced or several times,
// under generated names. The attribute `train.tensors` of a parameter (#train.stored) lists these
// tensors, beginning with the one that `initial` names. Without it there is one tensor, with the
// parameter's name, unchanged. Import and --tie create it; export writes trained values to all of
// these tensors.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_DIALECTS_TRAIN_TENSORS_H
#define PARTITA_DIALECTS_TRAIN_TENSORS_H

#include "dialects/Train/Train.h"

namespace partita::train {

/// Returns true if the elements are a parameter's, unchanged. A file of the model's weights
/// (--init) has at most the transpose of such a tensor, and nothing of a computed one.
inline bool isMoved(Folded folded) { return folded == Folded::Moved || folded == Folded::Part; }

/// The members of #train.stored, which explains them.
struct StoredTensor {
  std::string name;
  bool transposed = false, reshaped = false;
  llvm::SmallVector<int64_t, 3> slice = {}; ///< empty or dimension, begin, size
  std::string origin = "";                  ///< empty if it is the parameter, or comes from several
  Folded folded = Folded::No;
  llvm::SmallVector<int64_t, 2> dimensions = {}; ///< empty or least, most
};

mlir::ArrayAttr toAttribute(llvm::ArrayRef<StoredTensor> tensors, mlir::MLIRContext *context);

/// Returns the tensors of a parameter, beginning with the one that `initial` names.
llvm::SmallVector<StoredTensor> tensorsOf(ParameterOp parameter);

/// Return or set what import had to guess; setting none removes the attribute.
llvm::SmallVector<NoteAttr> notesOf(mlir::ModuleOp module);
void setNotes(mlir::ModuleOp module, llvm::ArrayRef<NoteAttr> notes);

/// Returns the files that have `initial` values.
llvm::SmallVector<FileAttr> filesOf(mlir::ModuleOp module);

/// Returns true if a name of the parameter is wanted: the model's, that of a tensor that holds it,
/// or that of such a tensor's origin.
template <typename Predicate> bool anyNameOf(ParameterOp parameter, Predicate isWanted) {
  return isWanted(parameter.getModelName()) ||
         llvm::any_of(tensorsOf(parameter), [&](const StoredTensor &each) {
           return isWanted(each.name) || (!each.origin.empty() && isWanted(each.origin));
         });
}

/// Returns true if the file has the transpose of the parameter where `initial` points.
inline bool isStoredTransposed(ParameterOp parameter) {
  return tensorsOf(parameter).front().transposed;
}

/// Returns the number of layers among the rows of the op's train.work; 0 if it records none.
int64_t layersOf(mlir::Operation *op);

/// Checks an attribute of TrainTables.td.
llvm::LogicalResult verifyTable(mlir::Operation *op, mlir::NamedAttribute attribute);

} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_TENSORS_H
