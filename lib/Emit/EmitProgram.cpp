//===- EmitProgram.cpp - writes a program's folder --------------------------------------------===//
//
// Everything is written, and built, in a temporary folder next to the target, which is renamed once
// it is complete. On any error the temporary folder is removed.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Interfaces/Provenance.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "lib/Emit/Printer.h"
#include "lib/Emit/Tables.h"
#include "lib/Emit/Targets/TargetEmitter.h"
#include "lib/Emit/Topology.h"
#include "partita/Support/ParseJson.h"
#include "partita/Support/TemporaryFolder.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace partita;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

//===------------------------------------------------------------------------------------------===//
// Text
//===------------------------------------------------------------------------------------------===//

static std::string meshText(ModuleOp module) {
  std::string text;
  for (auto [axis, size] : pipe::meshOf(module))
    text += (text.empty() ? "" : ", ") + axis.getValue().str() + " = " + std::to_string(size);
  return text.empty() ? "one rank" : rt::commentText(text);
}

/// Returns the purpose of a function, for its comment.
static StringRef purposeOf(Operation *function) {
  std::optional<train::EntryPoint> entry = train::entryPointOf(function);
  if (!entry)
    return "";
  switch (*entry) {
  case train::EntryPoint::Init:
    return "Parameters and states as they start; where parameters come from, --init says.";
  case train::EntryPoint::TrainStep:
    return "One update of the parameters from the micro-batches in the inputs.";
  case train::EntryPoint::EvalStep:
    return "The loss on one batch.";
  case train::EntryPoint::Forward:
    return "The model's outputs for one batch, left in the arena.";
  }
  return "";
}

namespace {

/// Prints the functions of a program, those of each stage in a namespace of its own.
class FunctionsPrinter {
public:
  FunctionsPrinter(ModuleOp module, llvm::raw_ostream &os)
      : stages(pipe::stagesOf(module)), os(os) {}

  /// Prints a kernel that several stages have once if its text is the same. If another kernel has
  /// taken its name, it goes into its stage's namespace.
  LogicalResult printKernels() {
    llvm::StringMap<std::string> kernels; // by name
    for (ModuleOp stage : stages) {
      std::string own;
      WalkResult printed =
          forFunctions(stage, /*calls=*/false, [&](StringRef name, StringRef text) {
            auto [known, isNew] = kernels.try_emplace(name, text.str());
            if (known->second != text)
              own += text;
            if (!isNew)
              return;
            if (kernels.size() == 1 && !name.empty())
              os << "\n// Elementwise kernels, generated from the scalar expressions of the ops.\n";
            os << text;
          });
      if (printed.wasInterrupted())
        return failure();
      if (!own.empty())
        os << "\nnamespace " << emit::stageSpace(stage) << " {\n"
           << own << "\n} // namespace " << emit::stageSpace(stage) << '\n';
    }
    return success();
  }

  /// Prints the functions that call kernels: layers and entry points.
  LogicalResult printCalls() {
    for (ModuleOp stage : stages) {
      std::string space = emit::stageSpace(stage);
      if (!space.empty())
        os << "\nnamespace " << space << " {\n";
      WalkResult printed =
          forFunctions(stage, /*calls=*/true, [&](StringRef, StringRef text) { os << text; });
      if (printed.wasInterrupted())
        return failure();
      if (!space.empty())
        os << "\n} // namespace " << space << '\n';
    }
    return success();
  }

private:
  /// Visits each function with the text that belongs to it: the text before a kernel, the table of
  /// a layer.
  static WalkResult forFunctions(ModuleOp stage, bool calls,
                                 llvm::function_ref<void(StringRef, StringRef)> visit) {
    std::string buffer;
    llvm::raw_string_ostream stream(buffer);
    emit::FunctionPrinter printer(stream);
    bool inText = false;
    for (Operation &op : *stage.getBody()) {
      auto text = dyn_cast<emitc::VerbatimOp>(op);
      auto function = dyn_cast<emitc::FuncOp>(op);
      StringRef purpose = function ? purposeOf(function) : "";
      bool isCall = !purpose.empty() || op.hasAttr(rt::RtDialect::kLayer) ||
                    op.hasAttr(rt::RtDialect::kPassOf);
      if ((!text && !function) || isCall != calls)
        continue;
      if (!inText)
        stream << '\n';
      if (!purpose.empty())
        stream << "// " << purpose << '\n';
      if (text)
        printer.print(text);
      else if (failed(printer.print(function)))
        return WalkResult::interrupt();
      inText = bool(text);
      if (inText)
        continue;
      visit(function.getName(), buffer);
      buffer.clear();
    }
    if (!buffer.empty()) // text after the last function
      visit("", buffer);
    return WalkResult::advance();
  }

