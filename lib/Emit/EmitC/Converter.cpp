//===- Converter.cpp - converts ops of the exit dialect to EmitC ------------------------------===//
//
// Converts op by op. Every function takes the rank as an argument. A pointer is a call of its
// accessor. A call with an aggregate among its arguments (`{data, strides...}`) is verbatim text
// with operands, since EmitC has no such expression. Where work is queued, kernels take the rank's
// stream as their first argument; functions that take the rank find it there.
//
// Kernels become functions of plain loops (KernelsToEmitC.cpp), layers functions of a row of their
// table (LayersToEmitC.cpp). Collectives and copies are in CollectivesToEmitC.cpp.
//
//===------------------------------------------------------------------------------------------===//

#include "lib/Emit/EmitC/Converter.h"
#include "dialects/Train/Train.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

static std::string shapeComment(ArrayRef<int64_t> shape) {
  std::string text = "[";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(shape, stream);
  return text + "]";
}

LogicalResult Converter::convert(func::FuncOp function) {
  b.setInsertionPoint(function);
  variables.clear();
  SmallVector<Type> types = {opaque("Rank &")};
  SmallVector<StringRef> names = {"rank"};
  if (function->hasAttr(RtDialect::kPassOf)) {
    types.push_back(b.getI64Type());
    names.push_back("micro");
  }
  if (auto pendings = function->getAttrOfType<PendingsAttr>(RtDialect::kPendings)) {
    types.push_back(emitc::PointerType::get(opaque("Pending")));
    names.push_back(pendings.getName());
    variables.insert_range(pendings.all());
  }
  emitc::FuncOp made = begin(function.getLoc(), function.getName(), types, names);
  for (auto [argument, variable] :
       llvm::zip(function.getArguments(), made.getBody().getArguments().drop_front()))
    values[argument] = variable;
  for (StringRef attribute : {train::TrainDialect::kEntryPoint, RtDialect::kPassOf})
    if (Attribute entry = function->getAttr(attribute))
      made->setAttr(attribute, entry);
  if (failed(convertBody(function.getBody().front())))
    return failure();
  function.erase();
  return success();
}

emitc::FuncOp Converter::begin(Location loc, StringRef name, ArrayRef<Type> types,
                               ArrayRef<StringRef> names) {
  auto made = emitc::FuncOp::create(b, loc, name, b.getFunctionType(types, {}));
  made.setSpecifiersAttr(b.getStrArrayAttr({"static"}));
  Block *body = made.addEntryBlock();
  for (auto [argument, called] : llvm::zip(body->getArguments(), names))
    argument.setLoc(NameLoc::get(b.getStringAttr(called)));
  rank = body->getArgument(0);
  b.setInsertionPointToEnd(body);
  stream = createStream(NameLoc::get(b.getStringAttr("stream")));
  return made;
}
LogicalResult Converter::convertBody(Block &block) {
  if (failed(convertOps(block)))
    return failure();
  if (isa<LayerOp>(block.getParentOp()))
    emitc::ReturnOp::create(b, block.getParentOp()->getLoc(), Value());
  if (stream && stream.use_empty())
    stream.getDefiningOp()->erase();
  return success();
}

static IntegerAttr lastMicroBatch(Operation *op) {
  return op->getAttrOfType<IntegerAttr>(RtDialect::kLast);
}

LogicalResult Converter::convertOps(Block &block) {
  for (Block::iterator next = block.begin(); next != block.end();) {
    // The ops of one branch, including pointers and comments before and between them.
    SmallVector<Operation *> ops;
    IntegerAttr last;
    size_t length = 0; // up to the end of the branch
    for (; next != block.end(); ++next) {
      IntegerAttr own = lastMicroBatch(&*next);
      if (own ? last && own != last : !isPointer(&*next) && !isa<CommentOp>(*next))
        break;
      ops.push_back(&*next);
      if (own)
        last = own, length = ops.size();
    }
    if (last && failed(convertBranch(ArrayRef(ops).take_front(length), last.getInt())))
      return failure();
    for (Operation *op : ArrayRef(ops).drop_front(length))
      if (failed(convertOp(op)))
        return failure();
    if (next != block.end() && !lastMicroBatch(&*next) && failed(convertOp(&*next++)))
      return failure();
  }
  return success();
}

