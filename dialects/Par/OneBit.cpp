//===- OneBit.cpp - sums that send a bit per element ------------------------------------------===//

#include "dialects/Par/OneBit.h"
#include "runtime/include/partita_rt/one_bit_shapes.h"

using namespace mlir;
using namespace partita;
using namespace partita::par;

#define GET_OP_CLASSES
#include "dialects/Par/OneBit.cpp.inc"

/// The layout of the sum of a value that is a partial sum over the axis alone.
static std::optional<Layout> sumOf(Type value, StringAttr axis) {
  Layout layout = Layout::of(value);
  if (layout.kind(axis) != Kind::Partial || layout.partial.size() != 1)
    return std::nullopt;
  layout.set(axis, Kind::Invariant);
  return layout;
}

static RankedTensorType typeOf(const Layout &layout, Type value, MeshAttr mesh) {
  auto type = layout.localType(getElementTypeOrSelf(value), mesh, [](const Twine &) {});
  return succeeded(type) ? *type : RankedTensorType();
}

RankedTensorType OneBitAllReduceOp::workerType(Type value, StringAttr axis, MeshAttr mesh) {
  std::optional<Layout> layout = sumOf(value, axis);
  if (!layout || layout->shape.empty() || !layout->flat.empty())
    return {};
  layout->shape.insert(layout->shape.begin(), mesh.sizeOf(axis));
  layout->splits.insert(layout->splits.begin(), DimSplit());
  layout->shard(axis, 0, 1);
  return typeOf(*layout, value, mesh);
}

RankedTensorType OneBitAllReduceOp::serverType(Type value, StringAttr axis, MeshAttr mesh) {
  std::optional<Layout> layout = sumOf(value, axis);
  if (!layout || layout->shape.empty() || !layout->flat.empty())
    return {};
  layout->set(axis, Kind::Flat);
  return typeOf(*layout, value, mesh);
}

