//===- Lowering.cpp - pointers and names ------------------------------------------------------===//

#include "partita/Lower/Lowering.h"
#include "dialects/Interfaces/Floats.h"
#include "dialects/Offload/Offload.h"
#include "dialects/Par/Par.h"
#include "dialects/Rt/Names.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/FusedLookup.h"
#include "dialects/Tx/FusedMatmul.h"
#include "dialects/Zero/Zero.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

Lowering::Lowering(ModuleLowering &shared, func::FuncOp function, OpBuilder &builder)
    : shared(shared), builder(builder), naming(function), function(function) {
  names["rank"] = names["micro"] = names["i"] = 1;
}

//===------------------------------------------------------------------------------------------===//
// Places
//===------------------------------------------------------------------------------------------===//

AtAttr Lowering::at(Value tensor) const {
  MLIRContext *context = tensor.getContext();
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    auto batch = microBatches.find(tensor);
    if (batch != microBatches.end())
      return at(batch->second.first);
    if (Value sum = sums.lookup(tensor))
      return at(sum);
    if (Value saved = train::forwardOf(tensor); saved != tensor)
      return at(saved);
    auto input = shared.inputIndex.find(argument);
    return AtAttr::get(context, Space::Input,
                       input == shared.inputIndex.end() ? argument.getArgNumber() : input->second,
                       {});
  }
  Operation *definer = tensor.getDefiningOp();
  if (auto read = dyn_cast<train::ReadOp>(definer))
    return SymbolTable::lookupNearestSymbolFrom(read, read.getSymbolAttr())
        ->getAttrOfType<AtAttr>(RtDialect::kAt);
  auto places = definer->getAttrOfType<ArrayAttr>(RtDialect::kBuffers);
  unsigned number = 0; // a token has no place
  for (OpResult other : definer->getResults().take_front(cast<OpResult>(tensor).getResultNumber()))
    number += isa<RankedTensorType>(other.getType());
  return cast<AtAttr>(places[number]);
}

Value Lowering::savedAs(Value tensor) const {
  Value saved = train::forwardOf(tensor);
  return saved == tensor || microBatches.contains(tensor) ? Value() : saved;
}

View Lowering::view(Value tensor) const {
  if (Value sum = sums.lookup(tensor))
    return view(sum);
  if (Value saved = savedAs(tensor))
    return view(saved);
  if (isa<BlockArgument>(tensor))
    return View::dense(type(tensor).getShape());
  return viewOf(at(tensor), type(tensor));
}

bool Lowering::samePlace(Value a, Value b) const {
  return at(a).getSpace() == at(b).getSpace() && at(a).getOffset() == at(b).getOffset() &&
         view(a) == view(b);
}

TypedAttr Lowering::literal(Value tensor) const {
  DenseElementsAttr value;
  if (isa<BlockArgument>(tensor) || hasMemory(tensor) ||
      !matchPattern(tensor, m_Constant(&value)) || !value.isSplat())
    return {};
  return value.getSplatValue<TypedAttr>();
}

//===------------------------------------------------------------------------------------------===//
// Pointers
//===------------------------------------------------------------------------------------------===//

Location Lowering::named(StringRef name) { return NameLoc::get(builder.getStringAttr(name)); }

std::string Lowering::pendingOf(Operation *start) {
  if (!isa_and_nonnull<AsyncStartInterface>(start))
    return "";
  std::string &name = pending[start];
  if (name.empty())
    name = uniqueName("pending");
  return name;
}

std::string Lowering::uniqueName(StringRef wish) {
  std::string base = identifier(wish);
  while (true) {
    unsigned &count = names[base];
    if (count++ == 0)
      return base;
    std::string next = base + "_" + std::to_string(count);
    if (names.try_emplace(next, 1).second)
      return next;
  }
}

std::string Lowering::nameOf(Value tensor) {
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    auto batch = microBatches.find(tensor);
    if (batch != microBatches.end())
      return nameOf(batch->second.first);
    if (auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                          train::TrainDialect::kName))
      return name.getValue().str();
    if (auto role = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                          train::TrainDialect::kRole))
      return role.getValue().str();
    return "input" + std::to_string(argument.getArgNumber());
  }
  return naming.of(tensor);
}

