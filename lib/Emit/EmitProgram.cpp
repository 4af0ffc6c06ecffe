//===- EmitProgram.cpp - a program's folder ---------------------------------------------------===//
//
// Everything is written, and built, in a temporary folder beside the wanted one, which is renamed
// when it is complete. Whatever goes wrong, the temporary folder goes away.
//
//===------------------------------------------------------------------------------------------===//

#include "dialects/Par/Par.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "lib/Emit/CopyRuntime.h"
#include "lib/Emit/Printer.h"
#include "lib/Emit/Tables.h"
#include "partita/Support/TemporaryFolder.h"
#include "partita/Support/ParseJson.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
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
  auto mesh = par::MeshAttr::of(module);
  std::string text;
  for (auto [axis, size] : llvm::zip(mesh.getAxes(), mesh.getSizes()))
    text += (text.empty() ? "" : ", ") + axis.getValue().str() + " = " + std::to_string(size);
  return text.empty() ? "one rank" : rt::commentText(text);
}

/// The mesh's axes by name, in their order: "enum MeshAxis { kDp, kTp };"
static std::string axesText(ModuleOp module) {
  std::string names = llvm::join(
      llvm::map_range(par::MeshAttr::of(module).getAxes(),
                      [](StringAttr axis) { return rt::axisName(axis.getValue()); }),
      ", ");
  return names.empty() ? "" : "\nenum MeshAxis { " + names + " };\n";
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
     << (rt::isForCuda(module)
             ? "#include <partita_rt/partita_rt_cuda.h>\n\nusing namespace partita_rt;\n"
               "using namespace partita_rt::cuda;\n"
             : "#include <partita_rt/partita_rt.h>\n\nusing namespace partita_rt;\n")
     << axesText(module);
  emit::FunctionPrinter printer(os);
  bool kernels = false;
  auto print = [&](bool entry) -> LogicalResult {
    bool inText = false; // a kernel's text for CUDA stands in front of its function
    for (Operation &op : *module.getBody()) {
      auto text = dyn_cast<emitc::VerbatimOp>(op);
      auto function = dyn_cast<emitc::FuncOp>(op);
      StringRef purpose = function ? purposeOf(function.getName()) : "";
      bool calls = !purpose.empty() || op.hasAttr(rt::RtDialect::kLayer);
      if ((!text && !function) || calls != entry)
        continue;
      if (!entry && !kernels)
        os << "\n// Elementwise kernels, generated from the scalar expressions of the ops.\n";
      kernels = true;
      if (!inText)
        os << '\n';
      if (!purpose.empty())
        os << "// " << purpose << '\n';
      if (text)
        printer.print(text);
      else if (failed(printer.print(function)))
        return failure();
      inText = bool(text);
    }
    return success();
  };
  if (failed(print(false)))
    return failure();
  // Of a deep model they are tens of thousands of lines, on which -O3 takes most of a minute and
  // more than a gigabyte; at -O0 a few seconds.
  os << "\n// What follows only calls; there is nothing in it to optimize.\n"
        "#pragma GCC push_options\n#pragma GCC optimize(\"O0\")\n";
  if (failed(print(true)))
    return failure();
  os << "\n#pragma GCC pop_options\n"
        "\n//===-- What the runtime needs to know "
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

/// nvcc alone suffices: what it is linked with is built from the runtime's sources by their
/// Makefile.
static void printCudaMakefile(const EmitOptions &options, llvm::raw_ostream &os) {
  std::string source = options.withRuntime ? "$(CURDIR)/runtime" : makeText(options.runtimeSource),
              library = options.withRuntime ? "$(CURDIR)/runtime/build"
                                            : makeText(options.runtimeLibrary);
  os << "# Builds " << options.program
     << " with nvcc: that of CUDA_HOME if it is set, else of the PATH or of /usr/local/cuda.\n"
     << "# The runtime's sources, and the folder that it is built in, may be set on the command "
        "line.\n"
     << "PARTITA_RT ?= " << source << "\n"
     << "PARTITA_RT_LIB ?= " << library << "\n"
     << "ARCH ?= " << options.architecture << "\n\n"
     << "ifneq ($(words $(PARTITA_RT) $(PARTITA_RT_LIB)),2)\n"
     << "$(error make cannot build in a folder whose path has spaces: $(PARTITA_RT), "
        "$(PARTITA_RT_LIB))\n"
     << "endif\n"
     << "ifeq ($(wildcard $(PARTITA_RT)/cuda/nvcc.mk),)\n"
     << "$(error the runtime's sources are not at $(PARTITA_RT): say where they are, make "
        "PARTITA_RT=FOLDER PARTITA_RT_LIB=FOLDER, or compile the model again --with-runtime)\n"
     << "endif\n"
     << "include $(PARTITA_RT)/cuda/nvcc.mk\n\n"
     << "RUNTIME = $(PARTITA_RT_LIB)/libpartita_rt_cuda_$(ARCH).a\n\n"
     << options.program << ": model.cu runtime\n"
     << "\t$(NVCC) $(NVCCFLAGS) -I'$(PARTITA_RT)/include' -I'$(PARTITA_RT)' -o $@ model.cu "
        "'$(RUNTIME)' $(CUDA_LIBS)\n\n"
     << "# The emitted source alone.\n"
     << "model.o: model.cu\n"
     << "\t$(NVCC) $(NVCCFLAGS) -I'$(PARTITA_RT)/include' -I'$(PARTITA_RT)' -c -o $@ model.cu\n\n"
     << "runtime:\n"
     << "\t+$(MAKE) -s -C '$(PARTITA_RT)/cuda' OUT='$(PARTITA_RT_LIB)' ARCH=$(ARCH)\n\n"
     << "clean:\n\trm -f " << options.program << " model.o\n\n.PHONY: clean runtime\n";
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

/// What stands in the folder that no emission writes, or "": a manifest names the program, and with
/// it the files that make builds of it.
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
    if (name == "runtime" && fs::exists(entry->path() + "/cuda/nvcc.mk")) // --with-runtime
      continue;
    if (name != "manifest.json" && name != "model.cpp" && name != "model.cu" &&
        name != "products.json" && name != "Makefile" && name != *program && !name.ends_with(".o"))
      return ("'" + name + "', which is not part of a program").str();
  }
  return "";
}

