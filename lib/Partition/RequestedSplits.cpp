//===- RequestedSplits.cpp - splits that the user or the model requests -----------------------===//

#include "lib/Partition/RequestedSplits.h"
#include "dialects/Train/Train.h"
#include "dialects/Tx/Tx.h"

using namespace mlir;
using namespace partita;

llvm::DenseMap<StringAttr, Value> partita::firstReads(ModuleOp module) {
  llvm::DenseMap<StringAttr, Value> reads;
  module.walk([&](train::ReadOp read) {
    reads.try_emplace(read.getSymbolAttr().getAttr(), read.getResult());
  });
  return reads;
}

LogicalResult Planter::plant(function_ref<FailureOr<SmallVector<Request>>()> collect) {
  while (true) { // ends, since forms have no further forms
    FailureOr<SmallVector<Request>> requests = collect();
    if (failed(requests))
      return failure();
    if (requests->empty())
      return success();
    if (failed(plantAll(*requests)))
      return failure();
    if (forms.empty() && !tryAgain)
      return success();
    forms.apply();
  }
}

LogicalResult Planter::plantAll(ArrayRef<Request> requests) {
  Propagation propagation(module, mesh);
  if (failed(propagation.run()))
    return failure();
  splitBy.clear();
  log.clear();
  tryAgain = false;
  for (const Request &request : requests) {
    if (mesh.sizeOf(request.axis) > 1 && failed(plantOne(propagation, request)) &&
        !request.optional)
      return failure();
    if (tryAgain) // the program has changed
      return success();
  }
  if (!forms.empty())
    return success();
  blocks.keepSplit(propagation);
  llvm::DenseMap<StringAttr, Value> reads = firstReads(module);
  for (auto parameter : module.getOps<train::ParameterOp>())
    if (Value value = reads.lookup(parameter.getSymNameAttr()))
      if (Attribute split = propagation.layoutOf(value).encoding(module.getContext()))
        parameter->setAttr(kArgumentSplit, split);
  log.write(module, propagation);
  return success();
}

LogicalResult Planter::plantOne(Propagation &propagation, const Request &request) {
  par::Layout layout = propagation.layoutOf(request.value);
  if (int dim = layout.dimOf(request.axis); dim >= 0) {
    bool asFor = request.blocks == 0 || layout.blocksOf(request.axis) == request.blocks;
    if (dim == static_cast<int>(request.dim) && asFor)
      return success(); // in another request's family
    return contradicts(request, dim), failure();
  }
  Attempt attempt = tryOut(propagation, request, LastResort::No);
  if (attempt.stop && !request.optional) // a request may have its price
    if (Attempt last = tryOut(propagation, request, LastResort::Yes);
        !last.stop || attempt.stop->isLastResort)
      attempt = last;
  if (attempt.holds()) {
    for (Operation *op : attempt.ops)
      splitBy.insert({{op, request.axis}, &request});
    log.add(attempt, request.value, request.axis, request.kind, request.words);
    return success();
  }
  if (attempt.stop && separates(propagation, request, *attempt.stop))
    return success();
  if (attempt.stop)
    return stopped(request, *attempt.stop), failure();
  int64_t parts = mesh.sizeOf(request.axis);
  if (forms.find(attempt, parts))
    return success();
  if (attempt.kept)
    return stopped(request, *attempt.kept), failure();
  return indivisible(request, attempt), failure();
}

Attempt Planter::tryOut(Propagation &propagation, const Request &request, LastResort resort) {
  auto pays = [](const Attempt &) { return true; };
  if (request.blocks == 0)
    return propagation.attemptInBlocks(request.value, request.dim, request.axis, pays, resort);
  return propagation.attempt(request.value, request.dim, request.axis, request.blocks, pays,
                             resort);
}

bool Planter::separates(const Propagation &propagation, const Request &request, const Stop &stop) {
  if (separated || request.optional || request.axis != par::kTensorAxis ||
      !isa<tx::SliceOp, tx::EmbeddingOp>(stop.op))
    return false;
  if (!forms.empty())
    return true; // first the forms: the ops that they replace still exist
  separated = true;
  llvm::DenseMap<StringAttr, Value> reads = firstReads(module);
  llvm::DenseSet<StringAttr> unsplit;
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    StringAttr symbol = parameter.getSymNameAttr();
    Value value = reads.lookup(symbol);
    if (value && value != request.value && propagation.layoutOf(value).dimOf(request.axis) < 0 &&
        (!parameter->hasAttr(kKeepFull) || fullInMemory.contains(symbol)))
      unsplit.insert(symbol);
  }
  return tryAgain = blocks.separate(module, request.axis, unsplit);
}

//===----------------------------------------------------------------------------------------------===//
// What prevents a request
//===----------------------------------------------------------------------------------------------===//

InFlightDiagnostic Planter::tell(const Request &request) {
  InFlightDiagnostic told =
      request.optional ? emitRemark(request.value.getLoc()) : module.emitError();
  told << request.about;
  return told;
}

void Planter::contradicts(const Request &request, int dim) {
  auto told = tell(request) << "'" << request.name << "' is split over " << request.axis.getValue()
                            << " along dimension " << dim << " already";
  for (Operation *user : request.value.getUsers())
    if (const Request *other = splitBy.lookup({user, request.axis})) {
      told << ", by " << other->by << "; one of the two must go";
      return;
    }
}

void Planter::stopped(const Request &request, const Stop &stop) {
  auto told = tell(request) << "dimension " << request.dim << " of '" << request.name
                            << "' cannot be split: " << stop.why;
  const Request *other = splitBy.lookup({stop.op, request.axis});
  if (other && other != &request)
    told << ", which " << other->by << " splits; one of the two must go";
  else if (request.blocks != 0 && stop.blocks > 1)
    told << "; each of " << request.blocks * stop.blocks << " blocks of it may do";
  told.attachNote(stop.op->getLoc()) << "here";
}

void Planter::indivisible(const Request &request, const Attempt &attempt) {
  int64_t parts = mesh.sizeOf(request.axis);
  auto told = tell(request) << "dimension " << request.dim << " of '" << request.name << "' "
                            << Forms::reason(attempt, parts) << " over " << request.axis.getValue()
                            << " = " << parts << "; sizes of " << request.axis.getValue()
                            << " that do: ";
  llvm::interleaveComma(Forms::divisors(attempt), told);
  told.attachNote(attempt.indivisibleAt->getLoc()) << "it does not divide here";
}
