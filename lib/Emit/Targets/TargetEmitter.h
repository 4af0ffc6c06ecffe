//===- TargetEmitter.h - how programs for one target are written --------------------*- C++ -*-===//
//
// The half of a target that writes text: the spelling of calls, the Makefile, the files. What passes
// ask about a target is in dialects/Rt/Target.h.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_EMIT_TARGETEMITTER_H
#define PARTITA_LIB_EMIT_TARGETEMITTER_H

#include "lib/Emit/EmitC/Converter.h"
#include "partita/Emit/Emit.h"
#include <memory>

namespace partita {
class TemporaryFolder;
}

namespace partita::emit {

class TargetEmitter {
public:
  virtual ~TargetEmitter() = default;
  virtual llvm::StringRef getTargetName() const = 0;

  //===-- From rt to EmitC ------------------------------------------------------------------===//

  virtual std::unique_ptr<rt::Converter> createConverter(mlir::MLIRContext *context) const = 0;
  /// Replaces all of the module's kernels with functions.
  virtual void convertKernels(mlir::ModuleOp module) const = 0;

  //===-- The program's folder --------------------------------------------------------------===//

  /// "model.cpp"
  virtual llvm::StringRef getSourceFile() const = 0;
  /// What the source begins with: includes, namespaces.
  virtual llvm::StringRef getPrelude() const = 0;
  virtual void printMakefile(const EmitOptions &options, llvm::raw_ostream &os) const = 0;
  /// Writes what else belongs into the folder; what went wrong, or "".
  virtual std::string addFiles(const EmitOptions &, const TemporaryFolder &) const { return {}; }
  /// Is a file or folder there one that an emission, a build or a tuning leaves?
  virtual bool owns(llvm::StringRef path) const;

  //===-- Its build -------------------------------------------------------------------------===//

  /// "g++"
  virtual llvm::StringRef getCompiler() const = 0;
  /// What a build would lack here, or "".
  virtual std::string findObstacle(const EmitOptions &options) const = 0;
};

/// Every target has one.
const TargetEmitter &emitterOf(const rt::Target &target);

const TargetEmitter &cpuEmitter();
const TargetEmitter &cudaEmitter();

/// A path within a Makefile's value: `$` doubled, a `#` escaped.
std::string makeText(llvm::StringRef text);

} // namespace partita::emit

#endif // PARTITA_LIB_EMIT_TARGETEMITTER_H
