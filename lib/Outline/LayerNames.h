//===- LayerNames.h - the common part of layers' names ------------------------------*- C++ -*-===//
//
// "h.3.ln_1" and "h_3_ln_1_weight" belong to layer "h.3": everything up to the first number that is
// a word of its own. Names are untrusted; the strings returned here are not identifiers yet.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_OUTLINE_LAYERNAMES_H
#define PARTITA_LIB_OUTLINE_LAYERNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <tuple>
#include <vector>

namespace partita::rt {

/// A layer of a model: the words before its number ("h"), and the number. Without words there is no
/// layer.
struct LayerLabel {
  std::vector<std::string> kind;
  std::string number;

  /// Parses a dotted path or the name of a variable.
  static LayerLabel of(llvm::StringRef name);
  bool isNone() const { return kind.empty(); }
  /// "h.3"
  std::string text() const;
  bool operator==(const LayerLabel &other) const {
    return kind == other.kind && number == other.number;
  }
  bool operator<(const LayerLabel &other) const {
    return std::tie(kind, number) < std::tie(other.kind, other.number);
  }
};

/// Returns the most frequent of the strings; ties go to the first.
std::string mostFrequent(llvm::ArrayRef<std::string> texts);

/// Returns one name for `names[i]` in layers `layers[i]`, without the layer: "ln_1_weight". Names
/// from the layer before or after begin with "previous_" or "next_". Trailing numbers that differ
/// are dropped.
std::string commonName(llvm::ArrayRef<std::string> names, llvm::ArrayRef<LayerLabel> layers);

/// Likewise for comments: "h.3.ln_1, backward" -> "ln_1".
std::string commonComment(llvm::ArrayRef<std::string> comments);

} // namespace partita::rt

#endif // PARTITA_LIB_OUTLINE_LAYERNAMES_H
