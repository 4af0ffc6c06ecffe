//===- Weights.cpp ----------------------------------------------------------------------------===//

#include "lib/Import/Weights/Weights.h"
#include "lib/Import/Weights/WeightDecider.h"
#include "lib/Import/Weights/WeightNotes.h"

using namespace mlir;

namespace partita::importer {

Weights::Weights(ModelFile &file, const ImportOptions &options)
    : options(options), table(std::make_unique<WeightTable>(file)) {}

Weights::~Weights() = default;

LogicalResult Weights::decide() {
  if (!decided) {
    decided = succeeded(WeightDecider(*table, options).run());
    if (*decided)
      noted = NoteFinder(*table).run();
  }
  return success(*decided);
}

bool Weights::isParameter(llvm::StringRef name) const { return table->isParameter(name); }
bool Weights::isUnreadConstant(llvm::StringRef name) const { return table->isUnreadConstant(name); }
const std::vector<WeightCopy> &Weights::copies() const { return table->copies; }
bool Weights::isReshaped(const WeightCopy &copy) const { return table->isReshaped(copy); }
const OriginalParameter *Weights::original(llvm::StringRef name) const {
  return table->original(name);
}
llvm::StringRef Weights::originOf(llvm::StringRef name) const { return table->originOf(name); }
train::Folded Weights::foldedBy(llvm::StringRef name) const { return table->foldedBy(name); }
llvm::SmallVector<int64_t, 2> Weights::originalDimensions(llvm::StringRef name) const {
  return table->originalDimensions(name);
}
const llvm::StringSet<> &Weights::bufferNames() const { return table->buffers; }

std::vector<std::string> Weights::frozenConstants() const {
  std::vector<std::string> held;
  llvm::copy_if(table->order, std::back_inserter(held), [&](const std::string &name) {
    return table->isFrozen(name) && !table->isParameter(name);
  });
  return held;
}

} // namespace partita::importer
