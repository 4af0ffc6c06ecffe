//===- Tensors.h - which tensors of the model's file hold a parameter ---------------*- C++ -*-===//
//
// Exporters fold constants: the file may hold a parameter transposed, sliced or several times, under
// generated names. The attribute `train.tensors` of a parameter lists these tensors, beginning with
// the one that `initial` names: an array of dictionaries
//
//   name        the tensor's
//   transposed  it is the transpose of the parameter, a matrix, or of the slice
//   reshaped    it has the same elements in another shape
//   slice       array<i64: dimension, begin, size>: it is this slice of the parameter
//   origin      the model's parameter that it was computed from, unless it is that parameter
//   folded      what the exporter did to parameters to make it, unless it is one: "moved" their elements,
//               or only a "part" of `origin`'s (trained alike, but scaled by their own norm), "shifted" the
//               one that is `origin`, perhaps negated, by a constant (trained alike, but decayed
//               differently), or "computed" something else
//   dimensions  array<i64: least, most>: how many dimensions those parameters have, as far as is known, if
//               that may be another number than its own (weight decay goes by the parameters')
//
// Without the attribute there is one tensor, with the parameter's name, unchanged. Import and --tie create
// it; export writes trained values to all of these tensors.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_DIALECTS_TRAIN_TENSORS_H
#define PARTITA_DIALECTS_TRAIN_TENSORS_H

#include "dialects/Train/Train.h"

namespace partita::train {

constexpr llvm::StringLiteral kTensors = "train.tensors";
/// On the module: what import had to guess, and training depends on. An array of dictionaries:
/// `text`, a sentence; `tensors`, the names that it is about; `of_parameters`, if these are parameters in
/// any case, so that --trainable decides nothing; and `of_forward`, if inference depends on it too.
constexpr llvm::StringLiteral kNotes = "train.notes";
/// On the module: names of the file's tensors that --freeze matches and that are constants anyway.
constexpr llvm::StringLiteral kFrozenConstants = "train.frozen_constants";

/// How an exporter's constant folding has made a tensor. A file of the model's weights (--init) has at most
/// the transpose of a moved tensor, and nothing of a computed one.
enum class Folded { No, Moved, Part, Shifted, Computed };
constexpr llvm::StringLiteral foldedNames[] = {"", "moved", "part", "shifted", "computed"};
/// Are its elements a parameter's, unchanged?
inline bool isMoved(Folded folded) { return folded == Folded::Moved || folded == Folded::Part; }

/// Any other name comes from edited text and counts as computed, the safe choice.
inline Folded foldedOf(llvm::StringRef name) {
  const llvm::StringLiteral *found = llvm::find(foldedNames, name);
  return found == std::end(foldedNames) ? Folded::Computed
                                        : static_cast<Folded>(found - std::begin(foldedNames));
}

struct StoredTensor {
  std::string name;
  bool transposed = false, reshaped = false;
  llvm::SmallVector<int64_t, 3> slice; ///< empty or dimension, begin, size
  std::string origin;                  ///< empty if it is the parameter, or comes from several
  Folded folded = Folded::No;
  llvm::SmallVector<int64_t, 2> dimensions = {}; ///< empty or least, most
};

inline mlir::ArrayAttr toAttribute(llvm::ArrayRef<StoredTensor> tensors,
                                   mlir::MLIRContext *context) {
  mlir::Builder b(context);
  llvm::SmallVector<mlir::Attribute> entries;
  for (const StoredTensor &tensor : tensors) {
    llvm::SmallVector<mlir::NamedAttribute> entry{
        b.getNamedAttr("name", b.getStringAttr(tensor.name))};
    if (tensor.folded != Folded::No)
      entry.push_back(b.getNamedAttr(
          "folded", b.getStringAttr(foldedNames[static_cast<size_t>(tensor.folded)])));
    if (!tensor.origin.empty())
      entry.push_back(b.getNamedAttr("origin", b.getStringAttr(tensor.origin)));
    if (tensor.reshaped)
      entry.push_back(b.getNamedAttr("reshaped", b.getUnitAttr()));
    if (!tensor.slice.empty())
      entry.push_back(b.getNamedAttr("slice", b.getDenseI64ArrayAttr(tensor.slice)));
    if (tensor.transposed)
      entry.push_back(b.getNamedAttr("transposed", b.getUnitAttr()));
    if (!tensor.dimensions.empty())
      entry.push_back(b.getNamedAttr("dimensions", b.getDenseI64ArrayAttr(tensor.dimensions)));
    entries.push_back(b.getDictionaryAttr(entry));
  }
  return b.getArrayAttr(entries);
}

/// The tensors of a parameter, beginning with the one that `initial` names. Malformed entries are left
/// out: the attribute may come from any text.
inline llvm::SmallVector<StoredTensor> tensorsOf(ParameterOp parameter) {
  llvm::SmallVector<StoredTensor> tensors;
  auto entries = parameter->getAttrOfType<mlir::ArrayAttr>(kTensors);
  for (mlir::Attribute each : entries ? entries.getValue() : llvm::ArrayRef<mlir::Attribute>()) {
    auto entry = llvm::dyn_cast<mlir::DictionaryAttr>(each);
    auto name = entry ? entry.getAs<mlir::StringAttr>("name") : mlir::StringAttr();
    if (!name)
      continue;
    auto slice = entry.getAs<mlir::DenseI64ArrayAttr>("slice");
    auto origin = entry.getAs<mlir::StringAttr>("origin");
    auto folded = entry.getAs<mlir::StringAttr>("folded");
    tensors.push_back({name.str(),
                       bool(entry.get("transposed")),
                       bool(entry.get("reshaped")),
                       {},
                       origin ? origin.str() : "",
                       folded ? foldedOf(folded.getValue()) : Folded::No});
    if (slice && slice.size() == 3)
      tensors.back().slice.assign(slice.asArrayRef().begin(), slice.asArrayRef().end());
    auto dimensions = entry.getAs<mlir::DenseI64ArrayAttr>("dimensions");
    if (dimensions && dimensions.size() == 2)
      tensors.back().dimensions.assign(dimensions.asArrayRef().begin(),
                                       dimensions.asArrayRef().end());
  }
  if (tensors.empty())
    tensors.push_back({parameter.getModelName().str(), false, false, {}, "", Folded::No});
  return tensors;
}

/// Is it a name of the parameter: the model's, that of a tensor that holds it, or that of such a tensor's
/// origin?
template <typename Predicate> bool anyNameOf(ParameterOp parameter, Predicate isWanted) {
  return isWanted(parameter.getModelName()) ||
         llvm::any_of(tensorsOf(parameter), [&](const StoredTensor &each) {
           return isWanted(each.name) || (!each.origin.empty() && isWanted(each.origin));
         });
}

/// Does the file hold the transpose of the parameter where `initial` says?
inline bool isStoredTransposed(ParameterOp parameter) {
  return tensorsOf(parameter).front().transposed;
}

} // namespace partita::train

#endif // PARTITA_DIALECTS_TRAIN_TENSORS_H
