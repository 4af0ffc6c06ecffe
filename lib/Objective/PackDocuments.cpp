//===- PackDocuments.cpp - keeps the documents of packed rows apart ---------------------------===//
//
// 1. The first position of every token's document is found from the tokens (tx.document_starts), and from that its
//    position within it.
// 2. Every attention sees keys from the first one of its document. It must be causal, and its bias must be one of
//    distances (PackedBias.h).
// 3. Where a value that depends on positions alone (a position embedding, angles of a rotary embedding) meets one that
//    depends on tokens, along the tokens (TokenDims.h), its rows are looked up by positions that begin again.
// 4. A mask of padding (role "ones") becomes ones: these rows have no padding, whatever a run's data says.
//
// Anything else that computes a token's value from other tokens would mix documents: an error.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Train/Train.h"
#include "lib/Objective/Inputs.h"
#include "lib/Objective/PackedBias.h"
#include "lib/Objective/TokenDims.h"
#include "partita/Objective/Passes.h"

namespace partita {
#define GEN_PASS_DEF_PACKDOCUMENTS
#include "partita/Objective/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::objective;

namespace {

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

Value reshape(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> shape) {
  if (typeOf(value).getShape() == shape)
    return value;
  return tx::ReshapeOp::create(builder, loc, typeOf(value).clone(shape), value);
}

Value transpose(OpBuilder &builder, Location loc, Value value, ArrayRef<int64_t> permutation) {
  if (llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size())))
    return value;
  SmallVector<int64_t> shape;
  for (int64_t from : permutation)
    shape.push_back(typeOf(value).getDimSize(from));
  SmallVector<int64_t> moved(permutation);
  llvm::erase_if(moved, [&](int64_t from) { return typeOf(value).getDimSize(from) == 1; });
  if (llvm::is_sorted(moved)) // only dimensions of size one move
    return reshape(builder, loc, value, shape);
  return tx::TransposeOp::create(builder, loc, typeOf(value).clone(shape), value, permutation);
}

/// Makes values of positions begin again at each document.
class Restarter {
public:
  Restarter(Value positions, raise::IndexEvaluator known)
      : positions(positions), batch(typeOf(positions).getDimSize(0)),
        sequence(typeOf(positions).getDimSize(1)), known(std::move(known)) {}

  /// Does a value that depends on no data differ between tokens?
  bool varies(Value value, int64_t tokens) { return known.variesAlong(value, tokens); }
  /// The value, with a dimension of one or all samples (-1 in a batch of one: no matter which) and one of tokens, where
  /// token i of sample b has what was at the token's position in its document; for all samples.
  Value restart(OpBuilder &builder, Location loc, Value value, int64_t samples, int64_t tokens);

private:
  using Place = std::tuple<Value, int64_t, int64_t>;
  Value make(OpBuilder &builder, Location loc, Value value, int64_t samples, int64_t tokens);
  Value makeIntegers(OpBuilder &builder, Location loc, Value value, int64_t samples,
                     int64_t tokens);
  Value lookUp(OpBuilder &builder, Location loc, Value value, int64_t samples, int64_t tokens);
  RankedTensorType resultType(Value value, int64_t samples) const;

  Value positions;
  int64_t batch, sequence;
  raise::IndexEvaluator known;
  llvm::DenseMap<Place, Value> made;
};

} // namespace

RankedTensorType Restarter::resultType(Value value, int64_t samples) const {
  SmallVector<int64_t> shape(typeOf(value).getShape());
  if (samples >= 0)
    shape[samples] = batch;
  return typeOf(value).clone(shape);
}

Value Restarter::restart(OpBuilder &builder, Location loc, Value value, int64_t samples,
                         int64_t tokens) {
  if (typeOf(value).getDimSize(tokens) == 1 && sequence != 1)
    return value;
  Value &known = made[{value, samples, tokens}];
  if (!known) {
    Value result = make(builder, loc, value, samples, tokens);
    return made[{value, samples, tokens}] = result;
  }
  return known;
}

