//===- Unsupported.cpp - every operator that a model has and the registry has not -------------===//
//
// The list is complete at once: the model's own nodes, those of the functions that it calls and, if
// any of these is unknown, those of branches too (which alone are no reason to refuse a model: only
// one of two is taken).
//
//===----------------------------------------------------------------------------------------===//

#include "Importer.h"

using namespace mlir;

namespace partita::importer {

namespace {

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using Opsets = llvm::StringMap<int64_t>;

/// Operators in order of appearance, each with its first node and how often it stands.
class Listing {
public:
  void add(const onnx::NodeProto &node, llvm::StringRef domain, int64_t version) {
    std::string key = domain.str() + '\0' + node.op_type() + '\0' + std::to_string(version);
    Entry &entry = entries[key];
    if (entry.count++ > 0)
      return;
    order.push_back(key);
    llvm::StringRef name = !node.name().empty()     ? llvm::StringRef(node.name())
                           : node.output_size() > 0 ? llvm::StringRef(node.output(0))
                                                    : llvm::StringRef();
    entry.text = quoted(node.op_type()) + " (domain " +
                 (domain.empty() ? "ai.onnx" : quoted(domain)) + ", opset " +
                 (version ? std::to_string(version) : "not imported") +
                 (knowsOp(domain, node.op_type()) ? ": only other versions are known" : "") +
                 ", node " + quoted(name);
  }

  size_t size() const { return order.size(); }

  void print(InFlightDiagnostic &diagnostic) {
    diagnostic << size() << (size() == 1 ? " operator is" : " operators are") << " not supported: ";
    llvm::interleaveComma(order, diagnostic, [&](const std::string &key) {
      const Entry &entry = entries[key];
      diagnostic << entry.text;
      if (entry.count > 1)
        diagnostic << " and " << entry.count - 1 << " more";
      diagnostic << ")";
    });
  }

private:
  struct Entry {
    std::string text;
    int64_t count = 0;
  };
  llvm::StringMap<Entry> entries;
  std::vector<std::string> order;
};

} // namespace

LogicalResult Importer::checkSupported(const Nodes &nodes, const Frame &frame) {
  Listing listing;
  llvm::DenseSet<const onnx::FunctionProto *> seen;
  using Work = llvm::SmallVector<std::pair<const Nodes *, const Opsets *>>;
  Work work{{&nodes, frame.opsets}}, branches;
  auto visit = [&](const Nodes &list, const Opsets &opsets) {
    for (const onnx::NodeProto &node : list) {
      if (const onnx::FunctionProto *function = findFunction(node)) {
        if (seen.insert(function).second)
          work.push_back({&function->node(), &functionOpsets[function]});
        continue;
      }
      llvm::StringRef domain = canonicalDomain(node.domain());
      int64_t version = opsets.lookup(domain);
      for (const onnx::AttributeProto &attribute : node.attribute())
        if (attribute.has_g())
          branches.push_back({&attribute.g().node(), &opsets});
      if (!findOp(domain, node.op_type(), version))
        listing.add(node, domain, version);
    }
  };
  for (bool inBranches : {false, true}) {
    if (inBranches && listing.size() > 0)
      std::swap(work, branches);
    while (!work.empty()) {
      auto [list, opsets] = work.pop_back_val();
      visit(*list, *opsets);
      if (inBranches && work.empty())
        std::swap(work, branches);
    }
  }
  if (listing.size() == 0)
    return success();
  InFlightDiagnostic diagnostic = error();
  listing.print(diagnostic);
  return diagnostic;
}

} // namespace partita::importer
