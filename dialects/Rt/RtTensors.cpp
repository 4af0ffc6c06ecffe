//===- RtTensors.cpp - tables of tensors, and the calls over them -----------------------------===//

#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "runtime/include/partita_rt/cuda/shapes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace partita;
using namespace partita::rt;

//===------------------------------------------------------------------------------------------===//
// The table
//===------------------------------------------------------------------------------------------===//

/// Returns the rank's accessor of a memory space; "" if no column may be in it.
static StringRef accessorOf(StringRef home) {
  return home == toString(Space::Arena)        ? "rank.at"
         : home == toString(Space::Persistent) ? "rank.persistent"
                                               : "";
}

LogicalResult TensorsOp::verify() {
  if (getHomes().size() != getTypes().size())
    return emitOpError() << "has " << getHomes().size() << " memory spaces, types of "
                         << getTypes().size() << " columns";
  for (auto home : getHomes().getAsRange<StringAttr>())
    if (accessorOf(home.getValue()).empty())
      return emitOpError() << "has a column in " << home
                           << "; it may be in \"arena\" or \"persistent\"";
  for (auto [number, row] : llvm::enumerate(getRows().getAsRange<TensorAttr>())) {
    if (row.getPlaces().size() != getTypes().size())
      return emitOpError() << "has " << getTypes().size() << " columns, row " << number << " has "
                           << row.getPlaces().size() << " places";
    if (row.getElements() < 0 || row.getStep() < 0 || row.getParameter() < -1)
      return emitOpError() << "row " << number << " is " << row
                           << "; elements and step are at least 0, a parameter at least -1";
  }
  return success();
}

TensorAttr TensorsOp::getRow(int64_t index) { return cast<TensorAttr>(getRows()[index]); }

std::string TensorsOp::getBase(int64_t column) {
  Type element = cast<TypeAttr>(getTypes()[column]).getValue();
  std::string accessor = accessorOf(cast<StringAttr>(getHomes()[column]).getValue()).str();
  return accessor + (element.isF32() ? "" : "<" + cppName(element).str() + ">") + "(0)";
}

//===------------------------------------------------------------------------------------------===//
// Calls over its rows
//===------------------------------------------------------------------------------------------===//

template <typename Op> static TensorsOp tensorsOf(Op op) {
  return SymbolTable::lookupNearestSymbolFrom<TensorsOp>(op, op.getTensorsAttr());
}

/// Returns the call's rows: `tensorRows(kUpdates)`; `tensorRows(kUpdates, 0, 74)` of more.
template <typename Op> static CallArgument rowsOf(Op op, const Target &target) {
  std::string some;
  if (columnOf(op, "first") || op.getCount() != tensorsOf(op).getRows().size())
    some = ", " + argument::numbered(op, "first") + ", " + std::to_string(op.getCount());
  return target.tensorRows(tableName(op.getTensors()), some);
}

/// Checks that the table exists and has the rows and, unless below 0, the column.
template <typename Op>
static LogicalResult verifyRows(Op op, SymbolTableCollection &symbols, int64_t column) {
  auto tensors = symbols.lookupNearestSymbolFrom<TensorsOp>(op, op.getTensorsAttr());
  if (!tensors)
    return op.emitOpError() << "names " << op.getTensorsAttr()
                            << ", which is not a table of tensors";
  auto rows = static_cast<int64_t>(tensors.getRows().size());
  int64_t first = op.getFirst(), count = op.getCount();
  if (first < 0 || count < 1 || first >= rows || count > rows - first)
    return op.emitOpError() << "takes " << count << " rows from " << first << " on of the " << rows
                            << " of " << op.getTensorsAttr();
  if (auto columns = static_cast<int64_t>(tensors.getTypes().size()); column >= columns)
    return op.emitOpError() << "takes column " << column << " of the " << columns << " of "
                            << op.getTensorsAttr();
  return success();
}

LogicalResult SquareSumAllOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyRows(*this, symbols, getColumn());
}
LogicalResult FirstNonfiniteAllOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyRows(*this, symbols, -1);
}
LogicalResult ExposeGradientsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyRows(*this, symbols, getColumn());
}

