//===- ReduceProgram.cpp - shrinks a failing program ------------------------------------------===//
//
// Upstream's reduction-tree erases ops regardless of their users and cannot reduce a chain of
// values. This pass leaves a valid program at every step. It erases chunks of ops: each result is
// replaced by an operand of the same type (first by the first such operand, then by the last), or
// else by zeros, or else the op is kept; unused ops are erased. Chunks are halved down to single
// ops, and the process repeats as long as something shrinks (delta debugging: Zeller and
// Hildebrandt, 2002). Then functions lose their results.
//
//===------------------------------------------------------------------------------------------===//

#include "tools/partita-reduce/ReduceProgram.h"
#include "dialects/Tx/Tx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "partita/Support/TemporaryFolder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace partita;

namespace {

/// Creates zeros of the type before the op; returns null if there is no such constant.
Value zerosBefore(Operation *op, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  OpBuilder builder(op);
  TypedAttr zero = tensor ? builder.getZeroAttr(tensor.getElementType()) : TypedAttr();
  if (!zero)
    return {};
  auto plain = RankedTensorType::get(tensor.getShape(), tensor.getElementType());
  return tx::ConstantOp::create(builder, op->getLoc(), type,
                                DenseElementsAttr::get(plain, Attribute(zero)));
}

/// Which operand replaces an op if several have the same type.
enum class Take { First, Last };

/// Erases the op, if its results can be replaced.
void cut(Operation *op, Take take) {
  if (op->hasTrait<OpTrait::IsTerminator>() ||
      (op->hasTrait<OpTrait::ConstantLike>() && !op->use_empty()))
    return;
  if (auto symbol = dyn_cast<SymbolOpInterface>(op)) {
    if (SymbolTable::symbolKnownUseEmpty(op, op->getParentOp()))
      op->erase();
    return;
  }
  for (Value result : op->getResults()) {
    if (result.use_empty())
      continue;
    Value other;
    for (Value operand : op->getOperands())
      if (operand.getType() == result.getType() && (!other || take == Take::Last))
        other = operand;
    if (!other)
      other = zerosBefore(op, result.getType());
    if (!other)
      return;
    result.replaceAllUsesWith(other);
  }
  op->erase();
}

/// Erases pure ops that are unused.
void eraseUnused(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
}

/// Removes the unused arguments of a function that is never called and, if `results`, its results.
void shorten(FunctionOpInterface function, bool results) {
  Operation *op = function;
  if (!isa<func::FuncOp>(op) || function.isExternal() ||
      !SymbolTable::symbolKnownUseEmpty(op, op->getParentOp()))
    return;
  if (results) {
    for (Block &block : function.getFunctionBody())
      if (auto end = dyn_cast<func::ReturnOp>(block.getTerminator()))
        end->setOperands({});
    (void)function.eraseResults(llvm::BitVector(function.getNumResults(), true));
    eraseUnused(op->getParentOfType<ModuleOp>());
  }
  llvm::BitVector unused(function.getNumArguments());
  for (BlockArgument argument : function.getArguments())
    unused[argument.getArgNumber()] = argument.use_empty();
  (void)function.eraseArguments(unused);
}

/// The script that decides whether a module still fails. (Upstream's Tester treats every exit code
/// but 0 as a failure of the module, including those of a script that itself fails.)
class Script {
public:
  explicit Script(StringRef path) : path(path), folder(temporary()) { said = folder.create(); }

  /// Does the script exit with 1? Returns false once there has been a problem with the script.
  bool stillFails(ModuleOp module) {
    if (!said.empty())
      return false;
    std::string text, why, file = folder.in(fileName);
    llvm::raw_string_ostream(text) << module;
    said = folder.write(fileName, text);
    if (!said.empty())
      return false;
    int code = llvm::sys::ExecuteAndWait(path, {path, file}, std::nullopt, {}, 0, 0, &why);
    if (code < 0)
      said = "'" + path.str() + "' cannot be run: " + why + "; a script begins with #!/bin/sh";
    else if (code > 1)
      said = "'" + path.str() + "' exits with " + std::to_string(code) +
             "; 1 means that the module still fails, 0 that it does not";
    return code == 1;
  }
  StringRef problem() const { return said; }

private:
  static constexpr llvm::StringLiteral fileName = "module.mlir";

