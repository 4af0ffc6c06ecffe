//===- TxFused.cpp - see TxFused.td -----------------------------------------------------------===//

#include "dialects/Interfaces/BoundRegion.h"
#include "dialects/Interfaces/Floats.h"
#include "dialects/Interfaces/Scalar.h"
#include "dialects/Tx/FusedLookup.h"
#include "dialects/Tx/FusedMatmul.h"
#include "dialects/Tx/GradientBuilder.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace partita;
using namespace partita::tx;

#define GET_OP_CLASSES
#include "dialects/Tx/TxFused.cpp.inc"

void FusedOp::build(OpBuilder &, OperationState &) {}

template <typename Op> static ParseResult parseFused(OpAsmParser &parser, OperationState &result) {
  if (parseBoundRegion(parser, result, [](Type input) { return input; }))
    return failure();
  Op::ensureTerminator(*result.regions.front(), parser.getBuilder(), result.location);
  return success();
}

template <typename Op> static LogicalResult verifyTypes(Op op) {
  Block &block = op.getBody().front();
  if (block.getArgumentTypes() != op.getInputs().getTypes())
    return op.emitOpError() << "the region's arguments differ from the inputs";
  if (block.getTerminator()->getOperandTypes() != op.getOutputs().getTypes())
    return op.emitOpError() << "the region's values differ from the outputs";
  return success();
}

ParseResult FusionOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFused<FusionOp>(parser, result);
}

void FusionOp::print(OpAsmPrinter &printer) { printBoundRegion(printer, *this); }

LogicalResult FusionOp::verify() {
  if (failed(verifyTypes(*this)))
    return failure();
  Block &block = getBody().front();
  if (getOutputs().empty())
    return emitOpError() << "has no output";
  ArrayRef<int64_t> shape = cast<RankedTensorType>(getOutputs().front().getType()).getShape();
  auto fits = [&](Type type) { return cast<RankedTensorType>(type).getShape() == shape; };
  if (!llvm::all_of(getInputs().getTypes(), fits) || !llvm::all_of(getOutputs().getTypes(), fits))
    return emitOpError() << "all tensors must have one shape";
  for (Operation &op : block.without_terminator()) {
    bool splat = false;
    if (auto constant = dyn_cast<ConstantOp>(op))
      splat = constant.getValue().isSplat();
    if (!splat && !isElementwise(&op))
      return op.emitOpError() << "is neither elementwise nor a splat constant, in a fusion";
  }
  return success();
}

//===------------------------------------------------------------------------------------------===//
// Matmuls
//===------------------------------------------------------------------------------------------===//

ParseResult FusedMatmulOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFused<FusedMatmulOp>(parser, result);
}

void FusedMatmulOp::print(OpAsmPrinter &printer) { printBoundRegion(printer, *this); }

LogicalResult FusedMatmulOp::verify() { return verifyTypes(*this); }

LogicalResult FusedMatmulOp::verifyRegions() {
  FusedMatmul parts;
  std::string problem = parts.read(*this);
  return problem.empty() ? success() : emitOpError() << problem;
}

namespace {

/// Reads a region op by op; every function returns what is wrong, or "".
class RegionReader {
public:
  RegionReader(FusedMatmulOp op, FusedMatmul &parts) : op(op), parts(parts) {}

  std::string run() {
    Block &block = op.getBody().front();
    for (Operation &inner : block.without_terminator())
      if (std::string problem = readOp(&inner); !problem.empty())
        return problem;
    if (!parts.matmul)
      return "its region has no matmul";
    return checkResults(block.getTerminator()->getOperands());
  }

private:
  static std::string cannot(Operation *inner) {
    return "'" + inner->getName().getStringRef().str() +
           "' is nothing that a matmul's kernel does along with this matmul";
  }