/// Emits if (rank.slot.microBatch == 3) { ... }, after pointers in `ops` that others need, too.
LogicalResult Converter::convertBranch(ArrayRef<Operation *> ops, int64_t microBatch) {
  llvm::SmallPtrSet<Operation *, 16> inside;
  const auto *first = llvm::find_if(ops, lastMicroBatch);
  for (const auto *it = ops.end(); it != ops.begin();) {
    Operation *op = *--it;
    bool isAlone = isPointer(op) && llvm::all_of(op->getUsers(), [&](Operation *user) {
                     return inside.contains(user);
                   });
    if (lastMicroBatch(op) || isAlone || (isa<CommentOp>(op) && it > first))
      inside.insert(op);
  }
  for (Operation *op : ops)
    if (!inside.contains(op) && failed(convertOp(op)))
      return failure();
  Location loc = b.getUnknownLoc(); // a location's name would name a variable
  auto text = [&](StringRef literal) {
    return emitc::LiteralOp::create(b, loc, b.getI64Type(), literal);
  };
  auto isLast =
      emitc::CmpOp::create(b, loc, b.getI1Type(), emitc::CmpPredicate::eq,
                           text("rank.slot.microBatch"), text(std::to_string(microBatch)));
  auto branch = emitc::IfOp::create(b, (*first)->getLoc(), isLast, /*addThenBlock=*/true,
                                    /*addElseBlock=*/false);
  OpBuilder::InsertionGuard guard(b);
  Block &block = branch.getThenRegion().front();
  b.setInsertionPointToStart(&block);
  for (Operation *op : ops)
    if (inside.contains(op) && failed(convertOp(op)))
      return failure();
  if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>())
    emitc::YieldOp::create(b, loc);
  return success();
}

LogicalResult Converter::convertOp(Operation *op) {
  if (auto call = dyn_cast<CallInterface>(op))
    return convertCall(call), success();
  if (auto exchange = dyn_cast<ExchangeInterface>(op))
    return convertExchange(exchange), success();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<ArenaOp, NullOp, InFlightOp, BeginPassOp, RunPassOp, AwaitSentOp, PersistentOp, HostOp,
            PinnedOp, TransferOp, TransferWaitOp, InputOp, ControlOp, TableOp, OffsetOp, AdvanceOp,
            ForOp, LaunchOp, TakePartOp, PutPartOp, WaitOp, rt::PollOp, ReportOp, CommentOp, WorkOp,
            CountLabelsOp, IotaOp, StepNumberOp, rt::FirstIndexOp, rt::RandomKeyOp,
            rt::FirstElementOp, rt::CallOp, PendingsOp, PendingOp, SendOp, ReceiveOp>(
          [&](auto typed) {
            emit(typed);
            return success();
          })
      .Case<EndOp>([](auto) { return success(); })
      .Case<func::ReturnOp>([&](auto end) {
        emitc::ReturnOp::create(b, end.getLoc(), Value());
        return success();
      })
      .Default([](Operation *other) {
        return other->emitOpError() << "is not part of the exit dialect; run lower-to-rt first";
      });
}

/// Emits a pointer variable: `callee<T>(arguments)`, with its shape as a comment.
void Converter::pointer(Operation *op, StringRef callee, ArrayRef<Attribute> arguments,
                        ValueRange operands, ArrayRef<int64_t> shape, bool readOnly) {
  Value buffer = op->getResult(0);
  Type element = cast<BufferType>(buffer.getType()).getElement();
  ArrayAttr templates =
      element.isF32() && !readOnly ? nullptr : b.getArrayAttr({text(cppName(element))});
  auto call = emitc::CallOpaqueOp::create(b, op->getLoc(), TypeRange{pointerType(buffer, readOnly)},
                                          callee, b.getArrayAttr(arguments), templates, operands);
  if (!shape.empty())
    call->setAttr(emit::kCommentAttr, b.getStringAttr(shapeComment(shape)));
  values[buffer] = call.getResult(0);
}

void Converter::convertCall(CallInterface call) {
  Operation *op = call;
  SmallVector<CallArgument> arguments = call.getCallArguments(target);
  llvm::erase_if(arguments, [](auto &argument) { return argument.text.empty(); });
  bool onStream = stream && (arguments.empty() || arguments[0].text != "rank");
  bool aggregate = llvm::any_of(
      arguments, [](auto &argument) { return !argument.values.empty() && !argument.isValue(); });
  if (aggregate) {
    std::string line = call.getCallee().str() + "(";
    SmallVector<Value> operands;
    for (auto [i, argument] : llvm::enumerate(arguments)) {
      line += (i ? ", " : "") + argument.text;
      llvm::append_range(operands, mapped(argument.values));
    }
    return onStream ? kernelLine(op->getLoc(), line + ");", operands)
                    : verbatim(op->getLoc(), line + ");", operands);
  }
  SmallVector<Attribute> parts;
  SmallVector<Value> operands;
  if (onStream) {
    parts.push_back(b.getIndexAttr(0));
    operands.push_back(stream);
  }
  for (CallArgument &argument : arguments) {
    if (argument.isValue()) {
      parts.push_back(b.getIndexAttr(operands.size()));
      operands.push_back(mapped(argument.values[0]));
      continue;
    }
    for (size_t at; (at = argument.text.find("{{")) != std::string::npos;)
      argument.text.erase(at, 1);
    parts.push_back(text(argument.text));
  }
  emitc::CallOpaqueOp::create(b, op->getLoc(), TypeRange{}, call.getCallee(), b.getArrayAttr(parts),
                              ArrayAttr(), operands);
}

std::string Converter::elementsText(TableOp op) {
  auto dense = cast<DenseElementsAttr>(op.getValue());
  Type element = dense.getElementType();
  SmallVector<std::string> numbers;
  if (isa<FloatType>(element))
    for (const APFloat &value : dense.getValues<APFloat>())
      numbers.push_back(floatLiteral(value.convertToDouble()));
  else
    for (const APInt &value : dense.getValues<APInt>())
      numbers.push_back(element.isInteger(1) ? (value.isZero() ? "false" : "true")
                                             : std::to_string(value.getSExtValue()));
  return llvm::join(numbers, ", ");
}

