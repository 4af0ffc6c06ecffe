//===- EmitProgram.cpp - a program's folder ---------------------------------------------------===//
//
// Everything is written, and built, in a temporary folder beside the wanted one, which is renamed
// when it is complete. Whatever goes wrong, the temporary folder goes away.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Rt/Names.h"
#include "lib/Emit/Printer.h"
#include "lib/Emit/Tables.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace partita;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

//===------------------------------------------------------------------------------------------===//
// Text
//===------------------------------------------------------------------------------------------===//

static std::string meshText(ModuleOp module) {
  auto mesh = par::MeshAttr::of(module);
  std::string text;
  for (auto [axis, size] : llvm::zip(mesh.getAxes(), mesh.getSizes()))
    text += (text.empty() ? "" : ", ") + axis.getValue().str() + " = " + std::to_string(size);
  return text.empty() ? "one rank" : rt::commentText(text);
}

/// What a function of this name is for, as its comment.
static StringRef purposeOf(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Case("init", "Parameters and states as they start; where parameters come from, --init says.")
      .Case("train_step", "One update of the parameters from the micro-batches in the inputs.")
      .Case("eval_step", "The loss on one batch.")
      .Case("forward", "The model's outputs for one batch, left in the arena.")
      .Default("");
}

LogicalResult partita::printProgram(ModuleOp module, const EmitOptions &options,
                                    llvm::raw_ostream &os) {
  os << "// " << options.program << ": " << meshText(module)
     << "\n// Written by partita; compile it with the Makefile beside it.\n\n"
     << "#include <partita_rt/partita_rt.h>\n\nusing namespace partita_rt;\n";
  emit::FunctionPrinter printer(os);
  bool kernels = false;
  auto print = [&](bool entry) -> LogicalResult {
    for (auto function : module.getOps<emitc::FuncOp>()) {
      StringRef purpose = purposeOf(function.getName());
      if (purpose.empty() == entry)
        continue;
      if (!entry && !kernels)
        os << "\n// Elementwise kernels, generated from the scalar expressions of the ops.\n";
      kernels = true;
      os << '\n';
      if (entry)
        os << "// " << purpose << '\n';
      if (failed(printer.print(function)))
        return failure();
    }
    return success();
  };
  if (failed(print(false)) || failed(print(true)))
    return failure();
  os << "\n//===-- What the runtime needs to know "
        "---------------------------------------------------------===//\n\n";
  return emit::printTables(module, options, os);
}

/// A path within a Makefile's value: `$` doubled, a `#` escaped.
static std::string makeText(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '$' ? "$$" : c == '#' ? "\\#" : std::string(1, c);
  return result;
}

static void printMakefile(const EmitOptions &options, llvm::raw_ostream &os) {
  os << "# Builds " << options.program
     << ". The runtime is found through these two, which may be set on the command line.\n"
     << "PARTITA_RT_INCLUDE ?= " << makeText(options.runtimeInclude) << "\n"
     << "PARTITA_RT_LIB ?= " << makeText(options.runtimeLibrary) << "\n\n"
     << "CXX = g++\n"
     << "CXXFLAGS = -std=c++17 -O3 -Wall -Wextra -fno-math-errno -march=native "
        "-mprefer-vector-width=512\n"
     << "MPI_LIBS = $(shell mpicxx --showme:link)\n\n"
     << options.program << ": model.cpp\n"
     << "\t$(CXX) $(CXXFLAGS) -I'$(PARTITA_RT_INCLUDE)' -o $@ model.cpp "
        "'$(PARTITA_RT_LIB)/libpartita_rt_cpu.a' "
        "-lopenblas $(MPI_LIBS) -lpthread\n\n"
     << "clean:\n\trm -f " << options.program << "\n\n.PHONY: clean\n";
}

//===------------------------------------------------------------------------------------------===//
// The folder
//===------------------------------------------------------------------------------------------===//

namespace {

/// A folder that disappears unless it is renamed.
class TemporaryFolder {
public:
  explicit TemporaryFolder(ModuleOp module) : module(module) {}
  ~TemporaryFolder() {
    if (!name.empty())
      fs::remove_directories(name);
  }

