//===- IdleOptions.cpp - options of the plan that do nothing --------------------------------------===//

#include "partita/Analysis/IdleOptions.h"
#include "dialects/Pipe/Pipe.h"

using namespace mlir;
using namespace partita;
using pipe::PipeDialect;

LogicalResult analysis::reportIdle(ModuleOp module, StringRef option, StringRef reason) {
  if (!pipe::stageOf(module))
    return module.emitError() << "--" << option << ": has no effect, because " << reason
                              << "; leave it out";
  NamedAttrList idle(module->getAttrOfType<DictionaryAttr>(PipeDialect::kIdle));
  idle.set(option, StringAttr::get(module.getContext(), reason));
  module->setAttr(PipeDialect::kIdle, idle.getDictionary(module.getContext()));
  return success();
}

LogicalResult analysis::checkIdle(ModuleOp program) {
  SmallVector<ModuleOp> stages = pipe::stagesOf(program);
  auto idle = stages.front()->getAttrOfType<DictionaryAttr>(PipeDialect::kIdle);
  for (NamedAttribute option : idle ? idle.getValue() : ArrayRef<NamedAttribute>()) {
    bool isIdle = llvm::all_of(stages, [&](ModuleOp stage) {
      auto own = stage->getAttrOfType<DictionaryAttr>(PipeDialect::kIdle);
      return own && own.contains(option.getName());
    });
    if (isIdle)
      return program.emitError() << "--" << option.getName().strref()
                                 << ": has no effect, because on every pipeline stage "
                                 << cast<StringAttr>(option.getValue()).getValue()
                                 << "; leave it out";
  }
  return success();
}
