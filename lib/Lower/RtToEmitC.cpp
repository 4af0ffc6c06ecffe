//===- RtToEmitC.cpp - rt-to-emitc ------------------------------------------------------------===//
//
// One op to one, for the CPU or for CUDA, as the module says: there kernels get the rank's stream
// in front, and numbers from memory stay pointers (CallArgument); who is given the rank finds both.
//
// One op to one. The rank is every function's argument; a pointer is a call of its accessor; a call
// with an aggregate among its arguments (`{data, strides...}`) is verbatim text with operands,
// since EmitC has no such expression. Kernels are functions of plain loops (KernelsToEmitC.cpp).
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "lib/Lower/KernelsToEmitC.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "partita/Lower/Passes.h"

namespace partita {
#define GEN_PASS_DEF_RTTOEMITC
#include "partita/Lower/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

std::string shapeComment(ArrayRef<int64_t> shape) {
  std::string text = "[";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(shape, stream);
  return text + "]";
}

class Converter {
public:
  Converter(MLIRContext *context, bool cuda) : b(context), cuda(cuda) {}

  LogicalResult convert(func::FuncOp function) {
    b.setInsertionPoint(function);
    auto made = emitc::FuncOp::create(b, function.getLoc(), function.getName(),
                                      b.getFunctionType({opaque("Rank &")}, {}));
    made.setSpecifiersAttr(b.getStrArrayAttr({"static"}));
    Block *body = made.addEntryBlock();
    body->getArgument(0).setLoc(NameLoc::get(b.getStringAttr("rank")));
    rank = body->getArgument(0);
    b.setInsertionPointToEnd(body);
    if (cuda)
      stream = emitc::LiteralOp::create(b, NameLoc::get(b.getStringAttr("stream")),
                                        opaque("const Stream &"), "rank.device->stream");
    for (Operation &op : function.getBody().front())
      if (failed(convertOp(&op)))
        return failure();
    if (cuda && stream.use_empty())
      stream.getDefiningOp()->erase();
    function.erase();
    return success();
  }

private:
  emitc::OpaqueType opaque(StringRef text) { return emitc::OpaqueType::get(b.getContext(), text); }
  emitc::OpaqueAttr text(StringRef text) { return emitc::OpaqueAttr::get(b.getContext(), text); }
  Type pointerTo(Type element, bool readOnly = false) {
    return emitc::PointerType::get(opaque((readOnly ? "const " : "") + cppName(element).str()));
  }
  Type pointerType(Value buffer, bool readOnly = false) {
    return pointerTo(cast<BufferType>(buffer.getType()).getElement(), readOnly);
  }
  Value mapped(Value value) { return values.lookup(value); }
  SmallVector<Value> mapped(ValueRange range) {
    return llvm::map_to_vector(range, [&](Value value) { return mapped(value); });
  }

  /// `line` with `stream` in front of the arguments, whose first `(` is the call's.
  void kernelLine(Location loc, const Twine &line, ArrayRef<Value> operands = {}) {
    SmallVector<Value> all = {stream};
    llvm::append_range(all, operands);
    std::string text = line.str();
    text.insert(text.find('(') + 1, "{}, ");
    verbatim(loc, text, all);
  }
  /// The same on CUDA alone.
  void kernel(Location loc, const std::string &line, ArrayRef<Value> operands) {
    cuda ? kernelLine(loc, line, operands) : verbatim(loc, line, operands);
  }
  void verbatim(Location loc, StringRef line, ValueRange operands = {}) {
    emitc::VerbatimOp::create(b, loc, b.getStringAttr(line), operands);
  }

  /// A pointer variable: `callee<T>(arguments)`, with its shape for the reader.
  void pointer(Operation *op, StringRef callee, ArrayRef<Attribute> arguments, ValueRange operands,
               ArrayRef<int64_t> shape, bool readOnly = false) {
    Value buffer = op->getResult(0);
    Type element = cast<BufferType>(buffer.getType()).getElement();
    ArrayAttr templates =
        element.isF32() && !readOnly ? nullptr : b.getArrayAttr({text(cppName(element))});
    auto call =
        emitc::CallOpaqueOp::create(b, op->getLoc(), TypeRange{pointerType(buffer, readOnly)},
                                    callee, b.getArrayAttr(arguments), templates, operands);
    if (!shape.empty())
      call->setAttr("rt.comment", b.getStringAttr(shapeComment(shape)));
    values[buffer] = call.getResult(0);
  }

  template <typename Op> void place(Op op, StringRef accessor) {
    pointer(op, accessor, {b.getI64IntegerAttr(op.getOffset())}, {}, op.getShape());
  }