  std::string readOp(Operation *inner) {
    if (isa<MatMulOp, MatMulNTOp, MatMulTNOp, MatMulBiasOp, MatMulNTBiasOp>(inner) ||
        isScaled(inner)) {
      if (parts.matmul)
        return "its region has two matmuls";
      parts.matmul = inner;
      parts.sum = inner->getResult(0);
      return {};
    }
    bool isGradient = parts.matmul && parts.isWeightGradient();
    if (auto gelu = dyn_cast<GeluTanhOp>(inner);
        gelu && isa_and_nonnull<MatMulBiasOp, MatMulNTBiasOp>(parts.matmul) && !parts.gelu &&
        !parts.soFar && gelu.getX() == parts.sum) {
      parts.gelu = gelu;
      return {};
    }
    if (auto slope = dyn_cast<GeluTanhGradOp>(inner);
        slope && isa_and_nonnull<MatMulOp, MatMulNTOp>(parts.matmul) && !parts.slope &&
        !parts.soFar && slope.getDy() == parts.sum && isa<BlockArgument>(slope.getX())) {
      parts.slope = slope;
      return {};
    }
    if (auto rows = dyn_cast<ReduceSumOp>(inner);
        rows && ((isGradient && !isScaled(parts.matmul)) || parts.slope) && !parts.rowSums)
      return readRowSums(rows);
    if (isGradient ? isa<CastOp, AddOp>(inner) : isa<AddOp>(inner) && !parts.gelu && !parts.slope)
      return readAddition(inner);
    return cannot(inner);
  }

  /// Reads sums over all rows of one of the matmul's operands, or of the GELU derivative's result.
  std::string readRowSums(ReduceSumOp rows) {
    Value x = rows.getX();
    bool fits = parts.slope ? x == parts.slope.getResult()
                            : llvm::is_contained(parts.matmul->getOperands(), x);
    if (!fits || rows.getType().getRank() != 1 ||
        llvm::is_contained(rows.getDims(), rows.getX().getType().getRank() - 1))
      return parts.slope
                 ? "its region sums up something else than the rows of the slope's result"
                 : "its region sums up something else than the rows of one of the matmul's operands";
    parts.rowSums = rows;
    parts.rowSum = rows.getResult();
    return {};
  }

  /// Reads a cast of the matmul or of the row sums, or their addition to an argument.
  std::string readAddition(Operation *inner) {
    for (auto [sum, soFar] :
         {std::pair(&parts.sum, &parts.soFar), std::pair(&parts.rowSum, &parts.rowsSoFar)}) {
      if (!*sum || *soFar || !llvm::is_contained(inner->getOperands(), *sum))
        continue;
      Value other =
          inner->getOperand(inner->getOperand(0) == *sum ? inner->getNumOperands() - 1 : 0);
      if (isa<AddOp>(inner) && !isa<BlockArgument>(other))
        continue;
      if (isa<AddOp>(inner))
        *soFar = other;
      *sum = inner->getResult(0);
      return {};
    }
    return cannot(inner);
  }

  std::string checkResults(ValueRange results) {
    SmallVector<Value> made;
    if (parts.gelu)
      made = results.size() == 1 ? SmallVector<Value>{parts.gelu.getResult()}
                                 : SmallVector<Value>{parts.gelu.getResult(), parts.sum};
    else if (parts.slope)
      made = parts.rowSums ? SmallVector<Value>{parts.slope.getResult(), parts.rowSum}
                           : SmallVector<Value>{parts.slope.getResult()};
    else if (parts.rowSums)
      made = {parts.sum, parts.rowSum};
    else if (parts.soFar)
      made = {parts.sum};
    else
      return "its region does nothing along with its matmul";
    if (!llvm::equal(results, made))
      return "its results are not what its region makes, in that order";
    for (Value so : {parts.soFar, parts.rowsSoFar}) // it is written while these are read
      if (so && llvm::is_contained(parts.matmul->getOperands(), so))
        return "it adds to an operand of its matmul";
    if (parts.soFar && parts.soFar == parts.rowsSoFar)
      return "it adds two sums to the same one";
    if (parts.rowSums && bool(parts.soFar) != bool(parts.rowsSoFar))
      return "of a weight's gradient and its bias's it adds one to what is there and not the other";
    return checkTypes();
  }

  static Type element(Value value) { return getElementTypeOrSelf(value.getType()); }

