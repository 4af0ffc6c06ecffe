//===- RtProgram.cpp - syntax and checks of the program's tables ------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Roles.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

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

/// Checks that every element of `list` is one of these attributes. The list may be absent.
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

std::string CommunicatorAttr::getCounted() const {
  return llvm::join(getAxes().getAsValueRange<StringAttr>(), ",");
}

bool CommunicatorAttr::isAhead() const {
  auto streams = elementsOf<par::StreamAttr>(getStreams());
  return !streams.empty() &&
         llvm::all_of(streams, [](par::StreamAttr each) { return each.getAhead(); });
}

LogicalResult CommunicatorAttr::verify(EmitError emitError, StringRef name, ArrayAttr axes,
                                       DenseI64ArrayAttr stages, ArrayAttr streams) {
  if (axes.empty())
    return emitError() << "communicator '" << name << "' is over no axis";
  if (failed(check<StringAttr>(emitError, axes, "axes", "names")) ||
      failed(check<par::StreamAttr>(emitError, streams, "streams", "#par.stream")))
    return failure();
  for (auto [number, axis] : llvm::enumerate(axes))
    if (llvm::is_contained(axes.getValue().take_front(number), axis))
      return emitError() << "communicator '" << name << "' is over " << axis << " twice";
  for (par::StreamAttr stream : elementsOf<par::StreamAttr>(streams))
    if (!llvm::is_contained(axes.getValue(), stream.getAxis()))
      return emitError() << "communicator '" << name << "' has " << stream << ", and axes " << axes;
  ArrayRef<int64_t> listed = stages ? stages.asArrayRef() : ArrayRef<int64_t>();
  bool ascend = std::is_sorted(listed.begin(), listed.end(), std::less_equal<>());
  if (stages && (listed.empty() || listed.front() < 0 || !ascend))
    return emitError() << "communicator '" << name << "' joins stages in ascending order, not "
                       << stages;
  return success();
}

LogicalResult ChannelAttr::verify(EmitError emitError, StringRef name, StringRef, int64_t source,
                                  int64_t target, int64_t number) {
  if (source >= 0 && target >= 0 && number >= 0 && source != target)
    return success();
  return emitError() << "channel '" << name
                     << "' goes from one place of its axis to another, not from " << source
                     << " to " << target;
}

FailureOr<partita_rt::Steps::Part> rt::parseSteps(AsmParser &parser) {
  StringRef word;
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseKeyword(&word))
    return failure();
  if (word == "exact")
    return partita_rt::Steps::Exact;
  if (word == "others")
    return partita_rt::Steps::Others;
  return parser.emitError(at) << "'" << word << "' are no steps; expected exact or others";
}

static LogicalResult checkSteps(EmitError emitError, partita_rt::Steps::Part part,
                                par::ExactStepsAttr exact) {
  if ((part == partita_rt::Steps::All) == !exact)
    return success();
  return emitError() << "'steps' are some of all, and 'exact' says which, or neither is there";
}

LogicalResult CensusAttr::verify(EmitError emitError, StringRef, CollectiveKind, StringRef,
                                 StringRef, ArrayAttr tensors, int64_t, int64_t,
                                 partita_rt::Steps::Part steps, par::ExactStepsAttr exact) {
  if (failed(checkSteps(emitError, steps, exact)))
    return failure();
  return check<StringAttr>(emitError, tensors, "tensors", "names");
}