/// Checks that the kernel has as many values as the table has columns, and that each row's step
/// exists and has a text for each of the kernel's scalars.
LogicalResult UpdateAllOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyRows(*this, symbols, -1)))
    return failure();
  auto tensors = symbols.lookupNearestSymbolFrom<TensorsOp>(*this, getTensorsAttr());
  for (int64_t row = getFirst(); row < static_cast<int64_t>(getFirst() + getCount()); ++row)
    if (int64_t step = tensors.getRow(row).getStep();
        step >= static_cast<int64_t>(getSteps().size()))
      return emitOpError() << "has " << getSteps().size() << " lists of scalars, row " << row
                           << " of " << getTensorsAttr() << " wants number " << step;
  auto kernel = symbols.lookupNearestSymbolFrom<UpdateKernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "calls " << getKernelAttr() << ", which is not an update's kernel";
  if (kernel.getSquares())
    return emitOpError() << "calls " << getKernelAttr() << ", which updates nothing";
  if (kernel.getTypes() != tensors.getTypes())
    return emitOpError() << "calls " << getKernelAttr() << " on columns of the types "
                         << tensors.getTypes() << "; it takes " << kernel.getTypes();
  for (auto step : getSteps().getAsRange<ArrayAttr>())
    if (step.size() != kernel.getScalars().size())
      return emitOpError() << "has " << step.size() << " scalars, " << getKernelAttr() << " takes "
                           << kernel.getScalars().size();
  return success();
}

LogicalResult UpdateAllOp::verify() {
  size_t used = 0;
  for (Attribute step : getSteps()) {
    auto scalars = dyn_cast<ArrayAttr>(step);
    if (!scalars || !llvm::all_of(scalars, llvm::IsaPred<StringAttr>))
      return emitOpError() << "has scalars " << step << ", which is not a list of strings";
    for (auto scalar : scalars.getAsRange<StringAttr>())
      used += scalar.getValue().count("{}");
  }
  if (used != getPointers().size())
    return emitOpError() << "has " << getPointers().size() << " pointers, its scalars want "
                         << used;
  return success();
}

StringRef UpdateAllOp::getCallee() {
  return StringAttr::get(getContext(), calleeOf(getKernel())).getValue();
}

/// Prints adamw_all(rank.persistent(0), ..., rank.at(0), tensorRows(kUpdates),
/// {adamw_step{rate, t, 0.9}, adamw_step{rate, t, 0.8}}).
SmallVector<CallArgument> UpdateAllOp::getCallArguments(const Target &target) {
  TensorsOp tensors = tensorsOf(*this);
  SmallVector<CallArgument> arguments;
  for (size_t column = 0; column < tensors.getTypes().size(); ++column)
    arguments.emplace_back(tensors.getBase(static_cast<int64_t>(column)));
  arguments.push_back(rowsOf(*this, target));
  CallArgument steps("{{");
  for (auto step : getSteps().getAsRange<ArrayAttr>()) {
    std::string scalars;
    for (auto scalar : step.getAsRange<StringAttr>())
      scalars += (scalars.empty() ? "" : ", ") + scalar.getValue().str();
    steps.text += (steps.text.size() > 2 ? ", " : "") + stepOf(getKernel()) + "{{" + scalars + "}";
  }
  steps.text += "}";
  steps.values.append(getPointers().begin(), getPointers().end());
  arguments.push_back(std::move(steps));
  return arguments;
}

/// Prints squareSum(sums, tensorRows(kUpdates), 4, rank.at(0)).
SmallVector<CallArgument> SquareSumAllOp::getCallArguments(const Target &target) {
  auto column = static_cast<int64_t>(getColumn());
  return {getSum(), rowsOf(*this, target), column, tensorsOf(*this).getBase(column)};
}

/// Prints firstNonfinite(rank, sums, tensorRows(kUpdates)).
SmallVector<CallArgument> FirstNonfiniteAllOp::getCallArguments(const Target &target) {
  return {target.reported("firstNonfinite"), getSquares(), rowsOf(*this, target)};
}

/// Prints exposeGradients(rank, tensorRows(kUpdates), 4, rank.at(0), {0, 1}).
SmallVector<CallArgument> ExposeGradientsOp::getCallArguments(const Target &target) {
  auto column = static_cast<int64_t>(getColumn());
  return {"rank", rowsOf(*this, target), column, tensorsOf(*this).getBase(column),
          argument::listing(getFlatOver())};
}

int64_t SquareSumAllOp::getScratchBytes() {
  int64_t bytes = 0;
  TensorsOp tensors = tensorsOf(*this);
  for (int64_t row = getFirst(); tensors && row < static_cast<int64_t>(getFirst() + getCount());
       ++row)
    bytes += partita_rt::cuda::squareSumScratch(tensors.getRow(row).getElements());
  return bytes;
}
