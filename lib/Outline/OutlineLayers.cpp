//===- OutlineLayers.cpp - outline-layers -----------------------------------------------------===//
//
// Pointers are numbers and can be made anywhere, so the other ops of a block, its steps, determine
// what it does. Steps that differ only in data are equal (keyOf). Sequences of equal steps are
// chosen over all blocks of the module at once (Repeats.h). Each becomes a function
// (LayerFunction.h), which is called with a row of its table; calls with consecutive rows are
// joined. Finally, remaining pointers move to their uses, and comments are set again after a call.
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Rt/Names.h"
#include "lib/Outline/LayerFunction.h"
#include "lib/Outline/Repeats.h"
#include "partita/Outline/Passes.h"
#include <map>

namespace partita {
#define GEN_PASS_DEF_OUTLINELAYERS
#include "partita/Outline/Passes.h.inc"
} // namespace partita

using namespace mlir;
using namespace partita;
using namespace partita::rt;

namespace {

/// All steps of a module, block by block, with an empty one after each block.
class Steps {
public:
  explicit Steps(ModuleOp module) {
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal()) {
        for (StringAttr name : PendingsAttr::of(function))
          ++uses[{function, name}]; // by its caller
        addBlock(function.getBody().front(), function, "");
      }
  }

  std::vector<Step> steps;
  PendingUses uses;
  SmallVector<Block *> blocks;

private:
  void addBlock(Block &block, func::FuncOp function, std::string path);
  static LayerLabel labelOf(Operation *op);
};

/// Returns the label of the first operand whose name belongs to a layer. Names are provenance
/// (provenance::kName) and determine nothing but names in the emitted program.
LayerLabel Steps::labelOf(Operation *op) {
  LayerLabel label;
  for (Value operand : op->getOperands())
    if (label.isNone())
      label = LayerLabel::of(provenance::nameIn(operand.getLoc()));
  return label;
}

void Steps::addBlock(Block &block, func::FuncOp function, std::string path) {
  blocks.push_back(&block);
  std::optional<train::EntryPoint> entry = train::entryPointOf(function);
  if (auto full = function->getAttrOfType<train::EntryPointAttr>(RtDialect::kPassOf))
    entry = full.getValue();
  std::string comment;
  Work part = Work::Forward;
  for (Operation &op : block) {
    if (auto work = dyn_cast<WorkOp>(op))
      part = work.getKind();
    if (auto text = dyn_cast<CommentOp>(op)) {
      path = comment = text.getText().str();
      continue;
    }
    if (isPointer(&op))
      continue;
    Step &step = steps.emplace_back();
    step.op = &op;
    step.function = function;
    step.entry = entry;
    step.comment = std::move(comment);
    step.path = path;
    step.part = part;
    if (auto layer = train::LayerAttr::of(&op))
      step.layer = layer.getNumber();
    step.label = labelOf(&op);
    step.key = keyOf(&op);
    comment.clear();
    if (StringAttr name = pendingName(&op))
      ++uses[{function, name}];
    if (auto run = dyn_cast<RunPassOp>(op))
      if (run.getPendings())
        for (StringAttr name : run.getPendings()->all())
          ++uses[{function, name}];
  }
  steps.emplace_back();
  for (Operation &op : block)
    if (auto loop = dyn_cast<rt::ForOp>(op))
      addBlock(loop.getBody().front(), function, path);
}

/// Replaces steps by calls.
class Caller {
public:
  explicit Caller(std::vector<Step> &steps) : steps(steps) {}

  /// Adds a comment to step `index`, which follows a call, if one was known before.
  void commentOn(size_t index);
  /// Replaces `count` steps, starting at `first`, by a call with row `row`.
  void replace(size_t first, size_t count, LayerFunction &function, int64_t row);

private:
  static void moveInFront(Value pointer, Operation *op);
  std::vector<Step> &steps;
};

/// Moves a pointer, and what it is made from, before the op if they come after it.
void Caller::moveInFront(Value pointer, Operation *op) {
  Operation *made = pointer.getDefiningOp();
  if (!made || made->getBlock() != op->getBlock() || made->isBeforeInBlock(op))
    return;
  made->moveBefore(op);
  for (Value operand : made->getOperands())
    moveInFront(operand, made);
}

void Caller::commentOn(size_t index) {
  Step &step = steps[index];
  if (!step.op || !step.comment.empty() || step.path.empty() ||
      step.op->hasTrait<OpTrait::IsTerminator>())
    return;
  OpBuilder b(step.op);
  Operation *front = step.op;
  while (front->getPrevNode() && isPointer(front->getPrevNode()))
    front = front->getPrevNode();
  b.setInsertionPoint(front);
  CommentOp::create(b, step.op->getLoc(), step.path);
  step.comment = step.path;
}

void Caller::replace(size_t first, size_t count, LayerFunction &function, int64_t row) {
  Operation *front = steps[first].op;
  for (size_t i = first; i < first + count; ++i)
    if (!steps[i].comment.empty()) {
      Operation *comment = steps[i].op->getPrevNode();
      while (!isa<CommentOp>(comment))
        comment = comment->getPrevNode();
      comment->erase();
    }
  for (Value buffer : function.buffers[row])
    moveInFront(buffer, front);
  OpBuilder b(front);
  auto call = rt::CallOp::create(b, front->getLoc(), function.op.getSymName(), row, 1,
                                 function.buffers[row], b.getArrayAttr(function.pendings[row]),
                                 b.getArrayAttr(function.copies[row]));
  for (size_t i = first; i < first + count; ++i)
    steps[i].op->erase();
  steps[first].op = call;
  for (size_t i = first + 1; i < first + count; ++i)
    steps[i].op = nullptr;
  for (size_t i = first; i < first + count; ++i) {
    steps[i].comment.clear();
    steps[i].path.clear();
  }
}

