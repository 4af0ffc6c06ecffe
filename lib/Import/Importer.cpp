//===- Importer.cpp - importOnnx --------------------------------------------------------------===//
//
// 1. --dim gives every input one shape. 2. Initializers become parameters (floats) or known
// tensors (the rest). 3. Each node, in the file's order, is handed to its row of the registry,
// which computes its results if all its inputs are known and emits `tx` otherwise.
// 4. What nothing uses is erased.
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Import/Importer.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Import/File/Devices.h"
#include "lib/Import/FixedDims.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace partita {

FailureOr<OwningOpRef<ModuleOp>> importOnnx(llvm::StringRef path, const ImportOptions &options,
                                            MLIRContext *context) {
  context->loadDialect<func::FuncDialect, tx::TxDialect, train::TrainDialect>();
  auto file = importer::ModelFile::open(path, context);
  if (failed(file))
    return failure();
  importer::Importer importer(**file, options, context);
  if (options.keepGoing)
    return importer.run();
  // An error may be due to a dimension's size: it is reported after that has been found out.
  std::optional<std::pair<Location, std::string>> problem;
  FailureOr<OwningOpRef<ModuleOp>> module = [&] {
    ScopedDiagnosticHandler catcher(context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
        return failure(); // someone else's
      if (!problem)
        problem.emplace(diagnostic.getLocation(), diagnostic.str());
      return success();
    });
    return importer.run();
  }();
  if (succeeded(module) || !problem)
    return module;
  emitError(problem->first) << problem->second
                            << importer::explainFixedDims(**file, options, context,
                                                          importer.whyFailed,
                                                          importer.decidedWeights());
  return failure();
}

namespace importer {

/// Limits in proportion to the file's size, so that a small file cannot ask for much memory: nodes of
/// inlined function calls, elements of sequences (each node that inserts into a sequence makes
/// another), elements of folded tensors.
constexpr int64_t leastInlinedNodes = 1 << 12, bytesOfInlinedNode = 8;
constexpr int64_t leastListed = 1 << 22, bytesOfListed = 8;
constexpr int64_t leastFold = 1 << 14, mostFold = 1 << 24, masks = 64;

int64_t foldLimit(const ModelFile &file, const ImportOptions &options) {
  if (options.foldLimit)
    return options.foldLimit;
  uint64_t length = 1;
  for (const auto &[name, size] : options.dims)
    length = std::max(length, static_cast<uint64_t>(std::clamp<int64_t>(size, 1, mostFold)));
  uint64_t wanted = std::max(file.bytes(), masks * length * length);
  return static_cast<int64_t>(std::clamp<uint64_t>(wanted, leastFold, mostFold));
}

Importer::Importer(ModelFile &file, const ImportOptions &options, MLIRContext *context,
                   Weights *decided)
    : file(file), folder(0, 0), builder(context), options(options),
      ownWeights(decided ? nullptr : std::make_unique<Weights>(file, options)),
      weights(decided ? *decided : *ownWeights), devices(std::make_unique<Devices>(*this)) {}

Importer::~Importer() = default;

Tensor *Importer::create(HostTensor host) {
  Tensor &tensor = tensors.emplace_back();
  tensor.type = host.type();
  tensor.shape.assign(host.shape().begin(), host.shape().end());
  tensor.host = std::move(host);
  return &tensor;
}

static DType dtypeOf(Type type) {
  for (DType each : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i64, DType::i32})
    if (mlirType(each, type.getContext()) == type)
      return each;
  return DType::boolean;
}

Tensor *Importer::create(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Tensor &tensor = tensors.emplace_back();
  tensor.type = dtypeOf(type.getElementType());
  tensor.shape.assign(type.getShape().begin(), type.getShape().end());
  tensor.value = value;
  return &tensor;
}

bool Importer::mayList(int64_t count) {
  listed += count;
  return listed <= std::max<int64_t>(leastListed, file.bytes() / bytesOfListed);
}

Tensor *Importer::createSequence(DType type, llvm::ArrayRef<Tensor *> parts) {
  Tensor &tensor = tensors.emplace_back();
  tensor.type = type;
  tensor.sequence = std::make_shared<const llvm::SmallVector<Tensor *>>(parts);
  return &tensor;
}

FailureOr<OwningOpRef<ModuleOp>> Importer::run() {
  const onnx::ModelProto &model = file.model();
  for (const onnx::FunctionProto &function : model.functions()) {
    std::string key = functionKey(function.domain(), function.name(), function.overload());
    if (!functions.insert({key, &function}).second) {
      error() << "function " << quoted(function.name()) << " is defined twice";
      return failure();
    }
    if (failed(checkOpsets(function.opset_import(), functionOpsets[&function])))
      return failure();
  }
  if (model.opset_import_size() == 0) {
    error() << "not an ONNX file: it names no opset";
    return failure();
  }
  module = ModuleOp::create(file.location());
  (*module)->setAttr(train::TrainDialect::kModel, builder.getStringAttr(file.path()));
  Frame frame;
  frame.opsets = &modelOpsets;
  if (failed(checkOpsets(model.opset_import(), modelOpsets)))
    return failure();
  if (std::vector<std::string> missing = listMissing(model, context()); !missing.empty()) {
    error() << llvm::join(missing, "; ");
    if (!options.keepGoing)
      return failure();
    broken = true;
    reportedMissing.insert_range(missing);
  }
  if (failed(devices->readConfigurations(model)) || failed(importInputs(frame)) ||
      failed(weights.decide()))
    return failure();
  if (failed(importInitializers(model.graph(), frame.scope)))
    return failure();
  folder = Folder(foldLimit(file, options), 16 * mostFold);
  maxInlinedNodes = std::max<int64_t>(leastInlinedNodes, file.bytes() / bytesOfInlinedNode);
  tieWeights(frame.scope);
  LogicalResult complete = success(succeeded(importNodes(model.graph().node(), frame)) &&
                                   succeeded(importOutputs(frame)));
  reportProblems();
  if (failed(complete) || broken)
    return failure();
  devices->describe(*module);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(forward.getBody().front())))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
  llvm::StringSet<> read;
  forward.walk([&](train::ReadOp op) { read.insert(op.getSymbol()); });
  for (auto parameter : llvm::make_early_inc_range(module->getOps<train::ParameterOp>()))
    if (!read.contains(parameter.getSymName()))
      parameter.erase();
  llvm::StringSet<> used;
  for (auto parameter : module->getOps<train::ParameterOp>())
    if (auto initial = parameter.getInitialAttr())
      used.insert(initial.getFile().getValue());
  llvm::erase_if(
      noted, [&](Attribute file) { return !used.contains(cast<train::FileAttr>(file).getName()); });
  noteGuesses();
  if (!noted.empty())
    (*module)->setAttr(train::TrainDialect::kFiles, builder.getArrayAttr(noted));
  return std::move(module);
}

LogicalResult
Importer::checkOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &imports,
                      llvm::StringMap<int64_t> &opsets) {
  for (const onnx::OperatorSetIdProto &import : imports) {
    auto [it, isNew] = opsets.insert({canonicalDomain(import.domain()), import.version()});
    if (!isNew && it->second != import.version())
      return error() << "opset domain " << quoted(import.domain()) << " is imported as version "
                     << it->second << " and as version " << import.version();
    if (std::string problem = opsetProblem(it->first(), import.version()); !problem.empty())
      return error() << problem;
  }
  return success();
}

} // namespace importer
} // namespace partita