  LogicalResult convertOp(Operation *op) {
    if (auto call = dyn_cast<CallInterface>(op))
      return convertCall(call), success();
    return llvm::TypeSwitch<Operation *, LogicalResult>(op)
        .Case<ArenaOp, PersistentOp, HostOp, PinnedOp, TransferOp, TransferWaitOp, InputOp,
              ControlOp, TableOp, OffsetOp, AdvanceOp, ForOp, LaunchOp, rt::AllReduceOp,
              rt::AllReduceMaxOp, AllReduceStartOp, rt::AllGatherOp, rt::ReduceScatterOp,
              TakePartOp, WaitOp, rt::PollOp, ReportOp, CommentOp, WorkOp, CountLabelsOp, IotaOp,
              StepNumberOp, rt::FirstIndexOp, rt::RandomKeyOp, rt::FirstElementOp>([&](auto typed) {
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

  void convertCall(CallInterface call);
  void emit(ArenaOp op) { place(op, "rank.at"); }
  void emit(PersistentOp op) { place(op, "rank.persistent"); }
  void emit(HostOp op) { place(op, "rank.host"); }
  void emit(PinnedOp op) { place(op, "rank.pinned"); }
  void emit(TransferOp op) {
    bool starts = !op.getPending().empty();
    verbatim(op.getLoc(),
             (starts ? "HostCopy " + op.getPending() + " = " : Twine()).str() +
                 (op.getToHost() ? "toHost" : "toDevice") + (starts ? "Start" : "") +
                 "(rank, {}, {}, " + std::to_string(op.getBytes()) + ");",
             {mapped(op.getTo()), mapped(op.getFrom())});
  }
  void emit(TransferWaitOp op) {
    verbatim(op.getLoc(), "wait(rank, " + op.getPending().str() + ");");
  }
  void emit(InputOp op) {
    SmallVector<Attribute> arguments = {b.getI64IntegerAttr(op.getIndex())};
    SmallVector<Value> operands;
    if (op.getMicro()) {
      arguments.push_back(b.getIndexAttr(0));
      operands.push_back(mapped(op.getMicro()));
    }
    pointer(op, "rank.input", arguments, operands, op.getShape(), true);
  }
  void emit(ControlOp op) {
    auto literal = emitc::LiteralOp::create(b, op.getLoc(), pointerType(op.getBuffer(), cuda),
                                            (cuda ? "&rank.device->control->" : "&rank.") +
                                                op.getField().str());
    values[op.getBuffer()] = literal;
  }
  void emit(OffsetOp op) {
    auto sum = emitc::AddOp::create(
        b, op.getLoc(), mapped(op.getBase()).getType(), mapped(op.getBase()),
        emitc::LiteralOp::create(b, op.getLoc(), b.getI64Type(), std::to_string(op.getElements())));
    values[op.getBuffer()] = sum;
  }
  void emit(AdvanceOp op) {
    auto size =
        emitc::LiteralOp::create(b, op.getLoc(), b.getI64Type(), std::to_string(op.getElements()));
    auto shift = emitc::MulOp::create(b, op.getLoc(), b.getI64Type(), mapped(op.getMicro()), size);
    auto sum = emitc::AddOp::create(b, op.getLoc(), mapped(op.getBase()).getType(),
                                    mapped(op.getBase()), shift);
    values[op.getBuffer()] = sum;
  }
  void emit(TableOp op);
  void emit(ForOp op);
  void emit(LaunchOp op);
  void emit(rt::AllReduceOp op) { collective(op, "allReduce", ""); }
  void emit(rt::AllReduceMaxOp op) { collective(op, "allReduce", "", ", Reduce::Max"); }
  void emit(AllReduceStartOp op) {
    collective(op, "allReduceStart", "Pending " + op.getPending().str() + " = ");
  }
  void emit(rt::AllGatherOp op) { move(op, "allGather"); }
  void emit(rt::ReduceScatterOp op) { move(op, "reduceScatter"); }
  void emit(TakePartOp op) {
    std::string whole = op.getWholes()[0] ? ", " + std::to_string(op.getWholes()[0]) : "";
    std::string line = llvm::formatv("takePart(rank.group({0}), {{}, {{}, {1}, {2}{3});",
                                     op.getGroup(), op.getCounts()[0], op.getBlocks()[0], whole);
    kernel(op.getLoc(), line, {mapped(op.getFrom()[0]), mapped(op.getTo()[0])});
  }
  void emit(WaitOp op) { verbatim(op.getLoc(), "wait(" + op.getPending().str() + ");"); }
  void emit(rt::PollOp op) {
    if (cuda) // nobody works on a collective but the GPU
      return;
    verbatim(op.getLoc(),
             llvm::formatv("poll(rank, {0}, {1});", op.getGroup(), op.getBytes()).str());
  }
  void emit(ReportOp op);
  void emit(CommentOp op) {
    if (b.getInsertionPoint() != b.getBlock()->begin())
      verbatim(op.getLoc(), "");
    verbatim(op.getLoc(), "// " + escaped(commentText(op.getText())));
  }
  void emit(WorkOp op) {
    verbatim(op.getLoc(), "beginWork(rank, Work::" + op.getKind().str() + ");");
  }
  void emit(CountLabelsOp op) {
    kernel(op.getLoc(),
           llvm::formatv(cuda ? "countLabels({{}, {{}, {0}, {1});"
                              : "*{{} = float(countLabels({{}, {0}, {1}));",
                         op.getN(), int64_t(op.getIgnore()))
               .str(),
           {mapped(op.getCount()), mapped(op.getLabels())});
  }
  void emit(StepNumberOp op) {
    kernel(op.getLoc(),
           cuda ? "stepNumber({}, rank.device->control);" : "*{} = float(rank.update);",
           {mapped(op.getNumber())});
  }
  void emit(RandomKeyOp op) {
    kernel(op.getLoc(),
           cuda ? "stepKey({}, rank.device->control);"
                : "*{} = int64_t(stepKey(rank.seed, rank.step));",
           {mapped(op.getKey())});
  }
  void emit(FirstElementOp op) {
    std::string sum;
    for (auto [axis, stride] : llvm::zip_equal(op.getAxes(), op.getStrides()))
      sum += (sum.empty() ? "" : " + ") +
             llvm::formatv("int64_t(rank.coordinates[{0}]) * {1}", axis, stride).str();
    setNumber(op.getLoc(), op.getIndex(), sum);
  }
  /// A whole number of the rank's.
  void setNumber(Location loc, Value number, const std::string &value) {
    kernel(loc, cuda ? "setScalar({}, " + value + ");" : "*{} = " + value + ";", {mapped(number)});
  }
  void emit(IotaOp op) {
    std::string type = cppName(cast<BufferType>(op.getDst().getType()).getElement()).str();
    if (cuda)
      return kernelLine(op.getLoc(),
                        "iota({}, " + doubleLiteral(op.getStart().convertToDouble()) + ", " +
                            doubleLiteral(op.getStep().convertToDouble()) + ", " +
                            Twine(op.getN()) + ");",
                        {mapped(op.getDst())});
    verbatim(op.getLoc(), llvm::formatv("for (int64_t i = 0; i < {0}; ++i)", op.getN()).str());
    verbatim(op.getLoc(),
             "  {}[i] = " + type + "(" + doubleLiteral(op.getStart().convertToDouble()) + " + " +
                 doubleLiteral(op.getStep().convertToDouble()) + " * double(i));",
             {mapped(op.getDst())});
  }

  void emit(rt::FirstIndexOp op) {
    std::string number;
    for (auto [axis, size] : llvm::zip(op.getAxes(), op.getSizes())) {
      std::string coordinate = "rank.coordinates[" + std::to_string(axis) + "]";
      number = number.empty()
                   ? coordinate
                   : "(" + number + " * " + std::to_string(size) + " + " + coordinate + ")";
    }
    setNumber(op.getLoc(), op.getFirst(),
              number + " * int64_t(" + std::to_string(op.getPiece()) + ")");
  }

  template <typename Op>
  void collective(Op op, StringRef callee, const std::string &before, StringRef last = "");
  template <typename Op> void move(Op op, StringRef callee);

  /// Text for `emitc.verbatim`, in which an opening brace is written twice.
  static std::string escaped(StringRef raw) {
    std::string result;
    for (char c : raw)
      result += c == '{' ? "{{" : std::string(1, c);
    return result;
  }

  OpBuilder b;
  bool cuda;
  Value rank, stream;
  llvm::DenseMap<Value, Value> values;
  unsigned tables = 0;
};

void Converter::convertCall(CallInterface call) {
  Operation *op = call;
  SmallVector<CallArgument> arguments = call.getCallArguments();
  llvm::erase_if(arguments, [](auto &argument) { return argument.text.empty(); });
  if (cuda)
    for (CallArgument &argument : arguments)
      if (!argument.onCuda.empty())
        argument.text = argument.onCuda;
  bool onStream = cuda && (arguments.empty() || arguments[0].text != "rank");
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

/// A constant array, `static const` within the function; on CUDA in front of it.
void Converter::emit(TableOp op) {
  std::string name = "table" + std::to_string(tables++);
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
  std::string array = cppName(element).str() + " " + name + "[] = {" + (cuda ? "" : "{") +
                      llvm::join(numbers, ", ") + "};";
  if (cuda) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(b.getBlock()->getParentOp());
    while (!isa<ModuleOp>(b.getBlock()->getParentOp()))
      b.setInsertionPoint(b.getBlock()->getParentOp());
    verbatim(op.getLoc(), "static __device__ const " + array); // text of the module, as it is
    name = "deviceTable(" + name + ")";
  } else {
    verbatim(op.getLoc(), "static const " + array);
  }
  values[op.getBuffer()] =
      emitc::LiteralOp::create(b, op.getLoc(), pointerType(op.getBuffer(), true), name);
}

void Converter::emit(ForOp op) {
  auto bound = [&](int64_t value) -> Value {
    return emitc::LiteralOp::create(b, op.getLoc(), b.getI64Type(), std::to_string(value));
  };
  auto loop = emitc::ForOp::create(b, op.getLoc(), bound(0), bound(op.getCount()), bound(1));
  loop.getInductionVar().setLoc(NameLoc::get(b.getStringAttr("micro")));
  values[op.getBody().getArgument(0)] = loop.getInductionVar();
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  for (Operation &inner : op.getBody().front())
    (void)convertOp(&inner);
}

/// kernel(buffers..., sizes..., strides...).
void Converter::emit(LaunchOp op) {
  SmallVector<Attribute> arguments;
  SmallVector<Value> operands;
  if (cuda)
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

template <typename Op>
void Converter::collective(Op op, StringRef callee, const std::string &before, StringRef last) {
  std::string line =
      before + callee.str() + "(rank.group(" + std::to_string(op.getGroup()) + "), {{";
  for (auto [i, count] : llvm::enumerate(op.getCounts()))
    line += (i ? ", {{{}, " : "{{{}, ") + std::to_string(count) + "}";
  line += "}, " + escaped(stringLiteral(op.getReason())) + last.str() + ");";
  verbatim(op.getLoc(), line, mapped(op.getBuffers()));
}

/// ", blocks, whole" of a transfer, as far as they are not what they usually are.
static std::string usuallyLeftOut(int64_t blocks, int64_t whole) {
  if (whole)
    return ", " + std::to_string(blocks) + ", " + std::to_string(whole);
  return blocks == 1 ? "" : ", " + std::to_string(blocks);
}

/// callee(communicator, {{from, to, count of the part[, blocks]}}, why);
template <typename Op> void Converter::move(Op op, StringRef callee) {
  bool starts = !op.getPending().empty(), ahead = starts && std::is_same_v<Op, rt::AllGatherOp>;
  std::string line = starts ? "Pending " + op.getPending().str() + " = " : "";
  line += callee.str() + (starts ? "Start" : "") + (ahead ? "(rank.gathers(" : "(rank.group(") +
          std::to_string(op.getGroup()) + "), {{";
  SmallVector<Value> operands;
  for (auto [i, from, to] : llvm::enumerate(op.getFrom(), op.getTo())) {
    line += (i ? ", {{{}, {}, " : "{{{}, {}, ") + std::to_string(op.getCounts()[i]) +
            usuallyLeftOut(op.getBlocks()[i], op.getWholes()[i]) + "}";
    operands.append({mapped(from), mapped(to)});
  }
  verbatim(op.getLoc(), line + "}, " + escaped(stringLiteral(op.getReason())) + ");", operands);
}

void Converter::emit(ReportOp op) {
  if (cuda) {
    SmallVector<Value> numbers = {mapped(op.getValue())};
    if (op.getDivisor())
      numbers.push_back(mapped(op.getDivisor()));
    return kernelLine(op.getLoc(),
                      "report(&rank.device->report->" + op.getField() + ", {}" +
                          (op.getDivisor() ? ", {});" : ");"),
                      numbers);
  }
  std::string line = "rank.report." + op.getField().str() + " = ";
  SmallVector<Value> operands = {mapped(op.getValue())};
  if (op.getDivisor()) {
    line += "*{} / *{};";
    operands.push_back(mapped(op.getDivisor()));
  } else {
    line += op.getField() == "tokenCount" ? "int64_t(*{});" : "*{};";
  }
  verbatim(op.getLoc(), line, operands);
}

struct RtToEmitC : partita::impl::RtToEmitCBase<RtToEmitC> {
  void runOnOperation() override {
    bool cuda = isForCuda(getOperation());
    Converter converter(&getContext(), cuda);
    cuda ? convertKernelsToCuda(getOperation()) : convertKernels(getOperation());
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (failed(converter.convert(function)))
        return signalPassFailure();
  }
};

} // namespace