Value Lowering::pointer(AtAttr at, Type element, ArrayRef<int64_t> shape, StringRef name) {
  Location loc = named(uniqueName(name));
  auto type = BufferType::get(builder.getContext(), element);
  switch (at.getSpace()) {
  case Space::Persistent:
    return PersistentOp::create(builder, loc, type, at.getOffset(), shape);
  case Space::Host:
    return HostOp::create(builder, loc, type, at.getOffset(), shape);
  case Space::Pinned:
    return PinnedOp::create(builder, loc, type, at.getOffset(), shape);
  case Space::InFlight: {
    auto [ring, offset] = inFlight.locate(at.getOffset());
    return InFlightOp::create(builder, loc, type, offset, ring, shape);
  }
  case Space::Input:
    return InputOp::create(builder, loc, type, at.getOffset(), Value(), shape);
  case Space::Control:
    return ControlOp::create(builder, loc, type, "learningRate");
  default:
    return ArenaOp::create(builder, loc, type, at.getOffset(), shape);
  }
}

/// The value that another one has its memory from: a view's operand, what a wait was given, what a
/// matmul was added to.
static Value sourceOf(Value tensor) {
  Operation *definer = tensor.getDefiningOp();
  if (!definer)
    return {};
  if (isa<tx::ReshapeOp, tx::BroadcastOp, tx::TransposeOp, tx::SliceOp, train::BarrierOp>(definer))
    return definer->getOperand(0);
  unsigned number = cast<OpResult>(tensor).getResultNumber();
  if (auto update = dyn_cast<train::OptimizerInterface>(definer)) {
    std::optional<unsigned> updated = update.getUpdatedOperand(number);
    return updated ? definer->getOperand(*updated) : Value();
  }
  if (auto collective = dyn_cast<CollectiveInterface>(definer);
      collective && collective.getRow().inPlace && !collective.isStart())
    return definer->getOperand(number);
  if (auto fused = dyn_cast<tx::FusedMatmulOp>(definer))
    return tx::FusedMatmul::of(fused).addedTo(number);
  if (auto lookup = dyn_cast<tx::FusedLookupOp>(definer))
    return tx::FusedLookup::of(lookup).gradientSoFar();
  if (isa<tx::LayerNormGradAddOp, tx::RmsNormGradAddOp>(definer) && number == 0)
    return definer->getOperands().back();
  auto wait = dyn_cast<AsyncWaitInterface>(definer);
  return wait ? wait.getFilledBy(number) : Value();
}

Value Lowering::buffer(Value tensor) {
  if (Value known = pointers.lookup(tensor))
    return known;
  if (Value sum = sums.lookup(tensor))
    return buffer(sum);
  if (Value saved = savedAs(tensor))
    return buffer(saved);
  if (Value source = sourceOf(tensor); source && at(source).getSpace() == at(tensor).getSpace() &&
                                       at(source).getOffset() == at(tensor).getOffset())
    return buffer(source);
  Value &pointer = pointers[tensor];
  Type element = type(tensor).getElementType();
  auto batch = microBatches.find(tensor);
  if (batch == microBatches.end())
    return pointer = this->pointer(at(tensor), element, type(tensor).getShape(), nameOf(tensor));
  auto [full, micro] = batch->second;
  Location loc = named(uniqueName(nameOf(tensor)));
  auto result = BufferType::get(builder.getContext(), element);
  Value made;
  if (at(full).getSpace() == Space::Input)
    made =
        InputOp::create(builder, loc, result, at(full).getOffset(), micro, type(tensor).getShape());
  else
    made = AdvanceOp::create(builder, loc, result, buffer(full), micro, elements(tensor));
  return pointers[tensor] = made; // buffer() may have moved the map
}

Value Lowering::scratch(int64_t first, StringRef name) {
  auto full = op->getAttrOfType<AtAttr>(RtDialect::kWorkspace);
  auto at = AtAttr::get(op->getContext(), full.getSpace(), full.getOffset() + 4 * first, {});
  int64_t count = cast<KernelInterface>(op).workspaceElements() - first;
  return pointer(at, builder.getF32Type(), {count}, name);
}

