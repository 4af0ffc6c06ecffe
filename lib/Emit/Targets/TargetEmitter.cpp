//===- TargetEmitter.cpp - see TargetEmitter.h ------------------------------------------------===//

#include "lib/Emit/Targets/TargetEmitter.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace partita;
using namespace partita::emit;

const TargetEmitter &emit::emitterOf(const rt::Target &target) {
  static const TargetEmitter *const emitters[] = {&cpuEmitter(), &cudaEmitter()};
  const auto *found = llvm::find_if(emitters, [&](const TargetEmitter *each) {
    return each->getTargetName() == target.getName();
  });
  if (found == std::end(emitters))
    llvm_unreachable("a target without an emitter");
  return **found;
}

bool TargetEmitter::owns(StringRef path) const {
  StringRef name = llvm::sys::path::filename(path);
  return name == getSourceFile() || name == "manifest.json" || name == "Makefile" ||
         name.ends_with(".o");
}

std::string emit::makeText(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '$' ? "$$" : c == '#' ? "\\#" : std::string(1, c);
  return result;
}
