//===- Unsupported.cpp - everything that prevents a model's import ----------------------------===//
//
// Lists everything at once: operators without a row in the registry, in the model's own nodes, in the
// functions that it calls and, if anything is missing there, in branches too (on their own these are
// no reason to refuse a model: only one of two branches is taken); element types of inputs, tensors
// and casts; batch normalizations in training mode; sparse tensors.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/File/ExportRecord.h"
#include "lib/Import/Importer.h"
#include "lib/Import/Operators/Norm.h"
#include "lib/Import/Operators/Refusals.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

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
    entry.text = quoted(node.op_type()) + " (domain " +
                 (domain.empty() ? "ai.onnx" : quoted(domain)) + ", opset " +
                 (version ? std::to_string(version) : "not imported") +
                 (knowsOp(domain, node.op_type()) ? ": only other versions are known" : "") +
                 ", node " + quoted(nodeName(node));
    if (std::optional<ProgramCall> call = callOf(node); call && call->operation != "?")
      entry.text += (" of aten." + call->operation).str();
    std::string hint = knowsOp(domain, node.op_type()) ? "" : refusalHint(domain, node.op_type());
    if (!hint.empty())
      hints.push_back(std::move(hint));
  }

  size_t size() const { return order.size(); }

  std::string text() {
    std::string result;
    llvm::raw_string_ostream os(result);
    os << size() << (size() == 1 ? " operator is" : " operators are") << " not supported: ";
    llvm::interleaveComma(order, os, [&](const std::string &key) {
      const Entry &entry = entries[key];
      os << entry.text;
      if (entry.count > 1)
        os << " and " << entry.count - 1 << " more";
      os << ")";
    });
    for (const std::string &hint : hints)
      os << "; " << hint;
    return result;
  }

private:
  struct Entry {
    std::string text;
    int64_t count = 0;
  };
  llvm::StringMap<Entry> entries;
  std::vector<std::string> order;
  std::vector<std::string> hints; ///< what makes these operators, and what to write instead
};

bool isKnown(int64_t type, MLIRContext *context) {
  std::optional<DType> known = dtypeFromOnnx(type);
  return known && mlirType(*known, context);
}

/// The kind of a value that is not a tensor; null for a tensor.
const char *kindOf(const onnx::TypeProto &type) {
  return type.has_sequence_type()        ? "a sequence"
         : type.has_map_type()           ? "a map"
         : type.has_sparse_tensor_type() ? "a sparse tensor"
         : type.has_optional_type()      ? "an optional value"
                                         : nullptr;
}

/// Walks all nodes that an import could reach.
class Search {
public:
  Search(const onnx::ModelProto &model, MLIRContext *context) : model(model), context(context) {
    for (const onnx::FunctionProto &function : model.functions())
      functions[functionKey(function.domain(), function.name(), function.overload())] = &function;
    for (const UpdatedTensor &each : updatedTensors(model.graph()))
      updated.insert(each.target);
  }

  /// What the whole model lacks.
  std::vector<std::string> run() {
    types();
    return run(model.graph().node(), opsetsOf(model.opset_import()));
  }

  /// What these nodes lack.
  std::vector<std::string> run(const Nodes &nodes, std::shared_ptr<Opsets> modelOpsets) {
    Work work{{&nodes, std::move(modelOpsets)}}, branches;
    for (bool inBranches : {false, true}) {
      if (inBranches && (listing.size() > 0 || !others.empty()))
        std::swap(work, branches);
      while (!work.empty()) {
        auto [list, opsets] = work.pop_back_val();
        for (const onnx::NodeProto &node : *list)
          visit(node, opsets, work, branches);
        if (inBranches && work.empty())
          std::swap(work, branches);
      }
    }
    if (listing.size() > 0)
      others.insert(others.begin(), listing.text());
    return std::move(others);
  }

private:
  using Work = llvm::SmallVector<std::pair<const Nodes *, std::shared_ptr<Opsets>>>;

  static std::shared_ptr<Opsets>
  opsetsOf(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &imports) {
    auto opsets = std::make_shared<Opsets>();
    for (const onnx::OperatorSetIdProto &import : imports)
      opsets->insert({canonicalDomain(import.domain()), import.version()});
    return opsets;
  }

  void kind(const char *place, const onnx::ValueInfoProto &value) {
    if (const char *kind = kindOf(value.type()))
      others.push_back(std::string(place) + " " + quoted(value.name()) + " is " + kind +
                       ": a program's values are tensors, each of one shape");
  }