  static std::string temporary() {
    SmallString<128> name;
    llvm::sys::path::system_temp_directory(/*ErasedOnReboot=*/true, name);
    llvm::sys::path::append(name, "partita-reduce");
    return name.str().str();
  }

  StringRef path;
  TemporaryFolder folder; ///< if this process is killed, the next one removes it
  std::string said;
};

struct ReduceProgram : PassWrapper<ReduceProgram, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReduceProgram)
  ReduceProgram() = default;
  ReduceProgram(const ReduceProgram &other) : PassWrapper(other) {}
  StringRef getArgument() const override { return "reduce-program"; }
  StringRef getDescription() const override {
    return "takes ops out of the module as long as the test finds it interesting";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<tx::TxDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!llvm::sys::fs::can_execute(test)) {
      module.emitError()
          << "reduce-program: test: '" << test.getValue()
          << "' is not a program that can be run; test=./SCRIPT, which gets a file's name and "
             "exits with 1 where it still fails";
      return signalPassFailure();
    }
    Script script(test);
    bool fails = script.stillFails(module);
    while (fails && takeOut(script))
      ;
    if (!script.problem().empty())
      module.emitError() << "reduce-program: " << script.problem();
    else if (!fails)
      module.emitError() << "reduce-program: '" << test.getValue()
                         << "' exits with 0 on the whole module, so there is nothing to reduce";
    if (!fails || !script.problem().empty())
      signalPassFailure();
  }

private:
  /// Applies `change` to a copy; replaces the module by it if it is valid, differs and still fails.
  bool attempt(Script &script, llvm::function_ref<void(ModuleOp)> change) {
    OwningOpRef<ModuleOp> copy = getOperation().clone();
    change(*copy);
    eraseUnused(*copy);
    ScopedDiagnosticHandler silent(&getContext(), [](Diagnostic &) { return success(); });
    if (count(*copy) >= count(getOperation()) || failed(verify(*copy)) || !script.stillFails(*copy))
      return false;
    getOperation().getBodyRegion().takeBody(copy->getBodyRegion());
    return true;
  }

  /// Counts what the pass reduces: ops, and the arguments and results of functions.
  static int64_t count(ModuleOp module) {
    int64_t size = 0;
    module.walk([&](Operation *op) {
      size += !op->hasTrait<OpTrait::ConstantLike>();
      if (auto function = dyn_cast<FunctionOpInterface>(op))
        size += function.getNumArguments() + function.getNumResults();
    });
    return size;
  }

  /// Returns ops, users before the ops that they use, nested ops before their parents.
  static SmallVector<Operation *> opsOf(ModuleOp module) {
    SmallVector<Operation *> ops;
    module.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    std::reverse(ops.begin(), ops.end());
    ops.pop_back(); // the module itself
    return ops;
  }

  /// Runs one round over chunks of all sizes; did anything shrink?
  bool takeOut(Script &script) {
    bool any = false;
    for (size_t size = std::max<size_t>(1, opsOf(getOperation()).size() / 2);; size /= 2) {
      for (size_t begin = 0; begin < opsOf(getOperation()).size();) {
        bool smaller = llvm::any_of(ArrayRef({Take::First, Take::Last}), [&](Take take) {
          return attempt(script, [&](ModuleOp copy) {
            SmallVector<Operation *> ops = opsOf(copy);
            for (Operation *op : ArrayRef(ops).slice(begin).take_front(size))
              cut(op, take);
          });
        });
        any |= smaller;
        begin += smaller ? 0 : size;
      }
      if (size == 1)
        break;
    }
    size_t functions = llvm::range_size(getOperation().getOps<FunctionOpInterface>());
    for (size_t i = 0; i < functions; ++i)
      for (bool results : {true, false})
        any |= attempt(script, [&](ModuleOp copy) {
          auto all = llvm::to_vector(copy.getOps<FunctionOpInterface>());
          shorten(all[i], results);
        });
    return any;
  }

  Option<std::string> test{
      *this, "test",
      llvm::cl::desc("gets a file's name, exits with 1 where the module still fails")};
};

} // namespace

void partita::registerReduceProgramPass() { PassRegistration<ReduceProgram>(); }