/// Emits a loop from `first` to before `end`.
emitc::ForOp Converter::count(StringRef name, uint64_t first, uint64_t end, uint64_t step) {
  Location loc = b.getUnknownLoc(); // a location's name would name a variable
  auto bound = [&](uint64_t value) -> Value {
    return emitc::LiteralOp::create(b, loc, b.getI64Type(), std::to_string(value));
  };
  auto loop = emitc::ForOp::create(b, loc, bound(first), bound(end), bound(step));
  loop.getInductionVar().setLoc(NameLoc::get(b.getStringAttr(name)));
  return loop;
}

void Converter::emit(ForOp op) {
  emitc::ForOp loop =
      count(op.getStep() == 1 ? "micro" : "group", 0, op.getCount() * op.getStep(), op.getStep());
  values[op.getBody().getArgument(0)] = loop.getInductionVar();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  (void)convertOps(op.getBody().front());
}

void Converter::emit(BeginPassOp op) {
  std::string rings;
  for (const InFlightAttr::Ring &ring : op.getMemory().getRings())
    rings += llvm::formatv("{0}{{{{{1}, {2}, {3}{4}}", rings.empty() ? "" : ", ", ring.blocks,
                           ring.bytes, ring.offset, ring.isPinned ? ", Home::Host" : "")
                 .str();
  verbatim(op.getLoc(),
           "beginPass(rank, {{" + rings + "}, {}, " + stringLiteral(op.getWhat()) + ");",
           {mapped(op.getMicro())});
}
void Converter::emit(InFlightOp op) {
  SmallVector<Attribute> arguments = {number(op, "offset")};
  if (op.getRing() > 0)
    arguments.push_back(op.getRingAttr());
  pointer(op, "rank.inFlight", arguments, {}, op.getShape());
}
void Converter::emit(RunPassOp op) {
  SmallVector<std::string> terms(op.getPlus().size(), "{}");
  if (op.getFirst() || terms.empty())
    terms.insert(terms.begin(), std::to_string(op.getFirst()));
  std::string pendings = op.getPendings() ? ", " + op.getPendings()->getName().str() : "";
  verbatim(op.getLoc(),
           (op.getCallee() + "(rank, " + llvm::join(terms, " + ") + pendings + ");").str(),
           mapped(op.getPlus()));
}
void Converter::emit(AwaitSentOp op) {
  verbatim(op.getLoc(), "awaitSent(rank, " + channelName(op.getChannel()) + ");");
}

/// Emits kernel(buffers..., sizes..., strides...).
void Converter::emit(LaunchOp op) {
  SmallVector<Attribute> arguments;
  SmallVector<Value> operands;
  if (stream)
    operands.push_back(stream);
  llvm::append_range(operands, mapped(op.getBuffers()));
  for (size_t i = 0; i < operands.size(); ++i)
    arguments.push_back(b.getIndexAttr(i));
  for (int64_t size : op.getSizes())
    arguments.push_back(b.getI64IntegerAttr(size));
  for (int64_t stride : op.getStrides())
    arguments.push_back(b.getI64IntegerAttr(stride));
  emitc::CallOpaqueOp::create(b, op.getLoc(), TypeRange{}, op.getKernel(),
                              b.getArrayAttr(arguments), ArrayAttr(), operands);
}

void Converter::emit(FirstElementOp op) {
  std::string sum;
  for (auto [axis, stride] : llvm::zip_equal(op.getAxes(), op.getStrides()))
    sum += (sum.empty() ? "" : " + ") +
           llvm::formatv("int64_t(rank.coordinates[{0}]) * {1}", axis, stride).str();
  setNumber(op.getLoc(), op.getIndex(), sum);
}
void Converter::emit(rt::FirstIndexOp op) {
  std::string number;
  for (auto [axis, size] : llvm::zip(op.getAxes(), op.getSizes())) {
    std::string coordinate = "rank.coordinates[" + std::to_string(axis) + "]";
    if (op.getBehind())
      coordinate =
          llvm::formatv("(({0} + {1}) % {2})", coordinate, size - op.getBehind(), size).str();
    number = number.empty()
                 ? coordinate
                 : "(" + number + " * " + std::to_string(size) + " + " + coordinate + ")";
  }
  std::string times = " * int64_t(" + std::to_string(op.getShard()) + ")";
  setNumber(op.getLoc(), op.getFirst(), number + times);
  for (int64_t block = 1, ranks = op.getSizes().front(); block < int64_t(op.getBlocks()); ++block) {
    bool isBackwards = block % 2 != 0; // its shards are those of the ranks from the last one on
    std::string first = std::to_string(block * ranks + (isBackwards ? ranks - 1 : 0));
    setNumber(op.getLoc(), op.getFirst(),
              "(" + first + (isBackwards ? " - " : " + ") + number + ")" + times, block);
  }
}