  void types() {
    for (const onnx::ValueInfoProto *input : realInputs(model.graph()))
      kind("input", *input);
    for (const onnx::ValueInfoProto &output : model.graph().output())
      kind("output", output);
    for (const onnx::ValueInfoProto *input : realInputs(model.graph())) {
      int64_t type = input->type().tensor_type().elem_type();
      if (type != 0 && !isKnown(type, context))
        others.push_back("input " + quoted(input->name()) + " has element type " + dtypeName(type) +
                         ", which is not supported: export the model with an input of " +
                         valueTypeNames(context));
    }
    for (const onnx::TensorProto &tensor : model.graph().initializer())
      if (!dtypeFromOnnx(tensor.data_type()))
        others.push_back("tensor " + quoted(tensor.name()) + ": element type " +
                         dtypeName(tensor.data_type()) + " is not supported, only " +
                         readableTypeNames());
    if (int sparse = model.graph().sparse_initializer_size())
      others.push_back("sparse initializers are not supported, the model has " +
                       std::to_string(sparse));
  }

  /// What is in training mode: the node (""), or what the exporter has folded into it. Null if nothing is.
  const char *inTraining(const onnx::NodeProto &node) const {
    const OpRow &facts = factsOf(node);
    bool updates =
        facts.keepsStatistics &&
        llvm::any_of(node.input(), [&](const std::string &name) { return updated.contains(name); });
    if (updates || updatesStatistics(node))
      return "";
    return facts.biasOperand >= 0 && isBatchNormInTraining(node) ? "the BatchNorm folded into it "
                                                                 : nullptr;
  }

  void visit(const onnx::NodeProto &node, const std::shared_ptr<Opsets> &opsets, Work &work,
             Work &branches) {
    if (const onnx::FunctionProto *function =
            functions.lookup(functionKey(node.domain(), node.op_type(), node.overload()))) {
      if (seen.insert(function).second)
        work.push_back({&function->node(), opsetsOf(function->opset_import())});
      return;
    }
    llvm::StringRef domain = canonicalDomain(node.domain());
    int64_t version = opsets->lookup(domain);
    for (const onnx::AttributeProto &attribute : node.attribute()) {
      if (attribute.has_g())
        branches.push_back({&attribute.g().node(), opsets});
      if (node.op_type() == "Cast" && attribute.name() == "to" && attribute.has_i() &&
          !dtypeFromOnnx(attribute.i()))
        others.push_back("node " + quoted(nodeName(node)) + " (Cast): to " +
                         dtypeName(attribute.i()) + " is not supported, only to " +
                         valueTypeNames(context));
    }
    if (const char *normalization = inTraining(node))
      others.push_back("node " + quoted(nodeName(node)) + " (" + node.op_type() +
                       "): " + normalization + kBatchNormTraining.str());
    if (!findOp(domain, node.op_type(), version))
      listing.add(node, domain, version);
    if (domain == "com.microsoft.nchwc" && !inLayoutOfOneMachine) {
      inLayoutOfOneMachine = true;
      others.push_back("onnxruntime has laid tensors out for the caches of one machine (domain "
                       "'com.microsoft.nchwc'): save the model with its optimization level "
                       "ORT_ENABLE_EXTENDED or a lower one");
    }
  }

  const onnx::ModelProto &model;
  MLIRContext *context;
  llvm::StringMap<const onnx::FunctionProto *> functions;
  llvm::StringSet<> updated; ///< by the forward pass, as the exporter's record says
  llvm::DenseSet<const onnx::FunctionProto *> seen;
  Listing listing;
  std::vector<std::string> others;
  bool inLayoutOfOneMachine = false;
};

} // namespace

std::string functionKey(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload) {
  return (canonicalDomain(domain) + llvm::Twine('\0') + name + llvm::Twine('\0') + overload).str();
}

std::vector<std::string> listMissing(const onnx::ModelProto &model, MLIRContext *context) {
  return Search(model, context).run();
}

LogicalResult Importer::checkSupported(const Nodes &nodes, const Frame &frame) {
  std::vector<std::string> missing =
      Search(file.model(), context()).run(nodes, std::make_shared<Opsets>(*frame.opsets));
  if (missing.empty())
    return success();
  if (!options.keepGoing)
    return error() << llvm::join(missing, "; ");
  broken = true;
  for (const std::string &each : missing)
    if (reportedMissing.empty()) // else reported with all branches
      noteProblem("", each);
  return success();
}

} // namespace partita::importer