  SmallVector<ModuleOp> stages;
  llvm::raw_ostream &os;
};

} // namespace

LogicalResult partita::printProgram(ModuleOp module, const EmitOptions &options,
                                    llvm::raw_ostream &os) {
  provenance::load(module, /*setAside=*/false); // variables are named after locations
  os << "// " << options.program << ": " << meshText(module)
     << "\n// Written by partita; compile it with the Makefile beside it.\n\n"
     << emit::emitterOf(rt::Target::of(module)).getPrelude()
     << emit::Topology(module).enumerations();
  FunctionsPrinter functions(module, os);
  if (failed(functions.printKernels()))
    return failure();
  // For a deep model, these are tens of thousands of lines of calls, on which -O3 takes most of a
  // minute and more than a gigabyte; -O0 takes a few seconds.
  os << "\n// What follows only calls; there is nothing in it to optimize.\n"
        "#pragma GCC push_options\n#pragma GCC optimize(\"O0\")\n";
  if (failed(functions.printCalls()))
    return failure();
  os << "\n#pragma GCC pop_options\n"
     << "\n//===-- What the runtime needs to know "
        "---------------------------------------------------------===//\n\n";
  return emit::printTables(module, options, os);
}

//===------------------------------------------------------------------------------------------===//
// The folder
//===------------------------------------------------------------------------------------------===//

/// Returns an entry of the folder that no emission writes, or "". The manifest names the program,
/// and so the files that make builds.
static std::string foreignEntry(StringRef folder) {
  llvm::SmallString<128> manifest(folder);
  path::append(manifest, "manifest.json");
  auto buffer = llvm::MemoryBuffer::getFile(manifest);
  if (!buffer)
    return "no manifest.json";
  auto parsed = parseJson((*buffer)->getBuffer());
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
    bool isOwn = llvm::any_of(rt::Target::all(), [&](const rt::Target *each) {
      return emit::emitterOf(*each).owns(entry->path());
    });
    if (!isOwn && name != *program)
      return ("'" + name + "', which is not part of a program").str();
  }
  return "";
}

std::string partita::checkProgramTarget(StringRef folder) {
  if (!fs::exists(folder))
    return {};
  std::error_code error;
  bool empty =
      fs::is_directory(folder) && fs::directory_iterator(folder, error) == fs::directory_iterator();
  std::string foreign = empty ? std::string() : foreignEntry(folder);
  if (foreign.empty())
    return {};
  return (folder + ": exists and is not a compiled program's folder, it has " + foreign +
          "; remove it or choose another")
      .str();
}

/// If make's output says that a device is full, returns that line and how much space is free on the
/// devices that a build writes to.
static std::string fullDevice(StringRef output, StringRef folder) {
  size_t at = output.find(std::strerror(ENOSPC));
  if (at == StringRef::npos)
    return {};
  StringRef line = output.take_front(output.find('\n', at));
  std::string text =
      "no space left to build the program: " + line.substr(line.rfind('\n') + 1).str();
  llvm::SmallString<64> temporary;
  path::system_temp_directory(/*ErasedOnReboot=*/true, temporary); // the compiler's
  for (StringRef place : {folder, temporary.str()})
    if (auto space = fs::disk_space(place))
      text += "; " + std::to_string(space->available >> 10) + " KiB are free in " +
              (place == folder ? path::parent_path(place.rtrim('/')) : place).str();
  return text;
}