Value Restarter::make(OpBuilder &builder, Location loc, Value value, int64_t samples,
                      int64_t tokens) {
  if (isa<IntegerType>(typeOf(value).getElementType()))
    if (Value integers = makeIntegers(builder, loc, value, samples, tokens))
      return integers;
  if (auto lookup = value.getDefiningOp<tx::EmbeddingOp>()) {
    int64_t rank = lookup.getIds().getType().getRank();
    if (samples < rank && tokens < rank)
      return tx::EmbeddingOp::create(builder, loc, lookup.getTable(),
                                     restart(builder, loc, lookup.getIds(), samples, tokens),
                                     lookup.getFirst(), lookup.getPaddingAttr());
  }
  if (auto broadcast = value.getDefiningOp<tx::BroadcastOp>()) {
    SmallVector<int64_t> shape(typeOf(broadcast.getX()).getShape());
    shape.insert(shape.begin(), typeOf(value).getRank() - shape.size(), 1);
    if (shape[tokens] == sequence) {
      Value rows =
          restart(builder, loc, reshape(builder, loc, broadcast.getX(), shape), samples, tokens);
      RankedTensorType type = resultType(value, samples);
      return rows.getType() == type ? rows
                                    : tx::BroadcastOp::create(builder, loc, type, rows).getResult();
    }
  }
  return lookUp(builder, loc, value, samples, tokens);
}

/// start + step * position, if that is what the integers are; else null.
Value Restarter::makeIntegers(OpBuilder &builder, Location loc, Value value, int64_t samples,
                              int64_t tokens) {
  RankedTensorType type = resultType(value, samples);
  for (auto [d, size] : llvm::enumerate(type.getShape()))
    if (static_cast<int64_t>(d) != samples && static_cast<int64_t>(d) != tokens && size != 1)
      return {};
  double start = 0, step = 0;
  for (int64_t b : {int64_t(0), samples < 0 ? 0 : typeOf(value).getDimSize(samples) - 1}) {
    SmallVector<int64_t> index(type.getRank(), 0);
    if (samples >= 0)
      index[samples] = b;
    for (int64_t i = 0; i < sequence; ++i) {
      index[tokens] = i;
      std::optional<double> number = known.element(value, index);
      if (!number)
        return {};
      if (i < 2 && b == 0)
        (i == 0 ? start : step) = i == 0 ? *number : *number - start;
      if (*number != start + step * static_cast<double>(i))
        return {};
    }
  }
  RankedTensorType plain = type.clone({batch, sequence});
  Value result = positions;
  if (typeOf(result) != plain)
    result = tx::CastOp::create(builder, loc, plain, result);
  if (step != 1)
    result = tx::MulOp::create(builder, loc,
                               ValueRange{result, tx::createSplat(builder, loc, plain, step)})
                 ->getResult(0);
  if (start != 0)
    result = tx::AddOp::create(builder, loc,
                               ValueRange{result, tx::createSplat(builder, loc, plain, start)})
                 ->getResult(0);
  if (samples > tokens)
    result = transpose(builder, loc, result, {1, 0});
  return reshape(builder, loc, result, type.getShape());
}

/// A lookup of rows in the value: one table for all samples, or one for each.
Value Restarter::lookUp(OpBuilder &builder, Location loc, Value value, int64_t samples,
                        int64_t tokens) {
  RankedTensorType type = typeOf(value);
  if (type.getElementType().isInteger(1)) { // tables are of numbers
    auto numbers = type.clone(builder.getF32Type());
    Value rows =
        lookUp(builder, loc, tx::CastOp::create(builder, loc, numbers, value), samples, tokens);
    return tx::CastOp::create(builder, loc, typeOf(rows).clone(builder.getI1Type()), rows);
  }
  SmallVector<int64_t> permutation, shape{batch, sequence};
  if (samples >= 0)
    permutation.push_back(samples);
  permutation.push_back(tokens);
  int64_t width = 1;
  for (auto [d, size] : llvm::enumerate(type.getShape()))
    if (static_cast<int64_t>(d) != samples && static_cast<int64_t>(d) != tokens) {
      permutation.push_back(d);
      shape.push_back(size);
      width *= size;
    }
  Value rows = transpose(builder, loc, value, permutation);
  if (samples < 0 || type.getDimSize(samples) == 1)
    rows = tx::EmbeddingOp::create(builder, loc, reshape(builder, loc, rows, {sequence, width}),
                                   positions, /*first=*/Value(), /*padding=*/IntegerAttr());
  else
    rows = tx::TakeOp::create(builder, loc, reshape(builder, loc, rows, {batch, sequence, width}),
                              positions);
  SmallVector<int64_t> back(permutation.size());
  for (auto [to, from] : llvm::enumerate(permutation))
    back[from] = to;
  rows = reshape(builder, loc, rows, ArrayRef(shape).drop_front(samples < 0 ? 1 : 0));
  return transpose(builder, loc, rows, back);
}