  LogicalResult create(StringRef target) {
    llvm::SmallString<128> prefix(target);
    if (std::error_code error = fs::create_directories(path::parent_path(prefix));
        error && !path::parent_path(prefix).empty())
      return emitError(module.getLoc()) << path::parent_path(prefix) << ": " << error.message();
    if (std::error_code error = fs::createUniqueDirectory(prefix + ".partial", name))
      return emitError(module.getLoc()) << target << ": " << error.message();
    // createUniqueDirectory makes it private; a program may be read by others.
    fs::setPermissions(name, fs::perms(0755));
    return success();
  }

  LogicalResult write(StringRef file,
                      llvm::function_ref<LogicalResult(llvm::raw_ostream &)> print) {
    std::error_code error;
    std::string full = in(file);
    llvm::raw_fd_ostream os(full, error);
    if (!error && failed(print(os)))
      return failure();
    os.close();
    if (!error)
      error = os.error();
    os.clear_error();
    if (error)
      return emitError(module.getLoc()) << full << ": " << error.message();
    return success();
  }

  LogicalResult rename(StringRef target) {
    if (fs::exists(target))
      fs::remove_directories(target);
    if (std::error_code error = fs::rename(name, target))
      return emitError(module.getLoc()) << target << ": " << error.message();
    name.clear();
    return success();
  }

  std::string in(StringRef file) const {
    llvm::SmallString<128> full(name);
    path::append(full, file);
    return full.str().str();
  }

private:
  ModuleOp module;
  llvm::SmallString<128> name;
};

} // namespace

/// What stands in the folder that no emission writes, or "": a manifest names the program, and with
/// it the files that make builds of it.
static std::string foreignEntry(StringRef folder) {
  llvm::SmallString<128> manifest(folder);
  path::append(manifest, "manifest.json");
  auto buffer = llvm::MemoryBuffer::getFile(manifest);
  if (!buffer)
    return "no manifest.json";
  auto parsed = llvm::json::parse((*buffer)->getBuffer());
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return "a manifest.json that is not a program's";
  }
  const llvm::json::Object *object = parsed->getAsObject();
  std::optional<StringRef> program = object ? object->getString("program") : std::nullopt;
  if (!program)
    return "a manifest.json that is not a program's";
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    StringRef name = path::filename(entry->path());
    if (name != "manifest.json" && name != "model.cpp" && name != "Makefile" && name != *program &&
        !name.ends_with(".o"))
      return ("'" + name + "', which is not part of a program").str();
  }
  return "";
}

/// May the folder be replaced? Only if it is empty or holds an emitted program and nothing else.
static LogicalResult checkTarget(ModuleOp module, StringRef folder) {
  if (!fs::exists(folder))
    return success();
  std::error_code error;
  bool empty =
      fs::is_directory(folder) && fs::directory_iterator(folder, error) == fs::directory_iterator();
  if (empty)
    return success();
  std::string foreign = foreignEntry(folder);
  if (foreign.empty())
    return success();
  return emitError(module.getLoc())
         << folder << ": exists and is not a compiled program's folder, it has " << foreign
         << "; remove it or choose another";
}

/// Runs make; its output is shown where it failed.
static LogicalResult build(ModuleOp module, const TemporaryFolder &folder) {
  llvm::ErrorOr<std::string> make = llvm::sys::findProgramByName("make");
  if (!make)
    return emitError(module.getLoc()) << "cannot build the program: make is not installed";
  std::string log = folder.in("build.log"), directory = folder.in("");
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  int code =
      llvm::sys::ExecuteAndWait(*make, {*make, "-s", "-C", directory}, std::nullopt, redirects);
  if (code == 0) {
    fs::remove(log);
    return success();
  }
  auto text = llvm::MemoryBuffer::getFile(log);
  return emitError(module.getLoc()) << "the emitted program does not build:\n"
                                    << (text ? (*text)->getBuffer().take_front(4000) : "no output");
}

LogicalResult partita::emitProgram(ModuleOp module, StringRef folder, const EmitOptions &options) {
  StringRef target = folder.rtrim('/');
  if (failed(checkTarget(module, target)))
    return failure();
  TemporaryFolder temporary(module);
  if (failed(temporary.create(target)) ||
      failed(temporary.write("model.cpp",
                             [&](auto &os) { return printProgram(module, options, os); })) ||
      failed(temporary.write("manifest.json",
                             [&](auto &os) { return printManifest(module, options, os); })) ||
      failed(temporary.write("Makefile",
                             [&](auto &os) { return printMakefile(options, os), success(); })))
    return failure();
  if (options.build && failed(build(module, temporary)))
    return failure();
  return temporary.rename(target);
}
