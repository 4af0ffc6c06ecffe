//===- Importer.h - walks an ONNX graph and builds @forward -----------------------------------===//
#ifndef PARTITA_LIB_IMPORT_IMPORTER_H
#define PARTITA_LIB_IMPORT_IMPORTER_H

#include "dialects/Train/Train.h"
#include "lib/Import/BatchDims.h"
#include "lib/Import/Folding/Folder.h"
#include "lib/Import/Operators/Registry.h"
#include "lib/Import/Weights/Weights.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "onnx.pb.h"
#include "partita/Import/Import.h"
#include "partita/Import/ModelFile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <deque>

namespace partita::importer {

/// A value of the ONNX graph: known contents, a value of the program, or both after a known one was
/// needed there. A parameter has neither until its first use.
struct Tensor {
  DType type = DType::f32;
  Shape shape;
  MaybeHost host;
  mlir::Value value;
  const onnx::TensorProto *initializer = nullptr; // read, or made a parameter, on first use
  bool isBuffer = false;                          // an initializer that is a constant
  bool isMeasured = false, hasBatch = false;      // BatchDims.h: depends on a shape, on the batch
  Tensor *copyOf = nullptr;                       // an initializer: its table, of which it is
  const WeightCopy *copy = nullptr;               // this copy
  /// A list of tensors of one element type, which only operators on sequences take.
  std::shared_ptr<const llvm::SmallVector<Tensor *>> sequence;
  /// A result of a node that failed, if the import keeps going: nothing is known about it. If
  /// `isGuessed`, `type` and `shape` are probable.
  bool unavailable = false, isGuessed = false;
};

/// Names that an ONNX graph, or the body of a function, can see.
struct Scope {
  const Scope *parent = nullptr; // an If branch sees the graph around it
  llvm::StringMap<Tensor *> values;

  Tensor *find(llvm::StringRef name) const {
    for (const Scope *scope = this; scope; scope = scope->parent)
      if (auto it = scope->values.find(name); it != scope->values.end())
        return it->second;
    return nullptr;
  }
  /// Is the name known? (find() is null also for an argument that a function call leaves out.)
  bool defines(llvm::StringRef name) const {
    for (const Scope *scope = this; scope; scope = scope->parent)
      if (scope->values.contains(name))
        return true;
    return false;
  }
};

/// What surrounds a node: its scope and, in a model-local function, whose opsets and attributes.
struct Frame {
  Scope scope;
  const llvm::StringMap<int64_t> *opsets = nullptr;
  const Frame *caller = nullptr; // of a function's body
  const onnx::FunctionProto *function = nullptr;
  llvm::StringMap<const onnx::AttributeProto *> functionAttributes;
  std::string prefix; // of node names
};

/// The most dimensions of a tensor that a report substitutes for an unavailable one.
constexpr int64_t mostStandInDims = 5;

/// How many distinct elements a folded tensor may have: ImportOptions::foldLimit, or a limit in
/// proportion to the file.
int64_t foldLimit(const ModelFile &file, const ImportOptions &options);

class Importer {
public:
  /// `decided`: what is trained, as another import of the file has decided (sizes of dimensions do not
  /// matter).
  Importer(ModelFile &file, const ImportOptions &options, mlir::MLIRContext *context,
           Weights *decided = nullptr);
  ~Importer();

  mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>> run();

  mlir::MLIRContext *context() { return builder.getContext(); }
  mlir::InFlightDiagnostic error() { return mlir::emitError(file.location()); }

  Tensor *create(HostTensor host);
  Tensor *create(mlir::Value value);
  /// What is trained, for another import of the file.
  Weights &decidedWeights() { return weights; }
  /// Does a constant shape of the imported program mix samples (BatchDims.h)?
  bool mixesSamples() const { return batch.mixesSamples(); }

  /// Counts elements of sequences; false when all that the model makes have become too many.
  bool mayList(int64_t count);
  Tensor *createSequence(DType type, llvm::ArrayRef<Tensor *> parts);
  /// The tensor as a value of the program. Its type must be one that `tx` has.
  mlir::Value materialize(Tensor *tensor, mlir::Location loc);

  /// Imports `nodes` in order. Branches and function bodies come back here.
  mlir::LogicalResult importNodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
                                  Frame &frame);
  /// Makes the initializers of a graph known in `scope`.
  mlir::LogicalResult importInitializers(const onnx::GraphProto &graph, Scope &scope);
  /// Reports, as one error, everything unsupported in the nodes of a branch, unless already reported.
  mlir::LogicalResult
  checkSupported(const google::protobuf::RepeatedPtrField<onnx::NodeProto> &nodes,
                 const Frame &frame);

  void tieWeights(Scope &scope);
  /// Puts the notes on guesses on the module.
  void noteGuesses();
  /// On the first use of an initializer: reads it, or makes it a parameter.
  mlir::LogicalResult loadInitializer(Tensor &tensor);
  /// The parameter with this symbol, if it has been used.
  train::ParameterOp parameter(llvm::StringRef symbol) const { return parameters.lookup(symbol); }
  /// Notes the file that a parameter's values are in, once.
  mlir::LogicalResult noteFile(llvm::StringRef name, const TensorData &data,
                               ModelFile::EmitError emitError);