/// May the folder be replaced? Only if it is empty or holds an emitted program and nothing else;
/// otherwise says why not.
static std::string checkTarget(StringRef folder) {
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

/// The line of make's output that says so, when a device is full, and how much is free on those
/// that a build writes to.
static std::string fullDevice(StringRef output, StringRef folder) {
  size_t at = output.find(std::strerror(ENOSPC));
  if (at == StringRef::npos)
    return {};
  StringRef line = output.take_front(output.find('\n', at));
  std::string text = "a device is full, so the program cannot be built: " +
                     line.substr(line.rfind('\n') + 1).str();
  llvm::SmallString<64> temporary;
  path::system_temp_directory(/*ErasedOnReboot=*/true, temporary); // the compiler's
  for (StringRef place : {folder, temporary.str()})
    if (auto space = fs::disk_space(place))
      text += "; " + std::to_string(space->available >> 10) + " KiB are free in " +
              (place == folder ? path::parent_path(place.rtrim('/')) : place).str();
  return text;
}

/// A file in memory that another process can open; "" when there is none.
static std::string memoryFile(int &descriptor) {
  descriptor = memfd_create("build.log", 0);
  return descriptor < 0 ? "" : "/proc/self/fd/" + std::to_string(descriptor);
}

/// This process's environment, but for messages that are not translated: they are looked through.
static std::vector<StringRef> untranslated() {
  std::vector<StringRef> variables;
  for (char **variable = environ; *variable; ++variable)
    if (!StringRef(*variable).starts_with("LC_ALL="))
      variables.push_back(*variable);
  variables.push_back("LC_ALL=C");
  return variables;
}

/// Runs make; its output is told where it failed. It goes into memory: the disk may be full.
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

LogicalResult partita::emitProgram(ModuleOp module, StringRef folder, const EmitOptions &options) {
  std::string program, manifest, makefile;
  llvm::raw_string_ostream programText(program), manifestText(manifest), makefileText(makefile);
  if (failed(printProgram(module, options, programText)) ||
      failed(printManifest(module, options, manifestText)))
    return failure();
  bool cuda = rt::isForCuda(module);
  cuda ? printCudaMakefile(options, makefileText) : printMakefile(options, makefileText);
  StringRef target = folder.rtrim('/');
  std::string problem = target.empty() ? "/: cannot be a program's folder" : checkTarget(target);
  TemporaryFolder temporary(target);
  if (problem.empty())
    problem = temporary.create();
  for (auto [file, content] : {std::pair(cuda ? "model.cu" : "model.cpp", &program),
                               {"manifest.json", &manifest},
                               {"Makefile", &makefile}})
    if (problem.empty())
      problem = temporary.write(file, *content);
  if (problem.empty() && cuda && options.withRuntime)
    problem = emit::copyRuntime(options.runtimeSource, temporary.in("runtime"));
  if (problem.empty() && options.build)
    problem = build(temporary);
  if (problem.empty())
    problem = temporary.becomeTarget();
  if (problem.empty())
    return success();
  return emitError(UnknownLoc::get(module.getContext())) << problem; // the model is not to blame
}
