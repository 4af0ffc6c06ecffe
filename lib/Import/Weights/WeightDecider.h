//===- WeightDecider.h - decides what the tensors of a file are ---------------------*- C++ -*-===//
//
// run() is the list of phases. Each phase is a method that reads what those before it have put into the
// table and adds its own.
//
//===----------------------------------------------------------------------------------------===//
#ifndef PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTDECIDER_H
#define PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTDECIDER_H

#include "lib/Import/Weights/WeightTable.h"
#include "partita/Support/NamePattern.h"

namespace partita::importer {

class WeightDecider {
public:
  WeightDecider(WeightTable &weights, const ImportOptions &options)
      : weights(weights), file(weights.file), graph(weights.graph), origins(weights.origins),
        order(weights.order), options(options), budget(weights.file) {}

  /// Fails after one error: an option that matches no tensor, or ties unequal ones.
  mlir::LogicalResult run();

private:
  using Tensor = WeightTable::Tensor;

  // The phases, in their order.
  void locateTensors();
  void findUses();
  mlir::LogicalResult readTrainable(); // WeightOptions.cpp
  mlir::LogicalResult readFreeze();
  void decideKinds();
  void addTableCopies(); // WeightCopies.cpp
  void addDerivedCopies();
  void addFoldedCopies();
  void restoreNames();
  void findMadeBiases();
  mlir::LogicalResult readTies(); // WeightOptions.cpp

  // What they share.
  Tensor *known(llvm::StringRef name) const;
  void addCopy(WeightCopy copy, llvm::StringRef name, llvm::StringRef table);
  bool matches(const NamePattern &pattern, llvm::StringRef name) const;
  llvm::SmallVector<llvm::StringRef>
  namesToSuggest(llvm::function_ref<bool(const Tensor &)> mayBe) const;

  // What one of them consists of.
  bool isMeant(const NamePattern &pattern, const Tensor &tensor) const;
  mlir::LogicalResult checkNotFolded(const NamePattern &pattern, llvm::StringRef text) const;
  bool mayRepeat(const Tensor &tensor) const;
  bool isConstant(const Tensor &tensor);
  void restoreName(const std::string &parameter, const std::string &tensor);
  mlir::LogicalResult tie(llvm::StringRef first, llvm::StringRef second);
  Tensor *named(llvm::StringRef name);

  WeightTable &weights;
  ModelFile &file;
  const onnx::GraphProto &graph;
  const Origins &origins;
  const std::vector<std::string> &order;
  const ImportOptions &options;
  SearchBudget budget;
};

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_WEIGHTS_WEIGHTDECIDER_H