  ModelFile &file;
  Folder folder;
  mlir::OpBuilder builder;
  /// Training-mode dropouts met so far.
  int64_t dropouts = 0;
  bool keepsGoing() const { return options.keepGoing; }
  /// The dimension that the user has given this size; empty if none has it, or several.
  llvm::StringRef dimOfSize(int64_t size) const;
  /// How far a failed import got, for FixedDims.h.
  struct Failure {
    llvm::SmallVector<int64_t> numbers; // sizes and short lists of integers at the failed node
    int64_t done = 0;                   // nodes and outputs imported before it
    bool shapesClash = false;           // sizes that should be equal are not
    std::pair<int64_t, int64_t> clash;  // these two, if they are known
  };
  Failure whyFailed;

private:
  mlir::Value readParameter(const Tensor &tensor, train::ParameterOp parameter);
  mlir::Value readCopy(const Tensor &tensor);
  mlir::LogicalResult makeParameter(Tensor &tensor, const TensorData &data);
  /// The tensors of the file that hold this tensor's parameter; empty if this is the only one, and
  /// unchanged.
  mlir::ArrayAttr tensorsOf(const onnx::TensorProto &proto);
  mlir::LogicalResult importInputs(Frame &frame);
  llvm::StringRef fixedRole(llvm::StringRef name, mlir::Type type) const;
  mlir::LogicalResult importOutputs(const Frame &frame);
  mlir::LogicalResult importNode(const onnx::NodeProto &proto, Frame &frame);
  mlir::LogicalResult
  checkOpsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto> &imports,
              llvm::StringMap<int64_t> &opsets);
  mlir::LogicalResult importOutput(const onnx::ValueInfoProto &output, const Frame &frame,
                                   llvm::SmallVectorImpl<mlir::Value> &results,
                                   llvm::SmallVectorImpl<mlir::DictionaryAttr> &attributes);

  // An import that keeps going (KeepGoing.cpp); `broken` is set after the first error.
  Tensor *createUnavailable();
  void markUnavailable(const onnx::NodeProto &proto, Frame &frame);
  mlir::LogicalResult catchErrors(llvm::function_ref<mlir::LogicalResult()> body,
                                  llvm::SmallVectorImpl<std::string> &errors);
  mlir::LogicalResult runNode(const OpRow &row, class Node &node);
  void noteNumbers(const Tensor *tensor);
  void tryStandIns(const OpRow &row, const onnx::NodeProto &proto, Frame &frame, int64_t version);
  Tensor *standIn(size_t number);
  void noteProblem(const class Node &node, llvm::StringRef text);
  void noteProblem(llvm::StringRef nodeName, llvm::StringRef text);
  void reportProblems();

  const onnx::FunctionProto *findFunction(const onnx::NodeProto &node) const;
  mlir::LogicalResult callFunction(const onnx::FunctionProto &function, class Node &call);

  const ImportOptions &options;
  std::unique_ptr<Weights> ownWeights;
  Weights &weights;
  std::unique_ptr<class Devices> devices;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp forward;
  mlir::Operation *lastRead = nullptr; // reads stand at the start of @forward, in order of use
  std::deque<Tensor> tensors;
  llvm::StringMap<int64_t> modelOpsets;
  llvm::StringMap<const onnx::FunctionProto *> functions; // by domain, name and overload
  std::map<const onnx::FunctionProto *, llvm::StringMap<int64_t>> functionOpsets;
  llvm::DenseMap<const onnx::TensorProto *, TensorData> initializerData;
  llvm::StringMap<train::ParameterOp> parameters; // by symbol
  llvm::StringSet<> notedFiles;
  llvm::SmallVector<mlir::Attribute> noted;               // TrainDialect::kFiles
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants; // each stands once
  int64_t listed = 0;                                     ///< in sequences
  int64_t inlinedNodes = 0, maxInlinedNodes = 0;

  struct Problem {
    std::string text;   // for the first node that has it
    int64_t others = 0; // more nodes
  };
  std::vector<Problem> problems;
  llvm::StringMap<size_t> problemOf; // by the text without the node's name
  llvm::SmallVector<Tensor *> standIns;
  llvm::StringSet<> reportedMissing; // before the import began
  bool broken = false;
  BatchDims batch;
};

/// Sizes for the symbolic dimensions of `graph`'s inputs, from `--dim`. On success every input
/// has one shape in `shapes`, in order of the graph's inputs that are not initializers.
mlir::LogicalResult bindDims(const onnx::GraphProto &graph, const ImportOptions &options,
                             llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                             llvm::SmallVectorImpl<Shape> &shapes);
/// Everything that prevents the model's import, as far as it is known without importing it.
std::vector<std::string> listMissing(const onnx::ModelProto &model, mlir::MLIRContext *context);
/// A node's name or, where it has none, that of its first result, or else its operator.
llvm::StringRef nodeName(const onnx::NodeProto &proto);
/// The key of a model-local function.
std::string functionKey(llvm::StringRef domain, llvm::StringRef name, llvm::StringRef overload);
/// The graph's inputs that are not initializers (old files list both).
llvm::SmallVector<const onnx::ValueInfoProto *> realInputs(const onnx::GraphProto &graph);
/// "input.1", what `--dim` calls a dimension without a name in the file.
std::string axisName(const onnx::ValueInfoProto &input, int axis);

} // namespace partita::importer

#endif // PARTITA_LIB_IMPORT_IMPORTER_H