/// Declares variables before the first call that names them, unless they are declared already: by
/// the op that starts the collective, for the passes of a schedule, or in a pass by its caller.
void declarePendings(Block &block, llvm::DenseSet<Attribute> declared) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (StringAttr name = pendingName(&op))
      declared.insert(name);
    if (auto pendings = dyn_cast<PendingsOp>(op))
      declared.insert_range(pendings.getVariables().all());
    if (auto pending = dyn_cast<PendingOp>(op))
      declared.insert(pending.getNameAttr());
    if (auto call = dyn_cast<rt::CallOp>(op)) {
      OpBuilder b(call);
      auto declare = [&](ArrayAttr names, bool copy) {
        for (auto name : names.getAsRange<StringAttr>())
          if (declared.insert(name).second)
            PendingOp::create(b, call.getLoc(), name, copy);
      };
      declare(call.getPendings(), false);
      declare(call.getCopies(), true);
    }
    if (auto loop = dyn_cast<rt::ForOp>(op))
      declarePendings(loop.getBody().front(), declared);
  }
}

/// Erases pointers that outlining left without uses, and moves the others to where they are needed.
void sinkPointers(Block &block) {
  llvm::DenseMap<Operation *, Operation *> front; // by user
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (!isPointer(&op))
      continue;
    if (op.use_empty()) {
      op.erase();
      continue;
    }
    Operation *user = nullptr;
    for (Operation *each : op.getUsers())
      if (Operation *inBlock = block.findAncestorOpInBlock(*each);
          !user || inBlock->isBeforeInBlock(user))
        user = inBlock;
    Operation *between = op.getNextNode();
    while (between != user && isPointer(between))
      between = between->getNextNode();
    if (between != user)
      op.moveBefore(front.lookup(user) ? front.lookup(user) : user);
    front[user] = &op;
  }
}

/// Joins calls with consecutive rows.
void joinCalls(Block &block) {
  rt::CallOp last;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    auto call = dyn_cast<rt::CallOp>(op);
    if (call && last && call.getCallee() == last.getCallee() &&
        call.getRow() == last.getRow() + last.getTimes() &&
        call.getBuffers() == last.getBuffers() && call.getPendings().empty() &&
        call.getCopies().empty()) {
      last.setTimes(last.getTimes() + 1);
      call.erase();
      continue;
    }
    if (call || !isPointer(&op))
      last = call;
  }
}

struct OutlineLayers : partita::impl::OutlineLayersBase<OutlineLayers> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (!Target::of(module).pollsCollectives())
      module.walk([](rt::PollOp poll) { poll.erase(); });
    Steps all(module);
    SmallVector<Repeat> repeats = choose(all.steps);
    SymbolTable symbols(module);
    std::vector<LayerFunction> made;
    for (const Repeat &repeat : repeats) {
      auto occurrences = llvm::map_to_vector(repeat.starts, [&](unsigned start) {
        return ArrayRef(all.steps).slice(start, repeat.length);
      });
      made.push_back(makeLayerFunction(occurrences, all.uses, symbols));
      outlined += repeat.starts.size();
      ++functions;
    }
    Caller caller(all.steps);
    for (auto [repeat, function] : llvm::zip(repeats, made))
      for (auto [row, start] : llvm::enumerate(repeat.starts))
        caller.replace(start, repeat.length, function, static_cast<int64_t>(row));
    for (const Repeat &repeat : repeats)
      for (unsigned start : repeat.starts)
        caller.commentOn(start + repeat.length);
    if (repeats.empty())
      return;
    for (Block *block : all.blocks)
      if (Operation *function = block->getParentOp(); isa<func::FuncOp>(function)) {
        SmallVector<StringAttr> byCaller = PendingsAttr::of(function);
        declarePendings(*block, {byCaller.begin(), byCaller.end()});
      }
    for (Block *block : all.blocks) {
      sinkPointers(*block);
      joinCalls(*block);
    }
  }

private:
  static SmallVector<Repeat> choose(ArrayRef<Step> steps);
};

/// Returns the entry point whose functions a step may share. Training, inference and initialization
/// share none, so that each can be read without the others.
Attribute partOfProgram(Step step) {
  bool isOwn = step.entry == train::EntryPoint::TrainStep || step.entry == train::EntryPoint::Init;
  return isOwn ? StringAttr::get(step.function->getContext(), train::nameOf(*step.entry))
               : Attribute();
}

/// Makes equal keys equal tokens; a step that must stay where it is gets a unique one.
SmallVector<Repeat> OutlineLayers::choose(ArrayRef<Step> steps) {
  llvm::DenseMap<std::pair<Attribute, Attribute>, unsigned> numbers;
  unsigned next = 0;
  SmallVector<unsigned> tokens, lines, layers;
  for (const Step &step : steps) {
    unsigned token = next;
    if (step.key)
      token = numbers.try_emplace({step.key, partOfProgram(step)}, next).first->second;
    next += token == next;
    tokens.push_back(token);
    // Counts a call and the pointers that it is the first to need; a wait is not worth a function.
    unsigned operands = step.op ? step.op->getNumOperands() : 0;
    lines.push_back(operands ? 1 + (operands + 1) / 2 : 0);
    layers.push_back(step.layer < 0 ? 0 : static_cast<unsigned>(step.layer) + 1);
  }
  return chooseRepeats(tokens, lines, layers);
}

} // namespace
