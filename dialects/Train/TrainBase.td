//===- TrainBase.td - the dialect, and the class that op definitions are made of -----------------------===//

#ifndef PARTITA_TRAIN_BASE
#define PARTITA_TRAIN_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "dialects/Interfaces/Interfaces.td"
include "dialects/Interfaces/Tables.td"

def Train_Dialect : Dialect {
  let name = "train";
  let cppNamespace = "::partita::train";
  let dependentDialects = ["::partita::par::ParDialect"]; // the mesh, over which a value may be split
  let summary = "parameters and states as symbols, accumulation, loss and updates";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let extraClassDeclaration = [{
    /// On a function's argument: its meaning, which decides how it is filled ("ids", "labels", "positions",
    /// ...; Roles.cpp has the table).
    static constexpr ::llvm::StringLiteral kRole = "train.role";
    /// On a function's argument: the number that fills in for missing data: the label that does not count, the
    /// first of shifted tokens.
    static constexpr ::llvm::StringLiteral kFiller = "train.filler";
    /// On a function's argument or result, or a parameter: its name in the model.
    static constexpr ::llvm::StringLiteral kName = "train.name";
    /// On a function's argument: the dimension that runs over the samples of a batch.
    static constexpr ::llvm::StringLiteral kBatch = "train.batch";
    /// On the module: #train.plan.
    static constexpr ::llvm::StringLiteral kPlan = "train.plan";
    /// On the module, by import: the path of the model's file, a string.
    static constexpr ::llvm::StringLiteral kModel = "train.model";
    /// On the module, by `pack-documents`: the token that ends a document in packed rows, an i64.
    static constexpr ::llvm::StringLiteral kDocumentEnd = "train.document_end";
    /// On the module: the objective and the reason for it, as text.
    static constexpr ::llvm::StringLiteral kObjective = "train.objective";
    /// On the module: the files with `initial` values, as import found them: an array of #train.file.
    static constexpr ::llvm::StringLiteral kFiles = "train.files";
    /// On the module: the device configurations of the model's file, by name: a dictionary of
    /// `devices`, `stages` (the pipeline stages that nodes are in) and `tensors` (annotated ones).
    static constexpr ::llvm::StringLiteral kConfigurations = "train.configurations";
    /// On a parameter, or an op with one result: an array of #train.sharding, at most one for each
    /// configuration.
    static constexpr ::llvm::StringLiteral kShardings = "train.shardings";
    /// On a parameter: an array of #train.stored, the tensors of the model's file that hold it (Tensors.h).
    static constexpr ::llvm::StringLiteral kTensors = "train.tensors";
    /// On the module: an array of #train.note, the guesses that import had to make.
    static constexpr ::llvm::StringLiteral kNotes = "train.notes";
    /// On the module: names of the file's tensors that --freeze matches and that are constants anyway.
    static constexpr ::llvm::StringLiteral kFrozenConstants = "train.frozen_constants";
    /// On the module, by `note-flops`: an array of #train.work, of its training step or, without one, of @forward.
    static constexpr ::llvm::StringLiteral kWork = "train.work";
    /// On a program of pipeline stages, by `note-costs`: an array of #train.span.
    static constexpr ::llvm::StringLiteral kSpans = "train.spans";
    /// On a program of pipeline stages that trains, by `choose-schedule`: #train.schedule.
    static constexpr ::llvm::StringLiteral kSchedule = "train.schedule";
    /// On a pipeline stage, by `note-schedule`: #train.costs.
    static constexpr ::llvm::StringLiteral kCosts = "train.costs";
    /// On a pipeline stage that does not train, by `note-schedule`: the cost of its share of @forward, an i64.
    static constexpr ::llvm::StringLiteral kForwardCost = "train.forward_cost";
    /// On an op of a pass of a loop with an order, a unit: it runs only in the pass's last slot. Its results are used by such ops or
    /// are last values of the pass.
    static constexpr ::llvm::StringLiteral kLast = "train.last";
    /// On a function: #train.entry_point; see entryPointOf.
    static constexpr ::llvm::StringLiteral kEntryPoint = "train.entry_point";
  }];
}

class Train_Attr<string name, string mnem> : AttrDef<Train_Dialect, name> { let mnemonic = mnem; }
class Train_Table<string name, string mnemonic> : Table<Train_Dialect, name, mnemonic>;
class Train_Op<string mnemonic, list<Trait> traits = []> : Op<Train_Dialect, mnemonic, traits>;

#endif // PARTITA_TRAIN_BASE
