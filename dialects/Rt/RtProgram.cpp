//===- RtProgram.cpp - the program's tables: spelling and checks ------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Roles.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;
using partita_rt::CollectiveKind;
using EmitError = llvm::function_ref<InFlightDiagnostic()>;

FailureOr<partita_rt::CollectiveKind> rt::parseCollectiveKind(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  if (failed(parser.parseKeyword(&name)))
    return failure();
  if (const partita_rt::CollectiveRow *row = partita_rt::collectiveNamed(name))
    return row->kind;
  parser.emitError(loc) << "'" << name << "' is not a kind of collective";
  return failure();
}

/// Is every element of `list` one of these attributes? An absent list has none.
template <typename Attr>
static LogicalResult check(EmitError emitError, ArrayAttr list, StringRef member, StringRef what) {
  for (Attribute each : list ? list.getValue() : ArrayRef<Attribute>())
    if (!isa<Attr>(each))
      return emitError() << "'" << member << "' lists " << what << ", and " << each << " is none";
  return success();
}

static LogicalResult checkShape(EmitError emitError, RankedTensorType type) {
  if (!type.hasStaticShape())
    return emitError() << "'type' is " << type << "; its shape must be static";
  return success();
}

LogicalResult InputAttr::verify(EmitError emitError, StringRef name, StringRef role,
                                RankedTensorType type, bool, int64_t, int64_t) {
  if (!train::findRole(role))
    return emitError() << "input '" << name << "' has role '" << role << "', which is not one of "
                       << train::roleNames();
  return checkShape(emitError, type);
}

LogicalResult OutputAttr::verify(EmitError emitError, StringRef, RankedTensorType type, int64_t) {
  return checkShape(emitError, type);
}

LogicalResult CensusAttr::verify(EmitError emitError, StringRef, CollectiveKind, StringRef,
                                 StringRef, ArrayAttr tensors, int64_t, int64_t) {
  return check<StringAttr>(emitError, tensors, "tensors", "names");
}

LogicalResult CollectiveAttr::verify(EmitError emitError, StringRef, CollectiveKind, StringRef,
                                     StringRef, StringRef, bool, int64_t, int64_t, int64_t,
                                     int64_t microBatches, int64_t, int64_t, StringRef role,
                                     StringRef, StringRef, StringRef, StringRef, StringRef,
                                     StringRef, ArrayAttr parameters, ArrayAttr merged, int64_t,
                                     bool) {
  if (microBatches < 1)
    return emitError() << "'micro_batches' is " << microBatches << ", and at least 1";
  if (!role.empty() && !par::symbolizeRole(role))
    return emitError() << "'role' is \"" << role << "\", which is no role of #par.cause";
  if (failed(check<StringAttr>(emitError, parameters, "parameters", "names")) ||
      failed(check<ArrayAttr>(emitError, merged, "merged", "lists of names")))
    return failure();
  for (Attribute names : merged ? merged.getValue() : ArrayRef<Attribute>())
    if (failed(check<StringAttr>(emitError, cast<ArrayAttr>(names), "merged", "lists of names")))
      return failure();
  return success();
}

LogicalResult MessageAttr::verify(EmitError emitError, StringRef, int64_t source, int64_t target,
                                  int64_t, StringRef, bool, int64_t, int64_t) {
  if (source < 0 || target < 0 || source == target)
    return emitError() << "a message goes from one stage to another, not from " << source << " to "
                       << target;
  return success();
}

LogicalResult ProgramAttr::verify(EmitError emitError, ArrayAttr inputs, ArrayAttr outputs,
                                  ArrayAttr census, ArrayAttr collectives, ArrayAttr undecayed,
                                  ArrayAttr gathersAhead, ArrayAttr stageSums, ArrayAttr messages,
                                  DictionaryAttr hyper, StringRef,
                                  StringRef, int64_t accumulate, int64_t, int64_t) {
  if (accumulate < 1)
    return emitError() << "'accumulate' is " << accumulate << ", and at least 1";
  for (NamedAttribute field : hyper ? hyper.getValue() : ArrayRef<NamedAttribute>())
    if (!isa<FloatAttr>(field.getValue()))
      return emitError() << "'hyper' has numbers, and " << field.getName() << " is "
                         << field.getValue();
  return success(
      succeeded(check<InputAttr>(emitError, inputs, "inputs", "#rt.input")) &&
      succeeded(check<OutputAttr>(emitError, outputs, "outputs", "#rt.output")) &&
      succeeded(check<CensusAttr>(emitError, census, "census", "#rt.census")) &&
      succeeded(check<CollectiveAttr>(emitError, collectives, "collectives", "#rt.collective")) &&
      succeeded(check<FlatSymbolRefAttr>(emitError, undecayed, "undecayed", "symbols")) &&
      succeeded(check<StringAttr>(emitError, gathersAhead, "gathers_ahead", "axes")) &&
      succeeded(check<DenseI64ArrayAttr>(emitError, stageSums, "stage_sums", "lists of stages")) &&
      succeeded(check<MessageAttr>(emitError, messages, "messages", "#rt.message")));
}

ProgramAttr ProgramAttr::of(ModuleOp module) {
  return module->getAttrOfType<ProgramAttr>(RtDialect::kProgram);
}

LogicalResult BufferAttr::verify(EmitError emitError, StringRef name, MemoryKind, int64_t bytes,
                                 int64_t offset, int64_t begin, int64_t end, int64_t, bool) {
  if (bytes < 0 || offset < 0)
    return emitError() << "buffer '" << name << "' has " << bytes << " bytes at offset " << offset;
  if (begin < 0 || end < begin)
    return emitError() << "buffer '" << name << "' lives from op " << begin << " to op " << end;
  return success();
}

LogicalResult LedgerAttr::verify(EmitError emitError, StringRef function, bool, int64_t bytes,
                                 int64_t peak, int64_t ops, int64_t at, StringRef, StringRef,
                                 int64_t, bool, ArrayAttr buffers) {
  if (peak < 0 || bytes < peak)
    return emitError() << "the ledger of '" << function << "' has a peak of " << peak
                       << " bytes in " << bytes;
  if (at < 0 || at >= std::max<int64_t>(ops, 1))
    return emitError() << "the ledger of '" << function << "' has its peak at op " << at << " of "
                       << ops;
  if (failed(check<BufferAttr>(emitError, buffers, "buffers", "#rt.buffer")))
    return failure();
  for (Attribute each : buffers ? buffers.getValue() : ArrayRef<Attribute>())
    if (auto buffer = cast<BufferAttr>(each); buffer.getEnd() >= ops)
      return emitError() << "buffer '" << buffer.getName() << "' lives to op " << buffer.getEnd()
                         << ", and '" << function << "' has " << ops;
  return success();
}

SmallVector<LedgerAttr> rt::ledgersIn(ModuleOp module) {
  auto all = module->getAttrOfType<ArrayAttr>(RtDialect::kLedger);
  return all ? llvm::to_vector(all.getAsRange<LedgerAttr>()) : SmallVector<LedgerAttr>();
}
