//===- TargetEmitter.h - writes programs for one target -----------------------------*- C++ -*-===//
//
// The half of a target that writes text: the spelling of calls, the Makefile, the files. The half
// that passes ask is in dialects/Rt/Target.h.
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_LIB_EMIT_TARGETS_TARGETEMITTER_H
#define PARTITA_LIB_EMIT_TARGETS_TARGETEMITTER_H

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
  /// Replaces all of the module's kernels by functions.
  virtual void convertKernels(mlir::ModuleOp module) const = 0;
  /// Returns true if kernels read constant tables from the memory of a device.
  virtual bool keepsTablesOnDevice() const { return false; }

  //===-- The program's folder --------------------------------------------------------------===//

  /// Returns the name of the source, "model.cpp".
  virtual llvm::StringRef getSourceFile() const = 0;
  /// Returns the beginning of the source: includes, namespaces.
  virtual llvm::StringRef getPrelude() const = 0;
  virtual void printMakefile(const EmitOptions &options, llvm::raw_ostream &os) const = 0;
  /// Writes the other files of the folder. Returns an error, or "".
  virtual std::string addFiles(const EmitOptions &, const TemporaryFolder &) const { return {}; }
  /// Returns true if an emission, a build or a tuning run leaves this file or folder.
  virtual bool owns(llvm::StringRef path) const;

  //===-- Build -----------------------------------------------------------------------------===//

  /// Returns the compiler's name, "g++".
  virtual llvm::StringRef getCompiler() const = 0;
  /// Returns what prevents a build here, or "".
  virtual std::string findObstacle(const EmitOptions &options) const = 0;
};

/// Returns the target's emitter; every target has one.
const TargetEmitter &emitterOf(const rt::Target &target);

const TargetEmitter &cpuEmitter();
const TargetEmitter &cudaEmitter();

/// Escapes a path for a Makefile: `$` is doubled, `#` gets a backslash.
std::string makeText(llvm::StringRef text);

} // namespace partita::emit

#endif // PARTITA_LIB_EMIT_TARGETS_TARGETEMITTER_H
