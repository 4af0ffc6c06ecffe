//===- Registry.cpp ---------------------------------------------------------------------------===//

#include "lib/Import/Operators/Registry.h"
#include "lib/Import/File/ExportRecord.h"
#include "onnx.pb.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"

namespace partita::importer {

llvm::StringRef canonicalDomain(llvm::StringRef domain) {
  return domain == "ai.onnx" ? llvm::StringRef() : domain;
}

using Rows = llvm::SmallVector<const OpRow *, 1>;

static const llvm::StringMap<Rows> &registry() {
  static const llvm::StringMap<Rows> rows = [] {
    llvm::StringMap<Rows> result;
    for (llvm::ArrayRef<OpRow> table :
         {elementwiseOps(), activationOps(),    logicOps(),  shapeOps(),    sliceOps(),
          sequenceOps(),    padOps(),           resizeOps(), indexingOps(), countingOps(),
          generatorOps(),   linearOps(),        einsumOps(), convOps(),     attentionOps(),
          microsoftOps(),   microsoftNormOps(), lossOps(),   normOps(),     reductionOps(),
          controlOps()})
      for (const OpRow &row : table)
        result[row.type].push_back(&row);
    return result;
  }();
  return rows;
}

std::string opsetProblem(llvm::StringRef domain, int64_t version) {
  if (!domain.empty() || version <= newestOpset)
    return {};
  return "opset " + std::to_string(version) + " of ai.onnx is newer than " +
         std::to_string(newestOpset) + ", the newest known here; export with an older one";
}

const OpRow *findOp(llvm::StringRef domain, llvm::StringRef type, int64_t version) {
  auto it = registry().find(type);
  if (it == registry().end())
    return nullptr;
  for (const OpRow *row : it->second)
    if (canonicalDomain(domain) == row->domain && row->since <= version && version <= row->until)
      return row;
  return nullptr;
}

static const OpRow *anyRow(llvm::StringRef domain, llvm::StringRef type) {
  auto it = registry().find(type);
  if (it == registry().end())
    return nullptr;
  for (const OpRow *row : it->second)
    if (canonicalDomain(domain) == row->domain)
      return row;
  return nullptr;
}

const OpRow &factsOf(const onnx::NodeProto &node) {
  static constexpr OpRow unknown{"", "", 0, 0, nullptr};
  const OpRow *row = anyRow(node.domain(), node.op_type());
  return row ? *row : unknown;
}

bool updatesStatistics(const onnx::NodeProto &node) {
  if (!factsOf(node).keepsStatistics)
    return false;
  return node.output_size() > 1 || isBatchNormInTraining(node) ||
         llvm::any_of(node.attribute(), [](const onnx::AttributeProto &each) {
           return each.name() == "training_mode" && each.i() != 0;
         });
}

bool knowsOp(llvm::StringRef domain, llvm::StringRef type) { return anyRow(domain, type); }

} // namespace partita::importer