LogicalResult CollectiveAttr::verify(EmitError emitError, StringRef, CollectiveKind, StringRef,
                                     StringRef, StringRef, StringRef, bool, int64_t, int64_t,
                                     int64_t, int64_t microBatches, int64_t, int64_t,
                                     StringRef role, StringRef, StringRef, StringRef, StringRef,
                                     StringRef, StringRef, ArrayAttr parameters, ArrayAttr merged,
                                     int64_t, bool, partita_rt::Steps::Part steps,
                                     par::ExactStepsAttr exact) {
  if (failed(checkSteps(emitError, steps, exact)))
    return failure();
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

LogicalResult MessageAttr::verify(EmitError emitError, StringRef, StringRef channel, StringRef,
                                  bool, int64_t messages, int64_t bytes) {
  if (messages < 0 || bytes < 0)
    return emitError() << "channel '" << channel << "' has " << messages << " messages of " << bytes
                       << " bytes";
  return success();
}

/// Has every row of a table a name of its own?
template <typename Row>
static LogicalResult checkNames(EmitError emitError, ArrayAttr rows, StringRef member) {
  llvm::StringSet<> names;
  for (Row row : elementsOf<Row>(rows))
    if (!names.insert(row.getName()).second)
      return emitError() << "'" << member << "' has two rows '" << row.getName() << "'";
  return success();
}

/// Names every user a row, and is every row named? `nameOf(user)`, which `what` calls what it is.
template <typename Row, typename User, typename NameOf>
static LogicalResult checkUsers(EmitError emitError, ArrayAttr rows, StringRef member,
                                ArrayAttr users, StringRef what, NameOf nameOf) {
  llvm::StringSet<> known, named;
  for (Row row : elementsOf<Row>(rows))
    known.insert(row.getName());
  for (User user : elementsOf<User>(users)) {
    StringRef name = nameOf(user);
    if (!known.contains(name))
      return emitError() << "'" << member << "' has no row '" << name << "', which " << what << " '"
                         << user.getReason() << "' names";
    named.insert(name);
  }
  for (Row row : elementsOf<Row>(rows))
    if (!named.contains(row.getName()))
      return emitError() << "'" << member << "' has a row '" << row.getName() << "', and no "
                         << what << " names it";
  return success();
}

/// Do two rows have the same ranks and a stream in common? Then their collectives would have one order.
static LogicalResult checkDistinct(EmitError emitError, ArrayAttr communicators) {
  llvm::SmallDenseMap<Attribute, CommunicatorAttr> seen;
  for (auto row : elementsOf<CommunicatorAttr>(communicators)) {
    auto alike = CommunicatorAttr::get(row.getContext(), "", row.getAxes(), row.getStages(),
                                       row.isAhead() ? row.getStreams() : ArrayAttr());
    auto [first, isNew] = seen.try_emplace(alike, row);
    if (!isNew)
      return emitError() << "communicators '" << first->second.getName() << "' and '"
                         << row.getName() << "' are one: they have the same ranks and purpose";
  }
  return success();
}

LogicalResult ProgramAttr::verify(EmitError emitError, ArrayAttr inputs, ArrayAttr outputs,
                                  ArrayAttr census, ArrayAttr collectives, ArrayAttr undecayed,
                                  ArrayAttr communicators, ArrayAttr channels, ArrayAttr messages,
                                  DictionaryAttr hyper, StringRef, StringRef, int64_t accumulate,
                                  int64_t, int64_t) {
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
      succeeded(
          check<CommunicatorAttr>(emitError, communicators, "communicators", "#rt.communicator")) &&
      succeeded(check<ChannelAttr>(emitError, channels, "channels", "#rt.channel")) &&
      succeeded(check<MessageAttr>(emitError, messages, "messages", "#rt.message")) &&
      succeeded(checkNames<CommunicatorAttr>(emitError, communicators, "communicators")) &&
      succeeded(checkNames<ChannelAttr>(emitError, channels, "channels")) &&
      succeeded(checkDistinct(emitError, communicators)) &&
      succeeded(checkUsers<CommunicatorAttr, CensusAttr>(
          emitError, communicators, "communicators", census, "census row",
          [](CensusAttr row) { return row.getCommunicator(); })) &&
      succeeded(
          checkUsers<ChannelAttr, MessageAttr>(emitError, channels, "channels", messages, "message",
                                               [](MessageAttr row) { return row.getChannel(); })));
}

ProgramAttr ProgramAttr::of(ModuleOp module) {
  return module->getAttrOfType<ProgramAttr>(RtDialect::kProgram);
}

template <typename Row> static Row rowNamed(ArrayAttr rows, StringRef name) {
  for (Row row : elementsOf<Row>(rows))
    if (row.getName() == name)
      return row;
  return {};
}

CommunicatorAttr ProgramAttr::getCommunicator(StringRef name) const {
  return rowNamed<CommunicatorAttr>(getCommunicators(), name);
}

ChannelAttr ProgramAttr::getChannel(StringRef name) const {
  return rowNamed<ChannelAttr>(getChannels(), name);
}

