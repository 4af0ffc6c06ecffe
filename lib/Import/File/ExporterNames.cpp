//===- ExporterNames.cpp ----------------------------------------------------------------------===//

#include "lib/Import/File/ExporterNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace partita::importer {

bool isInnerName(llvm::StringRef name) {
  return name.consume_front("val_") && !name.empty() && llvm::all_of(name, llvm::isDigit);
}

llvm::StringRef operationOf(llvm::StringRef name) {
  llvm::StringRef base = name.rtrim("0123456789");
  return base.size() < name.size() && base.consume_back("_") ? base : name;
}

bool isDetached(llvm::StringRef name) { return operationOf(name) == "detach"; }

std::string splitName(llvm::StringRef parameter, llvm::StringRef computed) {
  return (parameter + "/" + computed).str();
}

llvm::StringRef computedName(llvm::StringRef name) {
  return name.substr(name.rfind('/') + 1); // npos + 1 is 0
}

bool isFoldedName(llvm::StringRef name) { return name.starts_with("onnx::"); }

bool isModelName(llvm::StringRef name) { return !isFoldedName(name) && !name.starts_with("/"); }

/// The path of a node's module, without what tells calls of one module apart.
static std::string modulePath(llvm::StringRef node) {
  std::string path;
  llvm::SmallVector<llvm::StringRef> steps;
  node.rsplit('/').first.split(steps, '/');
  for (llvm::StringRef step : steps) {
    llvm::StringRef base = step.rtrim("0123456789");
    path += "/" + (base.size() < step.size() && base.consume_back("_") ? base : step).str();
  }
  return path;
}

bool areOfNumberedModules(llvm::StringRef node, llvm::StringRef other) {
  std::string first = modulePath(node), second = modulePath(other);
  if (first == second)
    return false;
  for (std::string *path : {&first, &second})
    llvm::erase_if(*path, [](char c) { return llvm::isDigit(c); });
  return first == second;
}

bool isModuleParameter(llvm::StringRef name) {
  auto [path, last] = name.rsplit('.');
  llvm::StringRef called = last.empty() ? path : last;
  static constexpr llvm::StringLiteral names[] = {
      "weight",        "bias",          "in_proj_weight", "in_proj_bias",
      "q_proj_weight", "k_proj_weight", "v_proj_weight",  "weight_g",
      "weight_v",      "original0",     "original1"};
  // Of an LSTM's layer ("weight_ih_l0"), or of a cell.
  return llvm::is_contained(names, called) || called.starts_with("weight_ih") ||
         called.starts_with("weight_hh") || called.starts_with("bias_ih") ||
         called.starts_with("bias_hh");
}

} // namespace partita::importer
