//===- Emit.h - from EmitC to a folder with a program -------------------------------*- C++ -*-===//
//
// The module after `rt-to-emitc` says everything; emission prints it. A program's folder:
//
//     model.cpp       kernels, functions, tables, main; model.cu for a GPU
//     Makefile        builds it with g++, or with nvcc; PARTITA_RT says where the runtime is
//     manifest.json   plan, mesh, parameters, census of collectives, memory
//     runtime/        the runtime's sources, where EmitOptions::withRuntime asks for them
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

/// On the module: options that the program's runs take where their command line says nothing, an
/// array of ["--print-every", "100"]; a flag's second text is empty.
constexpr llvm::StringLiteral kRunDefaultsAttr = "train.run_defaults";

struct EmitOptions {
  /// Name of the executable: letters, digits, `_`, `-`.
  std::string program = "model";
  /// The model file, for the manifest, and its folder, which parameters' files are relative to;
  /// absolute.
  std::string model, modelFolder;
  /// The runtime's source folder (has include/) and the folder with libpartita_rt_cpu.a; absolute.
  std::string runtimeInclude, runtimeLibrary;
  /// Of a program for GPUs: the runtime's source folder, and for which GPUs ("sm_90").
  std::string runtimeSource, architecture;
  /// Of such a program: copies these sources to runtime/ in the folder, which then needs no other.
  bool withRuntime = false;
  /// Also run make in the folder.
  bool build = true;
};

/// What manifest.json says: plan, mesh, parameters, collectives, memory. An error, which is reported,
/// where the module is not lowered.
mlir::FailureOr<llvm::json::Object> makeManifest(mlir::ModuleOp module, const EmitOptions &options);

/// The manifest's entry "stages": of a program of pipeline stages what each has, sends and holds. Empty of
/// any other; without memory before it is planned.
llvm::json::Array describeStages(mlir::ModuleOp module);
/// The manifest's entry "limited": of a program whose stages a limit of memory cut. Empty of any other.
llvm::json::Object describeLimit(mlir::ModuleOp module);

/// Writes the program and its manifest into `folder`, which appears complete or not at all; an older
/// one that a previous compilation made is replaced, anything else is an error.
mlir::LogicalResult emitProgram(mlir::ModuleOp module, const llvm::json::Value &manifest,
                                llvm::StringRef folder, const EmitOptions &options);

/// What a build of a program for this target would lack here, or "".
std::string findObstacle(const rt::Target &target, const EmitOptions &options);
/// What compiles it: "g++".
llvm::StringRef compilerOf(const rt::Target &target);

/// The text of model.cpp or model.cu.
mlir::LogicalResult printProgram(mlir::ModuleOp module, const EmitOptions &options,
                                 llvm::raw_ostream &os);

} // namespace partita

#endif // PARTITA_EMIT_EMIT_H