//===------------------------------------------------------------------------------------------===//
// Against the module that has it
//===------------------------------------------------------------------------------------------===//

/// Is every axis of the mesh, and every stage of the program, its own among them? Then the groups of a
/// row are disjoint and cover its ranks.
static LogicalResult verifyRanks(ModuleOp module, CommunicatorAttr row) {
  std::optional<int64_t> stages = pipe::stageCount(module), own = pipe::stageOf(module);
  auto mesh = par::MeshAttr::of(module);
  for (StringRef axis : row.getAxes().getAsValueRange<StringAttr>())
    if (!mesh.hasAxis(axis) && !(stages && par::splits(axis, par::Splits::Program)))
      return module.emitError() << "communicator '" << row.getName() << "' is over axis '" << axis
                                << "', which the mesh " << mesh << " does not have";
  if (!row.getStages())
    return success();
  ArrayRef<int64_t> listed = row.getStages().asArrayRef();
  if (!stages || !own || !par::splits(row.getCounted(), par::Splits::Program))
    return module.emitError() << "communicator '" << row.getName()
                              << "' joins pipeline stages, and is of no pipeline";
  if (listed.back() >= *stages || !llvm::is_contained(listed, *own))
    return module.emitError() << "communicator '" << row.getName() << "' joins stages " << listed
                              << ", and this is stage " << *own << " of " << *stages;
  return success();
}

/// Is one end on this stage, and the other on another one?
static LogicalResult verifyEnds(ModuleOp module, ChannelAttr row) {
  std::optional<int64_t> stages = pipe::stageCount(module), own = pipe::stageOf(module);
  if (!par::splits(row.getAxis(), par::Splits::Program) || !stages || !own)
    return module.emitError() << "channel '" << row.getName() << "' is along axis '"
                              << row.getAxis() << "'; channels join pipeline stages";
  if (std::max(row.getSource(), row.getTarget()) >= *stages ||
      (row.getSource() != *own && row.getTarget() != *own))
    return module.emitError() << "channel '" << row.getName() << "' joins stages "
                              << row.getSource() << " and " << row.getTarget()
                              << ", and this is stage " << *own << " of " << *stages;
  return success();
}

LogicalResult rt::verifyConnections(ModuleOp module, ProgramAttr program) {
  for (auto row : elementsOf<CommunicatorAttr>(program.getCommunicators()))
    if (failed(verifyRanks(module, row)))
      return failure();
  for (auto row : elementsOf<ChannelAttr>(program.getChannels()))
    if (failed(verifyEnds(module, row)))
      return failure();
  WalkResult walked = module.walk([&](ConnectedInterface op) -> WalkResult {
    for (StringAttr name : op.getCommunicatorNames())
      if (!program.getCommunicator(name))
        return op->emitOpError() << "is over " << name
                                 << ", which is none of the program's communicators";
    if (StringAttr name = op.getChannelAttr(); name && !program.getChannel(name))
      return op->emitOpError() << "is over " << name << ", which is none of the program's channels";
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult BufferAttr::verify(EmitError emitError, StringRef name, MemoryKind, int64_t bytes,
                                 int64_t offset, int64_t begin, int64_t end, int64_t, bool) {
  if (bytes < 0 || offset < 0)
    return emitError() << "buffer '" << name << "' has " << bytes << " bytes at offset " << offset;
  if (begin < 0 || end < begin)
    return emitError() << "buffer '" << name << "' lives from op " << begin << " to op " << end;
  return success();
}

/// More ops than any function has; a list with a number for each still fits in memory.
static constexpr int64_t kMostOps = int64_t(1) << 24;

LogicalResult LedgerAttr::verify(EmitError emitError, StringRef function, bool, int64_t bytes,
                                 int64_t peak, int64_t ops, int64_t at, StringRef, StringRef,
                                 int64_t, bool, ArrayAttr buffers) {
  if (peak < 0 || bytes < peak)
    return emitError() << "the ledger of '" << function << "' has a peak of " << peak
                       << " bytes in " << bytes;
  if (ops < 0 || ops > kMostOps)
    return emitError() << "the ledger of '" << function << "' has " << ops << " ops, expected 0 to "
                       << kMostOps;
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
