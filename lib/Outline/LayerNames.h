//===- LayerNames.h - what layers have in common in their names ---------------------*- C++ -*-===//
//
// "h.3.ln_1" and "h_3_ln_1_weight" are of layer "h.3": what stands in front of the first number
// that is a word of its own, and it. Names are untrusted; what is returned here is no identifier
// yet.
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

/// A layer of a model: words in front of its number, "h", and the number; no words: none.
struct LayerLabel {
  std::vector<std::string> kind;
  std::string number;

  /// Of a dotted path or of a variable.
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

/// What most of the strings are; of several that are as frequent the first.
std::string mostFrequent(llvm::ArrayRef<std::string> texts);

/// One name for `names[i]` in layer `layers[i]`: without the layer, "ln_1_weight"; of the layer
/// with the number before or behind with "previous_" or "next_" in front; numbers at the end that
/// differ are left out.
std::string commonName(llvm::ArrayRef<std::string> names, llvm::ArrayRef<LayerLabel> layers);

/// The words with which all of the names begin, and those with which they end: "ln_1_grad" of
/// "ln_1_weight_grad" and "ln_1_bias_grad"; "" if they have none in common.
std::string commonWords(llvm::ArrayRef<std::string> names);

/// Likewise for comments: "h.3.ln_1, backward" -> "ln_1".
std::string commonComment(llvm::ArrayRef<std::string> comments);

} // namespace partita::rt

#endif // PARTITA_LIB_OUTLINE_LAYERNAMES_H
