//===- Inputs.cpp - the role of each input of a model -----------------------------------------===//

#include "lib/Objective/Inputs.h"
#include "dialects/Train/Roles.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::objective;
using train::TrainDialect;

StringRef objective::roleOf(func::FuncOp function, unsigned argument) {
  auto role = function.getArgAttrOfType<StringAttr>(argument, TrainDialect::kRole);
  return role ? role.getValue() : StringRef();
}

std::string objective::nameOf(func::FuncOp function, unsigned argument) {
  if (auto name = function.getArgAttrOfType<StringAttr>(argument, TrainDialect::kName))
    return "'" + name.str() + "'";
  return "number " + std::to_string(argument);
}

static bool isInteger(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getElementType().isSignlessInteger();
}

static std::string knownInputs(func::FuncOp forward) {
  std::string text;
  for (unsigned i = 0; i < forward.getNumArguments(); ++i)
    text += (i ? ", " : "") + nameOf(forward, i);
  return text;
}

/// Checks that the first token of a shifted input is in the model's vocabulary.
static LogicalResult checkFiller(func::FuncOp forward, unsigned i) {
  auto filler = forward.getArgAttrOfType<IntegerAttr>(i, TrainDialect::kFiller);
  int64_t rows = rowsLookedUp(forward.getArgument(i));
  if (roleOf(forward, i) != "shifted" || !filler || rows == 0 ||
      (filler.getInt() >= 0 && filler.getInt() < rows))
    return success();
  return forward.emitError() << "input " << nameOf(forward, i) << ": token " << filler.getInt()
                             << " of shifted is not one of the " << rows
                             << " that it looks up, which are 0 to " << rows - 1;
}

/// Checks that tokens, positions and shifted inputs are integers with a dimension along the
/// sequence.
static LogicalResult checkRole(func::FuncOp forward, unsigned i) {
  StringRef role = roleOf(forward, i);
  auto type = dyn_cast<RankedTensorType>(forward.getArgument(i).getType());
  bool sequence = role == "ids" || role == "positions" || role == "shifted" || role == "labels";
  if (sequence && (!isInteger(type) || type.getRank() < 1))
    return forward.emitError() << "input " << nameOf(forward, i) << " of type " << type
                               << " cannot be '" << role
                               << "', which are integers along a dimension";
  if (sequence && role != "positions" && type.getRank() != 2)
    return forward.emitError() << "input " << nameOf(forward, i) << " of type " << type
                               << " cannot be '" << role
                               << "', which are integers [batch, sequence]";
  return checkFiller(forward, i);
}

/// Checks that only one input has labels, since nothing tells which ones the loss should compare
/// with.
static LogicalResult checkOneLabels(func::FuncOp forward) {
  std::optional<unsigned> first;
  for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
    if (roleOf(forward, i) != "labels")
      continue;
    if (first)
      return forward.emitError()
             << "inputs " << nameOf(forward, *first) << " and " << nameOf(forward, i)
             << " are both 'labels', of which a program has one; bind what is a "
                "column of the data with --input NAME=targets";
    first = i;
  }
  return success();
}

/// Returns true if the value, perhaps in another shape or type, indexes a table or a loss's
/// classes.
static bool areTokens(Value value) {
  return llvm::any_of(value.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isa<tx::EmbeddingOp, tx::CrossEntropyOp>(user))
      return use.getOperandNumber() == 1;
    return isa<tx::CastOp, tx::ReshapeOp, tx::SliceOp, tx::ConcatOp>(user) &&
           areTokens(user->getResult(0));
  });
}

