//===- Session.h - shared by the commands: context, diagnostics, files --------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_SESSION_H
#define PARTITA_TOOLS_SESSION_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Support/LLVM.h"
#include "partita/Import/Import.h"
#include "partita/Phases/Plan.h"
#include "partita/Support/WriteFile.h"
#include "tools/partita/Options.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>
#include <set>

namespace partita::tool {

/// Returns the plan's options about which tensors are parameters, for an import.
ImportOptions weightOptions(const Plan &plan);

/// A context with everything registered. Its first error is printed as one located message:
///
///     model.onnx: error: node '/h.0/attn/Foo': operator Foo of domain 'ai.onnx' ...
///     model.mlir:12:8: error: ...
///     partita compile: error: ...         where no place of a file is to blame
///
/// Later errors are consequences of the first and stay silent, unless all are asked for.
class Session {
public:
  explicit Session(llvm::StringRef command);

  mlir::MLIRContext &context() { return *mlirContext; }
  /// Has an error been printed, or a warning that counts as one (refuseWarnings)?
  bool hasFailed() const { return failed || refused; }
  int fail(const llvm::Twine &message);
  /// Reports every error from here on, and continues an import after an error.
  void tellAllErrors() { tellsAll = true; }
  /// Prints every warning from here on as an error. Whatever emits them continues, so that all are
  /// printed; a command checks hasFailed() before it writes.
  void refuseWarnings() { refusesWarnings = true; }

  /// Errors about a plan option ("--zero-stage: ...") that a configuration sets say where: "ds.json:4: 'zero_optimization.stage' becomes --zero-stage 2".
  void noteOrigin(llvm::StringRef option, std::string where) {
    origins[option.str()] = std::move(where);
  }

  /// Reads MLIR (text or bytecode, detected by the file's beginning) or imports ONNX; `dims` are
  /// --dim's "NAME=SIZE", and the plan determines fixed inputs and which tensors are parameters.
  /// Null after a message.
  mlir::OwningOpRef<mlir::ModuleOp> load(llvm::StringRef path, llvm::ArrayRef<std::string> dims,
                                         const Plan &plan = {});
  /// Warns of import's guesses about a module's weights, unless the plan decides them or trains
  /// nothing.
  void tellGuesses(mlir::ModuleOp module, const Plan &plan);
  /// Warns only of guesses that inference also depends on, which the report of a file does not
  /// list.
  void tellForwardGuesses(mlir::ModuleOp module);

private:
  std::string command;
  mlir::DialectRegistry registry;
  std::unique_ptr<mlir::MLIRContext> mlirContext;
  std::set<std::string> warned;               ///< each is printed once
  std::map<std::string, std::string> origins; ///< of plan options
  bool failed = false, tellsAll = false, refusesWarnings = false, refused = false;
};

/// Declares --warnings-as-errors, for Session::refuseWarnings.
void declareWarningsAsErrors(OptionSet &options, bool &target);

/// Parses --dim's "NAME=SIZE"; returns the problem, or "".
std::string parseDim(llvm::StringRef text, std::pair<std::string, int64_t> &dim);

/// Is the file MLIR, text or bytecode? By name (.mlir, .mlirbc) or the bytecode's magic number.
bool isMlirFile(llvm::StringRef path);

/// checkNotInput (partita/Support/WriteFile.h) of all files that a module's parameters and graph come from.
std::string checkNotModel(llvm::StringRef output, mlir::ModuleOp module,
                          llvm::StringRef option = "-o");

/// Calls writeFile (partita/Support/WriteFile.h); "-" is the standard output.
std::string writeOutput(llvm::StringRef path, llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace partita::tool

#endif // PARTITA_TOOLS_SESSION_H