namespace {

struct PackDocumentsPass : partita::impl::PackDocumentsBase<PackDocumentsPass> {
  using Base::Base;
  void runOnOperation() override;

private:
  /// What is known of the program's inputs.
  struct Context {
    TokenDims dims;
    Restarter restarter;
    raise::IndexEvaluator known;
    Value starts;
  };
  LogicalResult pack(func::FuncOp forward);
  FailureOr<BlockArgument> findTokens(func::FuncOp forward);
  LogicalResult packAttention(tx::AttentionOp op, Context &context);
  LogicalResult packOther(Operation *op, Context &context);
  LogicalResult restart(Operation *op, unsigned operand, ArrayRef<Factors> dims, Context &context);
};

} // namespace

FailureOr<BlockArgument> PackDocumentsPass::findTokens(func::FuncOp forward) {
  if (failed(assignRoles(forward, inputs)))
    return failure();
  std::optional<BlockArgument> tokens;
  for (BlockArgument argument : forward.getArguments()) {
    StringRef role = roleOf(forward, argument.getArgNumber());
    if (role == "shifted")
      return forward.emitError() << "pack: input " << nameOf(forward, argument.getArgNumber())
                                 << " is a decoder's beside an encoder's; only models of one "
                                    "sequence, without cross-attention, can be packed";
    if (role == "ids")
      tokens = argument;
  }
  if (!tokens)
    return forward.emitError() << "pack: no input is an integer tensor [batch, sequence] that "
                                  "carries the tokens; bind one with --input NAME=ids";
  int64_t rows = rowsLookedUp(*tokens);
  if (rows > 0 && after >= rows)
    return forward.emitError() << "pack: token " << after.getValue() << " is not one of the "
                               << rows << " that " << nameOf(forward, tokens->getArgNumber())
                               << " looks up, which are 0 to " << rows - 1;
  return *tokens;
}

/// Lets the operand, which depends on no data, begin again where it meets tokens.
LogicalResult PackDocumentsPass::restart(Operation *op, unsigned operand, ArrayRef<Factors> dims,
                                         Context &context) {
  Value value = op->getOperand(operand), starts = context.starts;
  int64_t batch = typeOf(starts).getDimSize(0), sequence = typeOf(starts).getDimSize(1);
  Factors ofSamples, ofTokens{{sequence, Along::Tokens}}, ofBoth = ofTokens;
  if (batch > 1)
    ofBoth.insert(ofBoth.begin(), ofSamples.emplace_back(Factor{batch, Along::Samples}));
  int64_t samples = -1, tokens = -1;
  for (auto [d, factors] : llvm::enumerate(dims)) {
    if (runsAlongTokens(factors) && context.restarter.varies(value, d))
      tokens = d;
    if (batch > 1 && factors == ofSamples)
      samples = d;
  }
  if (tokens < 0)
    return success();
  bool isJoint = dims[tokens] == ofBoth && batch > 1;
  if (!isJoint && (dims[tokens] != ofTokens || (batch > 1 && samples < 0)))
    return op->emitError() << "pack: positions cannot begin again at each document here, where "
                              "they meet the tokens in another order";
  OpBuilder builder(op);
  SmallVector<int64_t> shape(typeOf(value).getShape());
  if (isJoint) {
    samples = tokens++;
    shape[samples] = batch;
    shape.insert(shape.begin() + tokens, sequence);
    value = reshape(builder, op->getLoc(), value, shape);
  }
  Value rows = context.restarter.restart(builder, op->getLoc(), value, samples, tokens);
  op->setOperand(operand,
                 reshape(builder, op->getLoc(), rows, typeOf(op->getOperand(operand)).getShape()));
  ++numRestarted;
  return success();
}

LogicalResult PackDocumentsPass::packAttention(tx::AttentionOp op, Context &context) {
  TokenDims &dims = context.dims;
  Value q = op.getQ(), k = op.getK();
  auto isSequence = [&](Value value) {
    return dims.isData(value) && runsAlongTokens(dims.of(value)[1]) &&
           typeOf(value).getDimSize(1) == typeOf(context.starts).getDimSize(1);
  };
  if (!isSequence(q) || !isSequence(k) || !isSequence(op.getV()))
    return op.emitError() << "pack: this attention is not one of a row's tokens to each other "
                             "(cross-attention, cached keys); only such can be packed";
  if (op.getFirstKeys())
    return op.emitError() << "pack: the model has documents of its own"
                          << (dims.isData(op.getFirstKeys()) ? ", from an input" : "")
                          << ", which may contradict --pack; leave --pack out";
  Value bias = op.getBias();
  std::string problem;
  if (bias && dims.isData(bias))
    problem = "its mask or bias comes from an input, which may contradict the documents of a row; "
              "fix a mask without holes by --input NAME=ones, or leave --pack out";
  else if (bias)
    problem = problemOfPackedBias(bias, typeOf(q).getDimSize(1), op.getCausal(), context.known);
  else if (!op.getCausal())
    problem = "it is not causal, so that it would see the documents behind";
  if (!problem.empty())
    return op.emitError() << "pack: this attention cannot be packed: " << problem;
  op.getFirstKeysMutable().assign(context.starts);
  ArrayRef<Factors> of = dims.of(q);
  SmallVector<Factors> out(of), lse{of[0], of[2], of[1]};
  out[3] = dims.of(op.getV())[3];
  dims.set(op.getOut(), out);
  dims.set(op.getLse(), lse);
  ++numPacked;
  return success();
}

