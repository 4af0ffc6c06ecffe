//===- InitialValues.cpp - the values that parameters start with ------------------------------===//

#include "partita/Interp/InitialValues.h"
#include "dialects/Train/Tensors.h"
#include "partita/Import/ExternalData.h"
#include "partita/Interp/Interpreter.h"
#include "partita/Interp/Random.h"
#include "runtime/include/partita_rt/varints.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

/// The number of a floating-point type with these bits.
static double decode(const llvm::fltSemantics &semantics, unsigned width, uint64_t bits) {
  APFloat number(semantics, APInt(width, bits, /*isSigned=*/false, /*implicitTrunc=*/true));
  bool losesInfo = false;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

/// The bits of the elements, little endian or each a varint; false if there are not as many.
static bool decodeAll(train::InitialAttr initial, const char *bytes, Tensor &value) {
  auto element = cast<FloatType>(initial.getElement());
  unsigned width = element.getWidth();
  const auto *at = reinterpret_cast<const unsigned char *>(bytes);
  partita_rt::VarintReader reader(at, at + (initial.getVarints() ? initial.getBytes() : 0));
  for (int64_t i = 0; i < value.size(); ++i) {
    uint64_t bits = 0;
    if (initial.getVarints() && !reader.next(bits))
      return false;
    for (unsigned part = 0; !initial.getVarints() && part < width; part += 8)
      bits |= static_cast<uint64_t>(*at++) << part;
    value.reals[i] = decode(element.getFloatSemantics(), width, bits);
  }
  return reader.atEnd();
}

/// The matrix whose transpose these numbers are.
static void transpose(Tensor &value, int64_t rows, int64_t columns) {
  auto stored = value.reals;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      value.reals[row * columns + column] = stored[column * rows + row];
}

static FailureOr<Tensor> readFile(train::ParameterOp parameter, train::InitialAttr initial,
                                  StringRef folder) {
  Tensor value(cast<RankedTensorType>(parameter.getType()));
  auto element = dyn_cast<FloatType>(initial.getElement());
  if (!element || element.getWidth() % 8 != 0 || !value.isReal)
    return parameter.emitError()
           << "the interpreter reads parameters of floating-point types, this is stored as "
           << initial.getElement() << " and has type " << parameter.getType();
  uint64_t needed = static_cast<uint64_t>(value.size()) * (element.getWidth() / 8);
  uint64_t wanted = initial.getVarints() ? initial.getBytes() : needed;
  if (initial.getBytes() != wanted)
    return parameter.emitError() << "has " << initial.getBytes() << " bytes in '"
                                 << initial.getFile().getValue() << "', its type "
                                 << parameter.getType() << " needs " << wanted;
  importer::OpenedData data = importer::openExternalData(folder, initial.getFile());
  if (!data.error.empty())
    return parameter.emitError() << data.error;
  bool inside = initial.getOffset() <= data.size && wanted <= data.size - initial.getOffset();
  auto buffer = llvm::MemoryBuffer::getOpenFileSlice(data.descriptor, initial.getFile().getValue(),
                                                     inside ? wanted : 0,
                                                     static_cast<int64_t>(initial.getOffset()));
  llvm::sys::fs::closeFile(data.descriptor);
  if (!inside)
    return parameter.emitError() << "needs bytes " << initial.getOffset() << " to "
                                 << initial.getOffset() + wanted << " of '"
                                 << initial.getFile().getValue() << "', which has " << data.size;
  if (!buffer)
    return parameter.emitError() << "cannot read '" << initial.getFile().getValue()
                                 << "': " << buffer.getError().message();
  if (!decodeAll(initial, (*buffer)->getBufferStart(), value))
    return parameter.emitError() << "has not the " << value.size() << " values of its type in '"
                                 << initial.getFile().getValue() << "'";
  if (int64_t count = llvm::count_if(value.reals, [](double number) { return std::isnan(number); }))
    return parameter.emitError() << "holds NaN in '" << initial.getFile().getValue()
                                 << "': " << count << " of " << value.size()
                                 << " values of parameter '" << parameter.getModelName()
                                 << "'; repair the file, or take other "
                                 << "values with --init";
  auto type = cast<RankedTensorType>(parameter.getType());
  bool isTransposed = train::isStoredTransposed(parameter);
  if (isTransposed && type.getRank() != 2)
    return parameter.emitError() << "is stored transposed, but is not a matrix: " << type;
  if (isTransposed)
    transpose(value, type.getDimSize(0), type.getDimSize(1));
  return value;
}

static FailureOr<Tensor> valueOf(train::ParameterOp parameter, const InitialValues &values) {
  using From = InitialValues::From;
  if (values.from == From::File) {
    if (parameter.getInitial())
      return readFile(parameter, *parameter.getInitial(), values.folder);
    return parameter.emitError()
           << "parameter '" << parameter.getSymName()
           << "' has no value in the model's file; fill it from a seed instead";
  }
  bool perturbed = values.from == From::Perturbed;
  if (!parameter.getFill() && !perturbed)
    return parameter.emitError() << "parameter '" << parameter.getSymName()
                                 << "' has no `fill` that says how to make a value from a seed";
  Tensor value(cast<RankedTensorType>(parameter.getType()));
  double mean = parameter.getFill() ? parameter.getFill()->getMean() : 0;
  double deviation = parameter.getFill() ? parameter.getFill()->getStd() : 0;
  if (perturbed && deviation == 0)
    deviation = 0.1;
  uint64_t key = randomKey(values.seed, parameter.getModelName());
  for (int64_t i = 0; i < value.size(); ++i) {
    double number = deviation == 0 ? mean : mean + standardNormal(key, i) * deviation;
    value.setNumber(i, static_cast<float>(number)); // the runtime's parameters are float32
  }
  return value;
}

FailureOr<Tensor> partita::interp::initialValue(Operation *symbol, const InitialValues &values) {
  if (auto parameter = dyn_cast<train::ParameterOp>(symbol))
    return valueOf(parameter, values);
  auto state = cast<train::StateOp>(symbol);
  if (state.isMaster())
    if (auto parameter =
            SymbolTable::lookupNearestSymbolFrom<train::ParameterOp>(state, state.getOfAttr()))
      return valueOf(parameter, values);
  Tensor value(cast<RankedTensorType>(state.getType()));
  for (int64_t i = 0; i < value.size(); ++i)
    value.setNumber(i, state.getValue().convertToDouble());
  return value;
}

LogicalResult partita::interp::initialize(Interpreter &interpreter, const InitialValues &values) {
  interpreter.options.initialValues = values;
  if (auto init = train::lookup<func::FuncOp>(interpreter.module(), train::EntryPoint::Init))
    return failure(failed(interpreter.call(init.getName(), {})));
  auto initializeOne = [&](Operation *symbol, Type type) -> LogicalResult {
    if (failed(checkType(type, interpreter.mesh(),
                         [&](const Twine &text) { symbol->emitError() << text; })))
      return failure();
    auto value = initialValue(symbol, values);
    return failure(failed(value) || failed(interpreter.setParameter(
                                        SymbolTable::getSymbolName(symbol).getValue(), *value)));
  };
  for (auto parameter : interpreter.module().getOps<train::ParameterOp>())
    if (failed(initializeOne(parameter, parameter.getType())))
      return failure();
  for (auto state : interpreter.module().getOps<train::StateOp>())
    if (state.isMaster() && failed(initializeOne(state, state.getType())))
      return failure();
  return success();
}
