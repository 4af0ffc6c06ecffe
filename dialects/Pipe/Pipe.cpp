//===- Pipe.cpp - between pipeline stages -----------------------------------------------------===//

#include "dialects/Pipe/Pipe.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace partita;
using namespace partita::pipe;

#include "dialects/Pipe/PipeDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Pipe/PipeAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Pipe/PipeOps.cpp.inc"

void PipeDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Pipe/PipeAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Pipe/PipeOps.cpp.inc"
      >();
}

LogicalResult PipeDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != kStage)
    return op->emitError() << attribute.getName() << " is no attribute of an op";
  auto number = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!number || !number.getType().isInteger(64) || number.getInt() < 0)
    return op->emitError() << kStage << " is " << attribute.getValue()
                           << ", expected the number of a stage, an i64 from 0";
  if (!isa<ModuleOp>(op) || !isa_and_nonnull<ModuleOp>(op->getParentOp()))
    return op->emitError() << kStage << " belongs on a module within the program's module";
  return success();
}

LogicalResult ChannelAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t from,
                                  int64_t to, int64_t number) {
  if (from < 0 || to < 0 || number < 0)
    return emitError() << "stages and channels are numbered from 0";
  if (from == to)
    return emitError() << "a channel leads to another stage, not from " << from << " to itself";
  return success();
}

std::optional<int64_t> pipe::stageOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto number = op->getAttrOfType<IntegerAttr>(PipeDialect::kStage))
      return number.getInt();
  return std::nullopt;
}

/// Is the op of the stage at its end of the channel?
static LogicalResult verifyEnd(Operation *op, int64_t stage, StringRef verb) {
  std::optional<int64_t> own = stageOf(op);
  if (!own)
    return op->emitOpError() << "is of no stage: no module around it has " << PipeDialect::kStage;
  if (*own != stage)
    return op->emitOpError() << "is of stage " << *own << ", but stage " << stage << ' ' << verb
                             << " over this channel";
  return success();
}

LogicalResult SendOp::verify() { return verifyEnd(*this, getChannel().getFrom(), "sends"); }

LogicalResult RecvOp::verify() { return verifyEnd(*this, getChannel().getTo(), "receives"); }
