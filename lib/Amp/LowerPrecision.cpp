//===- LowerPrecision.cpp - decides which values are stored in 16 bits ------------------------===//
//
// Walks once, in program order. A 16-bit value is widened where it is defined, and its users read
// the widened one, so every op finds 32 bits; what it stores in 16 bits is rounded after it and
// widened again. Precision propagates along values: a value that depends on nothing in 16 bits
// stays as it is.
//
// Mixed-precision training: Micikevicius et al., arXiv 1710.03740.
//
//===----------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "lib/Amp/StoredTypes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Iterators.h"
#include "partita/Amp/Passes.h"

namespace partita {
#define GEN_PASS_DEF_LOWERPRECISIONPASS
#include "partita/Amp/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;

namespace {

std::optional<Precision> precisionOf(Operation *op) {
  auto asked = dyn_cast<PrecisionInterface>(op);
  return asked ? std::optional(asked.getPrecision()) : std::nullopt;
}

class Narrowing {
public:
  Narrowing(func::FuncOp function, FloatType type, const llvm::DenseSet<StringAttr> &parameters)
      : function(function), type(type), parameters(parameters) {}

  void run() {
    findTail();
    SmallVector<Operation *> ops;
    function.walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      visit(op);
  }

private:
  /// Finds the tail, the ops after the last one whose operands are in 16 bits. Its ops that only
  /// feed a loss that is written out (neither logits of a tx loss nor outputs) stay in 32 bits.
  void findTail() {
    llvm::DenseSet<Operation *> feeds, shown;
    function.walk<WalkOrder::PostOrder, ReverseIterator>([&](Operation *op) {
      for (Operation *user : op->getUsers()) {
        if (precisionOf(user) == Precision::Low || feeds.contains(user))
          feeds.insert(op);
        if (precisionOf(user) == Precision::Exact || shown.contains(user) ||
            (isa<func::ReturnOp>(user) && !isNumber(op->getResult(0))))
          shown.insert(op);
      }
      if (!feeds.contains(op))
        (shown.contains(op) ? tail : lossOnly).insert(op);
    });
  }

  static bool isNumber(Value value) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    return tensor && tensor.getNumElements() == 1;
  }

  void visit(Operation *op) {
    if (auto read = dyn_cast<train::ReadOp>(op)) {
      if (parameters.contains(read.getSymbolAttr().getAttr())) {
        read.getResult().setType(narrowed(read.getType()));
        widen(read.getResult());
      }
      return;
    }
    std::optional<Precision> precision = precisionOf(op);
    bool any =
        llvm::any_of(op->getOperands(), [&](Value operand) { return narrow.contains(operand); });
    if (precision == Precision::Low && any)
      return compute(op);
    if (precision == Precision::Follow && any && !staysWide(op))
      store(op);
  }

  /// Returns true if the op's result stays in 32 bits: between the last matmul and the loss, 32-bit
  /// values are not rounded again, and a loss that is written out is computed in 32 bits from its
  /// first op on.
  bool staysWide(Operation *op) {
    if (lossOnly.contains(op))
      return true;
    return tail.contains(op) && llvm::any_of(op->getOperands(), [&](Value operand) {
             return amp::isWide(operand.getType()) && !narrow.contains(operand) &&
                    !amp::isSplat(operand);
           });
  }

  RankedTensorType narrowed(Type wide) { return cast<RankedTensorType>(wide).clone(type); }

  /// Gives an op operands and results in 16 bits.
  void compute(Operation *op) {
    OpBuilder builder(op);
    auto asked = cast<PrecisionInterface>(op);
    for (OpOperand &operand : op->getOpOperands()) {
      Value wide = operand.get();
      if (!amp::isWide(wide.getType()))
        continue;
      if (Value known = narrow.lookup(wide))
        operand.set(known);
      else if (!asked.mayStayWide(operand.getOperandNumber()))
        operand.set(tx::CastOp::create(builder, op->getLoc(), narrowed(wide.getType()), wide));
    }
    std::optional<SmallVector<Type>> types = amp::storedTypes(op, op->getOperands());
    for (auto [index, result] : llvm::enumerate(op->getResults())) {
      if (types)
        result.setType((*types)[index]);
      if (amp::isNarrow(result.getType()))
        widen(result);
    }
  }

