//===- Emit.h - writes the folder of a program from EmitC ---------------------------*- C++ -*-===//
//
// Emission prints the module after `rt-to-emitc` as it is. A program's folder:
//
//     model.cpp       kernels, functions, tables, main; model.cu for a GPU
//     Makefile        builds it with g++ or nvcc; PARTITA_RT is the runtime's folder
//     manifest.json   plan, mesh, parameters, census of collectives, memory
//     runtime/        the runtime's sources, if EmitOptions::withRuntime is set
//     (tools/partita/Program.h)
//
//===------------------------------------------------------------------------------------------===//

#ifndef PARTITA_EMIT_EMIT_H
#define PARTITA_EMIT_EMIT_H

#include "dialects/Rt/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace partita {

/// On the module: default options of the program's runs, an array of ["--print-every", "100"]; a
/// flag's second text is empty.
constexpr llvm::StringLiteral kRunDefaultsAttr = "train.run_defaults";

struct EmitOptions {
  /// Name of the executable: letters, digits, `_`, `-`.
  std::string program = "model";
  /// The model file, for the manifest, and its folder, to which parameters' files are relative;
  /// absolute.
  std::string model, modelFolder;
  /// The runtime's source folder (has include/) and the folder with libpartita_rt_cpu.a; absolute.
  std::string runtimeInclude, runtimeLibrary;
  /// For a program for GPUs: the runtime's source folder, and the architecture ("sm_90").
  std::string runtimeSource, architecture;
  /// For such a program: copies these sources to runtime/ in the folder, which then needs no
  /// others.
  bool withRuntime = false;
  /// Also run make in the folder.
  bool build = true;
};

/// Returns the contents of manifest.json: plan, mesh, parameters, collectives, memory. Reports an
/// error if the module is not lowered.
mlir::FailureOr<llvm::json::Object> makeManifest(mlir::ModuleOp module, const EmitOptions &options);

/// Returns the manifest's entry "stages": what each pipeline stage has, sends and holds. Empty
/// without stages; without memory before memory is planned.
llvm::json::Array describeStages(mlir::ModuleOp module);
/// Returns the manifest's entry "limited" if the memory limit decided the cuts, else an empty
/// object.
llvm::json::Object describeLimit(mlir::ModuleOp module);

/// Writes the program and its manifest into `folder`, which appears complete or not at all. It
/// replaces the folder of a previous compilation; anything else in its place is an error.
mlir::LogicalResult emitProgram(mlir::ModuleOp module, const llvm::json::Value &manifest,
                                llvm::StringRef folder, const EmitOptions &options);

/// Returns why emitProgram may not replace the folder, or "": it must be empty or contain only an
/// emitted program.
std::string checkProgramTarget(llvm::StringRef folder);

/// Returns why the program cannot be built here, or not for this architecture, or "".
std::string findObstacle(mlir::ModuleOp module, const EmitOptions &options);
/// Returns the compiler of the program: "g++".
llvm::StringRef compilerOf(const rt::Target &target);

/// Prints the text of model.cpp or model.cu.
mlir::LogicalResult printProgram(mlir::ModuleOp module, const EmitOptions &options,
                                 llvm::raw_ostream &os);

} // namespace partita

#endif // PARTITA_EMIT_EMIT_H