void Lowering::copy(Value destination, const View &to, Value tensor) {
  View from = view(tensor);
  Value source = buffer(tensor);
  Type element = type(tensor).getElementType();
  // Of doubles and bytes there is no kernel of rows.
  bool isFloat = isa<FloatType>(element) && !element.isF64() && !isByteFloat(element);
  std::optional<int64_t> toRows = to.rowStride(), fromRows = from.rowStride();
  if (isFloat && toRows && fromRows) {
    int64_t width = from.shape.back(), rows = from.elements() / std::max<int64_t>(width, 1);
    if (to.isDense() && from.isDense()) {
      rows = 1;
      width = from.elements();
      toRows = fromRows = width;
    }
    create<CopyRowsOp>(destination, source, *toRows, *fromRows, rows, width);
    return;
  }
  create<CopyOp>(destination, source, to.strides, from.strides, from.shape,
                 elementBytes(type(tensor).getElementType()));
}

SmallVector<Value> Lowering::summed() {
  SmallVector<Value> buffers;
  auto places = op->getAttrOfType<ArrayAttr>(RtDialect::kBuffers);
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    auto place = cast<AtAttr>(places[i]);
    if (place == at(operand)) {
      buffers.push_back(buffer(operand));
      continue;
    }
    Value made =
        pointer(place, type(operand).getElementType(), type(operand).getShape(), "reduced");
    copy(made, View::dense(type(operand).getShape()), operand);
    buffers.push_back(made);
  }
  return buffers;
}

void Lowering::convert(Value destination, Value source, int64_t elements) {
  auto typeOf = [&](Value pointer) {
    return builder.getTypeArrayAttr({cast<BufferType>(pointer.getType()).getElement()});
  };
  OpBuilder atTop(shared.module.getBody(), shared.module.getBody()->begin());
  auto kernel = KernelOp::create(atTop, builder.getUnknownLoc(), "kernel", /*loops=*/1,
                                 builder.getStrArrayAttr({"out"}), typeOf(destination),
                                 builder.getStrArrayAttr({"x"}), typeOf(source), /*steps=*/{1, 1},
                                 builder.getStrArrayAttr({}), builder.getStrArrayAttr({"$x"}));
  create<LaunchOp>(shared.kernel(kernel, "map_cast").getValue(), ValueRange{destination, source},
                   ArrayRef<int64_t>{elements}, ArrayRef<int64_t>{});
}

//===------------------------------------------------------------------------------------------===//
// Loops
//===------------------------------------------------------------------------------------------===//

void Lowering::enterLoop(train::AccumulateOp loop, Region &region, Value micro) {
  for (BlockArgument argument : region.getArguments())
    if (Value batch = loop.getBatchOf(argument))
      microBatches[argument] = {batch, micro};
    else if (Value sum = loop.getSumOf(argument))
      sums[argument] = sum;
  this->micro = loop.getOrder() ? micro : Value();
  inFlight = loop->getAttrOfType<InFlightAttr>(RtDialect::kInFlight);
  outer.push_back(pointers);
}

void Lowering::leaveLoop() {
  pointers = std::move(outer.back());
  outer.pop_back();
  micro = {};
  inFlight = {};
}

//===------------------------------------------------------------------------------------------===//
// Kernels shared by the module's functions
//===------------------------------------------------------------------------------------------===//

FlatSymbolRefAttr ModuleLowering::kernel(Operation *candidate, StringRef name) {
  std::string text = candidate->getName().getStringRef().str();
  llvm::raw_string_ostream stream(text);
  candidate->getAttrDictionary().print(stream);
  FlatSymbolRefAttr &known = kernels[text];
  if (known) {
    candidate->erase();
    return known;
  }
  std::string base = name.substr(0, 60).str(), unique = base; // made of op names
  for (unsigned i = 2; !kernelNames.insert(unique).second; ++i)
    unique = base + "_" + std::to_string(i);
  SymbolTable::setSymbolName(candidate, unique);
  return known = FlatSymbolRefAttr::get(SymbolTable::getSymbolName(candidate));
}

//===------------------------------------------------------------------------------------------===//
// Hyperparameters
//===------------------------------------------------------------------------------------------===//

StringRef rt::hyperField(StringRef name) {
  static constexpr std::pair<StringLiteral, StringLiteral> fields[] = {
      {"beta1", "beta1"},       {"beta2", "beta2"},       {"epsilon", "epsilon"},
      {"decay", "weightDecay"}, {"momentum", "momentum"}, {"max_norm", "gradientClip"}};
  for (auto [known, field] : fields)
    if (known == name)
      return field;
  return "";
}

FloatAttr ModuleLowering::unlessShared(StringRef name, FloatAttr value) const {
  auto found = hyper.find(hyperField(name).str());
  return found != hyper.end() && value.getValueAsDouble() == found->second ? FloatAttr() : value;
}