LogicalResult PackDocumentsPass::packOther(Operation *op, Context &context) {
  TokenDims &dims = context.dims;
  if (llvm::none_of(op->getOperands(), [&](Value operand) { return dims.isData(operand); }))
    return success();
  if (auto starts =
          dyn_cast<tx::DocumentStartsOp>(op)) { // the model's own, of attentions that are looked at
    dims.set(starts.getResult(), llvm::to_vector(dims.of(starts.getIds())));
    return success();
  }
  const ShardRule *rule = nullptr;
  SmallVector<Factors> letters;
  if (std::string problem = dims.readLetters(op, rule, letters); !problem.empty())
    return op->emitError() << "pack: '" << op->getName() << "' " << problem
                           << ", which would mix documents; only attention keeps them apart, and a "
                              "loss that --objective adds";
  for (auto [i, pattern] : llvm::enumerate(rule->operands)) {
    if (i >= op->getNumOperands() || dims.isData(op->getOperand(i)))
      continue;
    auto each = llvm::map_to_vector(pattern.dims,
                                    [&](const RuleDim &dim) { return factorsOf(dim, letters); });
    if (failed(restart(op, i, each, context)))
      return failure();
  }
  dims.setResults(op, *rule, letters);
  return success();
}

LogicalResult PackDocumentsPass::pack(func::FuncOp forward) {
  FailureOr<BlockArgument> tokens = findTokens(forward);
  if (failed(tokens))
    return failure();
  OpBuilder builder = OpBuilder::atBlockBegin(&forward.getBody().front());
  Location loc = tokens->getLoc();
  Value starts =
      tx::DocumentStartsOp::create(builder, loc, *tokens, builder.getI64IntegerAttr(after));
  RankedTensorType type = typeOf(starts);
  Value numbers = tx::IotaOp::create(builder, loc, type.clone({type.getDimSize(1)}), APFloat(0.0),
                                     APFloat(1.0));
  Value positions =
      tx::SubOp::create(builder, loc,
                        ValueRange{tx::BroadcastOp::create(builder, loc, type, numbers), starts})
          ->getResult(0);
  raise::IndexEvaluator known;
  auto isKnown = [&](BlockArgument argument) {
    StringRef role = roleOf(forward, argument.getArgNumber());
    int64_t width = typeOf(argument).getRank() ? typeOf(argument).getShape().back() : 1;
    if (role == "positions")
      known.assume(argument, [width](int64_t i) { return static_cast<double>(i % width); });
    else if (role == "ones")
      known.assume(argument, 1.0);
    return role == "positions" || role == "ones";
  };
  TokenDims dims(forward, *tokens, isKnown);
  bool hasAttention = false;
  Context context{std::move(dims), Restarter(positions, known), known, starts};
  for (Operation &op : llvm::make_early_inc_range(
           llvm::make_range(std::next(positions.getDefiningOp()->getIterator()),
                            forward.getBody().front().getTerminator()->getIterator()))) {
    auto attention = dyn_cast<tx::AttentionOp>(op);
    hasAttention |= bool(attention);
    if (failed(attention ? packAttention(attention, context) : packOther(&op, context)))
      return failure();
  }
  for (BlockArgument argument : forward.getArguments())
    if (roleOf(forward, argument.getArgNumber()) == "ones" && !argument.use_empty())
      argument.replaceAllUsesWith(
          tx::createSplat(builder, argument.getLoc(), argument.getType(), 1.0));
  if (!hasAttention)
    return forward.emitError() << "pack: the model has no attention, so nothing keeps documents "
                                  "apart; leave --pack out";
  return success();
}

void PackDocumentsPass::runOnOperation() {
  if (after < 0)
    return;
  ModuleOp module = getOperation();
  auto forward = train::lookup<func::FuncOp>(module, train::EntryPoint::Forward);
  if (!forward || forward.isExternal())
    return; // objective says so
  if (failed(pack(forward)))
    return signalPassFailure();
  module->setAttr(train::TrainDialect::kDocumentEnd,
                  Builder(&getContext()).getI64IntegerAttr(after));
}