static LogicalResult bindInput(func::FuncOp forward, StringRef binding,
                               llvm::SmallBitVector &bound) {
  Builder b(forward.getContext());
  auto [name, text] = binding.rsplit('=');
  StringRef role = text.split(':').first, filler = text.split(':').second;
  std::optional<unsigned> argument;
  for (unsigned i = 0; i < forward.getNumArguments(); ++i)
    if (auto known = forward.getArgAttrOfType<StringAttr>(i, TrainDialect::kName);
        known && known.getValue() == name)
      argument = i;
  if (!argument)
    return forward.emitError() << "input: the model has no input '" << name << "'; it has "
                               << knownInputs(forward);
  if (!train::findRole(role))
    return forward.emitError() << "input '" << name << "': role '" << role << "' is not one of "
                               << train::roleNames();
  if (bound[*argument])
    return forward.emitError() << "input '" << name << "' is bound twice, as '"
                               << roleOf(forward, *argument) << "' and as '" << text << "'";
  if ((role == "ids" || role == "labels" || role == "shifted") &&
      isInteger(forward.getArgument(*argument).getType()) &&
      !areTokens(forward.getArgument(*argument)))
    return forward.emitError() << "input '" << name << "' cannot be '" << role
                               << "': it looks up no table and no loss compares with it, so it has "
                                  "no tokens";
  if (StringRef fixed = roleOf(forward, *argument);
      train::isFixedRole(fixed) && role != fixed && forward.getArgument(*argument).use_empty())
    return forward.emitError() << "input '" << name << "' cannot be '" << role
                               << "': nothing reads it, as it has been taken for '" << fixed
                               << "' since the import; import the model again";
  forward.setArgAttr(*argument, TrainDialect::kRole, b.getStringAttr(role));
  bound.set(*argument);
  if (!text.contains(':'))
    return success();
  int64_t token;
  if (role != "shifted" || filler.getAsInteger(10, token))
    return forward.emitError() << "input '" << name << "': '" << text
                               << "' is not a role; only shifted takes a token, such as shifted:0";
  forward.setArgAttr(*argument, TrainDialect::kFiller, b.getI64IntegerAttr(token));
  return success();
}

int64_t objective::rowsLookedUp(Value value) {
  int64_t rows = 0;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto embedding = dyn_cast<tx::EmbeddingOp>(user); embedding && embedding.getIds() == value)
      rows = std::max(rows, embedding.getTable().getType().getDimSize(0));
    else if (isa<tx::CastOp, tx::ReshapeOp, tx::SliceOp>(user))
      rows = std::max(rows, rowsLookedUp(user->getResult(0)));
  }
  return rows;
}

/// Finds the tokens: the input that indexes the table with the most rows, since there are more
/// tokens than positions or types of tokens. If two tables have equally many, there is no answer.
/// Roles that the module or `bound` sets stay.
static void findTokens(func::FuncOp forward, const llvm::SmallBitVector &bound) {
  std::optional<unsigned> tokens;
  int64_t most = 0;
  for (BlockArgument argument : forward.getArguments()) {
    unsigned i = argument.getArgNumber();
    StringRef role = roleOf(forward, i);
    auto type = cast<RankedTensorType>(argument.getType());
    if (!bound[i] && role == "ids")
      return;
    if ((role != "data" && role != "ids") || !isInteger(type) || type.getRank() != 2)
      continue;
    int64_t rows = rowsLookedUp(argument);
    if (rows > 0 && rows >= most) {
      tokens = rows > most ? std::optional(i) : std::nullopt;
      most = rows;
    }
  }
  if (tokens && !bound[*tokens] && roleOf(forward, *tokens) == "data")
    forward.setArgAttr(*tokens, TrainDialect::kRole, StringAttr::get(forward.getContext(), "ids"));
}

LogicalResult objective::assignRoles(func::FuncOp forward, ArrayRef<std::string> bindings) {
  Builder b(forward.getContext());
  llvm::SmallBitVector bound(forward.getNumArguments());
  for (const std::string &binding : bindings)
    if (!binding.empty() && failed(bindInput(forward, binding, bound)))
      return failure();
  for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
    StringRef role = roleOf(forward, i);
    auto name = forward.getArgAttrOfType<StringAttr>(i, TrainDialect::kName);
    if (role.empty() || role == "input") {
      StringRef usual =
          train::usualRole(name ? name.getValue() : "", forward.getArgument(i).getType());
      forward.setArgAttr(i, TrainDialect::kRole, b.getStringAttr(usual));
    }
  }
  findTokens(forward, bound);
  for (unsigned i = 0; i < forward.getNumArguments(); ++i)
    if (failed(checkRole(forward, i)))
      return failure();
  return checkOneLabels(forward);
}

void objective::markBatches(func::FuncOp forward) {
  std::optional<int64_t> batch;
  for (BlockArgument argument : forward.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type || type.getRank() == 0)
      continue;
    if (!batch)
      batch = type.getDimSize(0);
    if (type.getDimSize(0) == *batch)
      forward.setArgAttr(argument.getArgNumber(), TrainDialect::kBatch,
                         Builder(forward.getContext()).getI64IntegerAttr(0));
  }
}