/// Creates a file in memory that another process can open; "" on failure.
static std::string memoryFile(int &descriptor) {
  descriptor = memfd_create("build.log", 0);
  return descriptor < 0 ? "" : "/proc/self/fd/" + std::to_string(descriptor);
}

/// Returns this process's environment with untranslated messages, since they are parsed.
static std::vector<StringRef> untranslated() {
  std::vector<StringRef> variables;
  for (char **variable = environ; *variable; ++variable)
    if (!StringRef(*variable).starts_with("LC_ALL="))
      variables.push_back(*variable);
  variables.push_back("LC_ALL=C");
  return variables;
}

/// Runs make and reports its output if it fails. The output is kept in memory, since the disk may
/// be full.
static std::string build(const TemporaryFolder &folder) {
  llvm::ErrorOr<std::string> make = llvm::sys::findProgramByName("make");
  if (!make)
    return "cannot build the program: make is not installed";
  int descriptor;
  std::string log = memoryFile(descriptor), directory = folder.in("");
  if (log.empty())
    return std::string("cannot build the program: no file in memory: ") + std::strerror(errno);
  auto close = llvm::scope_exit([&] { ::close(descriptor); });
  std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log), StringRef(log)};
  std::vector<StringRef> environment = untranslated();
  int code = llvm::sys::ExecuteAndWait(*make, {*make, "-s", "-C", directory},
                                       ArrayRef<StringRef>(environment), redirects);
  if (code == 0)
    return {};
  auto text = llvm::MemoryBuffer::getFileAsStream(log);
  StringRef output = text ? (*text)->getBuffer() : "";
  if (std::string full = fullDevice(output, directory); !full.empty())
    return full;
  return "the emitted program does not build:\n" +
         (output.empty() ? "no output" : output.take_front(4000).str());
}

/// "sm_90" has compute capability 9.0.
static std::string checkCapability(ModuleOp module, StringRef architecture) {
  int64_t least = emit::leastCapability(pipe::stagesOf(module)), built = 0;
  if (least == 0 || !architecture.consume_front("sm_") || architecture.getAsInteger(10, built) ||
      built >= least)
    return {};
  return "--gpu-arch sm_" + std::to_string(built) +
         ": --precision fp8 needs GPUs that multiply 8-bit numbers, sm_" + std::to_string(least) +
         " or later; use --precision bfloat16";
}

std::string partita::findObstacle(ModuleOp module, const EmitOptions &options) {
  std::string problem = checkCapability(module, options.architecture);
  if (!problem.empty())
    return problem;
  const rt::Target &target = rt::Target::of(module);
  return options.build ? emit::emitterOf(target).findObstacle(options) : "";
}
StringRef partita::compilerOf(const rt::Target &target) {
  return emit::emitterOf(target).getCompiler();
}

LogicalResult partita::emitProgram(ModuleOp module, const llvm::json::Value &manifest,
                                   StringRef folder, const EmitOptions &options) {
  std::string program, makefile, manifestText = llvm::formatv("{0:2}\n", manifest).str();
  llvm::raw_string_ostream programText(program), makefileText(makefile);
  if (failed(printProgram(module, options, programText)))
    return failure();
  const emit::TargetEmitter &emitter = emit::emitterOf(rt::Target::of(module));
  emitter.printMakefile(options, makefileText);
  StringRef target = folder.rtrim('/');
  std::string problem =
      target.empty() ? "/: cannot be a program's folder" : checkProgramTarget(target);
  TemporaryFolder temporary(target);
  if (problem.empty())
    problem = temporary.create();
  for (auto [file, content] : {std::pair(emitter.getSourceFile(), &program),
                               {"manifest.json", &manifestText},
                               {"Makefile", &makefile}})
    if (problem.empty())
      problem = temporary.write(file, *content);
  if (problem.empty())
    problem = emitter.addFiles(options, temporary);
  if (problem.empty() && options.build)
    problem = build(temporary);
  if (problem.empty())
    problem = temporary.becomeTarget();
  if (problem.empty())
    return success();
  return emitError(UnknownLoc::get(module.getContext())) << problem; // the model is not to blame
}
