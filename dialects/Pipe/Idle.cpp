//===- Idle.cpp - options of the plan that do nothing ---------------------------------------------===//

#include "dialects/Pipe/Idle.h"
#include "dialects/Pipe/Pipe.h"

using namespace mlir;
using namespace partita;

LogicalResult pipe::reportIdle(ModuleOp module, StringRef option, StringRef reason) {
  if (!stageOf(module))
    return module.emitError() << option << ": has no effect, because " << reason
                              << "; leave it out";
  NamedAttrList idle(module->getAttrOfType<DictionaryAttr>(kIdle));
  idle.set(option, StringAttr::get(module.getContext(), reason));
  module->setAttr(kIdle, idle.getDictionary(module.getContext()));
  return success();
}

LogicalResult pipe::checkIdle(ModuleOp program) {
  SmallVector<ModuleOp> stages = stagesOf(program);
  auto idle = stages.front()->getAttrOfType<DictionaryAttr>(kIdle);
  for (NamedAttribute option : idle ? idle.getValue() : ArrayRef<NamedAttribute>()) {
    bool isIdle = llvm::all_of(stages, [&](ModuleOp stage) {
      auto own = stage->getAttrOfType<DictionaryAttr>(kIdle);
      return own && own.contains(option.getName());
    });
    if (isIdle)
      return program.emitError() << option.getName().strref()
                                 << ": has no effect, because on every pipeline stage "
                                 << cast<StringAttr>(option.getValue()).getValue()
                                 << "; leave it out";
  }
  return success();
}

LogicalResult pipe::verifyIdle(Operation *op, Attribute idle) {
  auto options = dyn_cast<DictionaryAttr>(idle);
  if (!options || !llvm::all_of(options, [](NamedAttribute option) {
        return isa<StringAttr>(option.getValue());
      }))
    return op->emitError() << kIdle << " is " << idle << ", expected a reason for each option";
  return op->hasAttr(PipeDialect::kStage)
             ? success()
             : op->emitError() << kIdle << " belongs on a module with " << PipeDialect::kStage;
}