  /// Checks that all numbers have one type, except that sums of 16-bit matmuls may have 32 bits, and
  /// that a matmul may have its own operands in 8.
  std::string checkTypes() {
    Type one = element(parts.matmul->getResult(0)), sum = element(parts.sum);
    auto isSum = [&](Value value) { return value == parts.soFar || value == parts.rowsSoFar; };
    ValueRange scaled =
        isScaled(parts.matmul) ? parts.matmul->getOperands().take_front(3) : ValueRange();
    bool same = llvm::all_of(op.getBody().getArguments(), [&](Value argument) {
      return llvm::is_contained(scaled, argument) ||
             element(argument) == (isSum(argument) ? sum : one);
    });
    same &= !parts.rowSum || element(parts.rowSum) == sum;
    bool wide = sum.isF32() && isShortFloat(one) && parts.isWeightGradient();
    return same && (sum == one || wide) ? "" : "its kernel has no such types of elements";
  }

  FusedMatmulOp op;
  FusedMatmul &parts;
};

} // namespace

std::string FusedMatmul::read(FusedMatmulOp op) { return RegionReader(op, *this).run(); }

FusedMatmul FusedMatmul::of(FusedMatmulOp op) {
  FusedMatmul parts;
  (void)parts.read(op); // verified
  return parts;
}

Value FusedMatmul::bias() const {
  bool has = isa<MatMulBiasOp, MatMulNTBiasOp, ScaledMatMulBiasOp, ScaledMatMulNTBiasOp>(matmul);
  return has ? matmul->getOperands().back() : Value();
}

Value FusedMatmul::input(Value argument) const {
  auto fused = cast<FusedMatmulOp>(matmul->getParentOp());
  return fused.getInputs()[cast<BlockArgument>(argument).getArgNumber()];
}

Value FusedMatmul::addedTo(unsigned result) const {
  Value argument = result == 0 ? soFar : rowsSoFar;
  return argument ? input(argument) : Value();
}

//===------------------------------------------------------------------------------------------===//
// Lookups
//===------------------------------------------------------------------------------------------===//

ParseResult FusedLookupOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseFused<FusedLookupOp>(parser, result);
}

void FusedLookupOp::print(OpAsmPrinter &printer) { printBoundRegion(printer, *this); }

LogicalResult FusedLookupOp::verify() { return verifyTypes(*this); }

LogicalResult FusedLookupOp::verifyRegions() {
  FusedLookup parts;
  std::string problem = parts.read(*this);
  return problem.empty() ? success() : emitOpError() << problem;
}

Value FusedLookupOp::getIndices() { return FusedLookup::of(*this).ids(); }
Value FusedLookupOp::getIndexed() {
  auto parts = FusedLookup::of(*this);
  return parts.input(parts.isGradient() ? parts.addend : parts.lookup->getOperand(0));
}
int64_t FusedLookupOp::getIndexedDim() { return 0; }

std::string FusedLookup::read(FusedLookupOp op) {
  Block &block = op.getBody().front();
  auto ops = llvm::to_vector(llvm::make_pointer_range(block.without_terminator()));
  auto add = ops.size() == 2 ? dyn_cast<AddOp>(ops.back()) : AddOp();
  if (!add || !isa<EmbeddingOp, EmbeddingGradOp>(ops.front()))
    return "its region is not a lookup, or its gradient, and an addition";
  lookup = ops.front();
  bool isFirst = add.getA() == lookup->getResult(0);
  addend = isFirst ? add.getB() : add.getA();
  if (!isa<BlockArgument>(addend) || add->getOperand(isFirst ? 0 : 1) != lookup->getResult(0))
    return "its region does not add the lookup to an argument";
  if (llvm::is_contained(lookup->getOperands(), addend)) // it is written while these are read
    return "it adds to an operand of its lookup";
  if (!isa<FloatType>(getElementTypeOrSelf(addend.getType())))
    return "its kernel has no such types of elements";
  if (!llvm::equal(block.getTerminator()->getOperands(), add->getResults()))
    return "its result is not the sum";
  return {};
}

FusedLookup FusedLookup::of(FusedLookupOp op) {
  FusedLookup parts;
  (void)parts.read(op); // verified
  return parts;
}

Value FusedLookup::input(Value argument) const {
  auto fused = cast<FusedLookupOp>(lookup->getParentOp());
  return fused.getInputs()[cast<BlockArgument>(argument).getArgNumber()];
}

Value FusedLookup::ids() const { return input(lookup->getOperand(isGradient() ? 0 : 1)); }

Value FusedLookup::first() const {
  return lookup->getNumOperands() > 2 ? input(lookup->getOperand(2)) : Value();
}
