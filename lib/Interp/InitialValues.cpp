//===- InitialValues.cpp - the values that parameters start with ------------------------------===//

#include "partita/Interp/InitialValues.h"
#include "dialects/Train/Train.h"
#include "lib/Import/ExternalData.h"
#include "partita/Interp/Interpreter.h"
#include "partita/Interp/Random.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace partita;
using namespace partita::interp;

/// The little-endian number of a floating-point type at `bytes`.
static double decode(const llvm::fltSemantics &semantics, unsigned width, const char *bytes) {
  uint64_t bits = 0;
  for (unsigned i = 0; i < width / 8; ++i)
    bits |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  APFloat number(semantics, APInt(width, bits));
  bool losesInfo = false;
  number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return number.convertToDouble();
}

static FailureOr<Tensor> readFile(train::ParameterOp parameter, train::InitialAttr initial,
                                  StringRef folder) {
  Tensor value(cast<RankedTensorType>(parameter.getType()));
  auto element = dyn_cast<FloatType>(initial.getElement());
  if (!element || element.getWidth() % 8 != 0 || !value.isReal)
    return parameter.emitError()
           << "the interpreter reads parameters of floating-point types, this is stored as "
           << initial.getElement() << " and has type " << parameter.getType();
  uint64_t width = element.getWidth() / 8, wanted = static_cast<uint64_t>(value.size()) * width;
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
  for (int64_t i = 0; i < value.size(); ++i)
    value.reals[i] = decode(element.getFloatSemantics(), element.getWidth(),
                            (*buffer)->getBufferStart() + i * width);
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
  uint64_t key = randomKey(values.seed, parameter.getSymName());
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
  Tensor value(cast<RankedTensorType>(state.getType()));
  for (int64_t i = 0; i < value.size(); ++i)
    value.setNumber(i, state.getValue().convertToDouble());
  return value;
}

LogicalResult partita::interp::initialize(Interpreter &interpreter, const InitialValues &values) {
  interpreter.options.initialValues = values;
  if (interpreter.module().lookupSymbol<func::FuncOp>(train::TrainDialect::kInit))
    return failure(failed(interpreter.call(train::TrainDialect::kInit, {})));
  for (auto parameter : interpreter.module().getOps<train::ParameterOp>()) {
    if (failed(checkType(parameter.getType(), interpreter.mesh(),
                         [&](const Twine &text) { parameter.emitError() << text; })))
      return failure();
    auto value = initialValue(parameter, values);
    if (failed(value) || failed(interpreter.setParameter(parameter.getSymName(), *value)))
      return failure();
  }
  return success();
}