  /// Keeps the op, but rounds what it would store in 16 bits after it.
  void store(Operation *op) {
    SmallVector<Value> operands(op->getOperands());
    for (Value &operand : operands)
      if (Value known = narrow.lookup(operand))
        operand = known;
    std::optional<SmallVector<Type>> types = amp::storedTypes(op, operands);
    OpBuilder builder(op->getContext());
    for (auto [index, result] : llvm::enumerate(op->getResults()))
      if (types && amp::isNarrow((*types)[index]) && amp::isWide(result.getType())) {
        builder.setInsertionPointAfterValue(result);
        auto rounded = tx::CastOp::create(builder, op->getLoc(), (*types)[index], result);
        Value wide = widen(rounded.getResult());
        result.replaceAllUsesExcept(wide, rounded);
      }
  }

  /// Returns the value in 32 bits, which its users read from now on.
  Value widen(Value value) {
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    auto wide = cast<RankedTensorType>(value.getType()).clone(builder.getF32Type());
    auto cast = tx::CastOp::create(builder, value.getLoc(), wide, value);
    value.replaceAllUsesExcept(cast.getResult(), cast);
    narrow[cast.getResult()] = value;
    return cast.getResult();
  }

  func::FuncOp function;
  FloatType type;
  const llvm::DenseSet<StringAttr> &parameters;
  llvm::DenseMap<Value, Value> narrow; // 32-bit value -> the value it was widened from
  llvm::DenseSet<Operation *> tail, lossOnly;
};

struct LowerPrecision : partita::impl::LowerPrecisionPassBase<LowerPrecision> {
  using LowerPrecisionPassBase::LowerPrecisionPassBase;

  void runOnOperation() override {
    if (type == "float32")
      return;
    ModuleOp module = getOperation();
    FloatType narrow;
    if (type == "bfloat16" || type == "fp8")
      narrow = BFloat16Type::get(&getContext());
    else if (type == "float16")
      narrow = Float16Type::get(&getContext());
    if (!narrow) {
      module.emitError() << "precision '" << type
                         << "' is unknown; known: float32, bfloat16, float16, fp8";
      return signalPassFailure();
    }
    findUsers();
    for (auto parameter : module.getOps<train::ParameterOp>())
      if (isStoredNarrow(parameter)) {
        stored.insert(parameter.getSymNameAttr());
        parameter.setType(cast<RankedTensorType>(parameter.getType()).clone(narrow));
        ++parameters;
      }
    module.walk([&](train::InitialValueOp initial) {
      if (stored.contains(initial.getSymbolAttr().getAttr()))
        initial.getResult().setType(cast<RankedTensorType>(initial.getType()).clone(narrow));
    });
    for (auto function : module.getOps<func::FuncOp>())
      Narrowing(function, narrow, stored).run();
  }

private:
  void findUsers() {
    getOperation().walk([&](train::ReadOp read) {
      llvm::append_range(users[read.getSymbolAttr().getAttr()], read.getResult().getUsers());
    });
  }

  /// Returns true if a parameter is stored in 16 bits. Frozen vectors are not, since they are
  /// tables of frequencies and the like, unless they belong to a norm.
  bool isStoredNarrow(train::ParameterOp parameter) {
    auto type = cast<RankedTensorType>(parameter.getType());
    if (!amp::isWide(type))
      return false;
    if (!parameter.getFrozen() ||
        llvm::count_if(type.getShape(), [](int64_t size) { return size > 1; }) > 1)
      return true;
    // An op with several results keeps statistics of its rows, so it is a norm.
    return llvm::any_of(users.lookup(parameter.getSymNameAttr()), [](Operation *user) {
      return precisionOf(user) == Precision::Follow && user->getNumResults() > 1;
    });
  }

  llvm::DenseMap<StringAttr, SmallVector<Operation *>> users; // of each parameter
  llvm::DenseSet<StringAttr> stored;                          // parameters in 16 bits
};

} // namespace