bool par::hasOneBitSums(Operation *root) {
  return root->walk([](OneBitAllReduceOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

int64_t OneBitPadding::validOf(int64_t n, int64_t place) const {
  return axis ? partita_rt::oneBitValid(n, elements, place) : n;
}

std::optional<OneBitPadding> OneBitAllReduceOp::paddingOf(RankedTensorType value, MeshAttr mesh) {
  Layout layout = Layout::of(value);
  OneBitPadding padding;
  if (!layout.flat.empty()) // has no errors either, for which it is refused
    return padding;
  int64_t outer = 1; // indices of a shard in the dimensions before
  for (auto [dim, split] : llvm::enumerate(layout.splits)) {
    int64_t held = value.getDimSize(dim), ranks = 1;
    for (const AxisSplit &each : split)
      ranks *= mesh.sizeOf(each.axis);
    if (held * ranks != layout.shape[dim]) {
      if (outer != 1 || split.size() != 1)
        return std::nullopt;
      padding = {split.front().axis, layout.shape[dim] * (value.getNumElements() / held)};
    }
    outer *= held;
  }
  return padding;
}

int64_t OneBitAllReduceOp::getBlockBytes() {
  int64_t bytes = 0, ranks = getRankCount();
  for (Value value : getValues())
    bytes +=
        partita_rt::oneBitBytes(cast<RankedTensorType>(value.getType()).getNumElements(), ranks);
  return bytes;
}

/// One rank alone compresses nothing.
LaterCollectives OneBitAllReduceOp::getLater() {
  int64_t ranks = getRankCount();
  if (ranks == 1)
    return {};
  auto bytes = [&](CollectiveKind kind) {
    return std::pair(kind, partita_rt::wireBytes(kind, getBlockBytes(), ranks));
  };
  return {getExact(), "bits", {bytes(CollectiveKind::AllToAll), bytes(CollectiveKind::AllGather)}};
}

/// Up to the first step that is not exact, the sums are those of the model.
std::optional<Loss> OneBitAllReduceOp::getLoss() {
  if (getRankCount() == 1)
    return std::nullopt;
  partita_rt::ExactSteps exact = getExact();
  int64_t steps = exact.doubling == 0 ? exact.until : std::min(exact.until, exact.doubling);
  while (exact.contains(steps + 1))
    ++steps;
  return Loss{"compressed sums", steps, /*hasReference=*/true};
}

LogicalResult ExactStepsAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                     int64_t until, int64_t doubling) {
  if (doubling < 0)
    return emitError() << "sums are exact in " << doubling
                       << " steps of each interval, expected a number from 0 on";
  if (until < 0)
    return emitError() << "sums are exact until step " << until << ", expected a number from 0 on";
  return success();
}

ParseResult partita::parseExactSteps(OpAsmParser &parser, ExactStepsAttr &steps) {
  int64_t until = 0, doubling = 0;
  SMLoc at = parser.getCurrentLocation();
  if (parser.parseKeyword("until") || parser.parseInteger(until) ||
      (succeeded(parser.parseOptionalKeyword("doubling")) && parser.parseInteger(doubling)))
    return failure();
  steps = ExactStepsAttr::getChecked([&] { return parser.emitError(at); }, parser.getContext(),
                                     until, doubling);
  return success(steps != nullptr);
}

void partita::printExactSteps(OpAsmPrinter &printer, Operation *, ExactStepsAttr steps) {
  printer << "until " << steps.getUntil();
  if (steps.getDoubling() != 0)
    printer << " doubling " << steps.getDoubling();
}

/// Checks the number of the step.
static LogicalResult verifyStep(Operation *op, Value t) {
  auto type = cast<RankedTensorType>(t.getType());
  if (type.getRank() == 0 && type.getElementType().isF32() && !type.getEncoding())
    return success();
  return op->emitOpError() << "decides by a step's number of type " << type
                           << ", which is not one f32 that all ranks have";
}

static LogicalResult verifyBeta(Operation *op, const APFloat &beta) {
  double kept = beta.convertToDouble();
  if (kept >= 0 && kept < 1)
    return success();
  return op->emitOpError() << "keeps " << kept << " of a mean, expected a number in [0, 1)";
}

LogicalResult OneBitAllReduceOp::verify() {
  if (failed(verifyAxis(*this, getAxisAttr())) || failed(verifyStep(*this, getT())))
    return failure();
  if (getOperands_().size() % 3 != 0 || getOperands_().empty() ||
      getOperands_().size() != getResults_().size())
    return emitOpError() << "needs values, as many errors of workers and of servers, and a result "
                            "for each; it has "
                         << getOperands_().size() << " operands and " << getResults_().size()
                         << " results";
  MeshAttr mesh = MeshAttr::of(*this);
  for (size_t i = 0; i < getCount(); ++i) {
    auto value = cast<RankedTensorType>(getValues()[i].getType());
    std::optional<Layout> sum = sumOf(value, getAxisAttr());
    if (!sum)
      return emitOpError() << "over " << getAxisAttr()
                           << " expects partial sums over this axis alone, found " << value
                           << "; sum over other axes first, exactly";
    if (!value.getElementType().isF32())
      return emitOpError() << "compresses f32, found " << value;
    RankedTensorType worker = workerType(value, getAxisAttr(), mesh),
                     server = serverType(value, getAxisAttr(), mesh);
    if (!worker || !server)
      return emitOpError() << "has no shards of " << value
                           << ": a scalar has none, and flat shards no more";
    if (!paddingOf(value, mesh))
      return emitOpError() << "leaves out padding at the end of a shard, and " << value
                           << " has some elsewhere";
    std::pair<Type, Type> found[] = {{worker, getWorkers()[i].getType()},
                                     {server, getServers()[i].getType()},
                                     {withLayout(value, *sum), getResults_()[i].getType()},
                                     {worker, getResults_()[getCount() + i].getType()},
                                     {server, getResults_()[2 * getCount() + i].getType()}};
    for (auto [expected, type] : found)
      if (type != expected)
        return emitOpError() << "of " << value << " over " << getAxisAttr() << " expects "
                             << expected << ", found " << type;
  }
  return success();
}

LogicalResult OneBitTermOp::verify() {
  if (failed(verifyAxis(*this, getAxisAttr())) || failed(verifyStep(*this, getT())))
    return failure();
  std::optional<Layout> sum = sumOf(getTerm().getType(), getAxisAttr());
  if (!sum)
    return emitOpError() << "over " << getAxisAttr()
                         << " expects a partial sum over this axis alone, found "
                         << getTerm().getType();
  if (Type mean = withLayout(getTerm().getType(), *sum); getMean().getType() != mean)
    return emitOpError() << "of " << getTerm().getType() << " expects a mean of type " << mean
                         << ", found " << getMean().getType();
  if (getResult().getType() != getTerm().getType())
    return emitOpError() << "yields " << getTerm().getType() << ", not " << getResult().getType();
  return verifyBeta(*this, getBeta());
}

LogicalResult OneBitMeanOp::verify() {
  if (failed(verifyAxis(*this, getAxisAttr())) || failed(verifyStep(*this, getT())))
    return failure();
  if (Layout::of(getResult().getType()).kind(getAxisAttr()) != Kind::Invariant)
    return emitOpError() << "over " << getAxisAttr()
                         << " expects what its ranks have in full, found " << getResult().getType();
  return verifyBeta(*this, getBeta());
}

LogicalResult OneBitClipOp::verify() {
  return failed(verifyStep(*this, getT())) ? failure() : verifyBeta(*this, getBeta());
}
