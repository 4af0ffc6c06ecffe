//===- Cuda.cpp - programs for the target "cuda" ----------------------------------------------===//

#include "lib/Emit/CopyRuntime.h"
#include "lib/Emit/Targets/CudaKernels.h"
#include "lib/Emit/Targets/TargetEmitter.h"
#include "partita/Support/TemporaryFolder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include <cstdlib>

using namespace mlir;
using namespace partita;
using namespace partita::emit;
using namespace partita::rt;

namespace {

/// Kernels take the rank's stream first, and numbers stay on the GPU.
class CudaConverter final : public Converter {
public:
  explicit CudaConverter(MLIRContext *context) : Converter(context, *Target::find("cuda")) {}

protected:
  Value createStream(Location loc) override {
    return emitc::LiteralOp::create(b, loc, opaque("const Stream &"), "rank.device->stream");
  }
  StringRef controlPrefix() const override { return "&rank.device->control->"; }

  /// Emits the array before the function.
  void emit(TableOp op) override {
    std::string name = "table" + std::to_string(tables++);
    Type element = cast<DenseElementsAttr>(op.getValue()).getElementType();
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPoint(b.getBlock()->getParentOp());
      while (!isa<ModuleOp>(b.getBlock()->getParentOp()))
        b.setInsertionPoint(b.getBlock()->getParentOp());
      verbatim(op.getLoc(), // text of the module, where braces are not doubled
               "static __device__ const " + cppName(element).str() + " " + name + "[] = {" +
                   elementsText(op) + "};");
    }
    values[op.getBuffer()] = emitc::LiteralOp::create(
        b, op.getLoc(), pointerType(op.getBuffer(), true), "deviceTable(" + name + ")");
  }
  std::string behindTensors(StringRef table) const override {
    return ("static __device__ const TensorTable " + table + "OnDevice(" + table + ");").str();
  }
  void emit(ReportOp op) override {
    SmallVector<Value> numbers = {mapped(op.getValue())};
    if (op.getDivisor())
      numbers.push_back(mapped(op.getDivisor()));
    kernelLine(op.getLoc(),
               "report(&rank.device->report->" + op.getField() + ", {}" +
                   (op.getDivisor() ? ", {});" : ");"),
               numbers);
  }
  void emit(IotaOp op) override {
    kernelLine(op.getLoc(),
               "iota({}, " + doubleLiteral(op.getStart().convertToDouble()) + ", " +
                   doubleLiteral(op.getStep().convertToDouble()) + ", " + Twine(op.getN()) + ");",
               {mapped(op.getDst())});
  }
  void emit(CountLabelsOp op) override {
    kernelLine(op.getLoc(),
               "countLabels({}, {}, " + Twine(op.getN()) + ", " +
                   Twine(static_cast<int64_t>(op.getIgnore())) + ");",
               {mapped(op.getCount()), mapped(op.getLabels())});
  }
  void emit(StepNumberOp op) override {
    kernelLine(op.getLoc(), "stepNumber({}, rank.device->control);", {mapped(op.getNumber())});
  }
  void emit(RandomKeyOp op) override {
    kernelLine(op.getLoc(), "stepKey({}, rank.device->control);", {mapped(op.getKey())});
  }
  void setNumber(Location loc, Value numbers, const std::string &value, int64_t at) override {
    kernelLine(loc, "setScalar({}" + (at ? " + " + std::to_string(at) : "") + ", " + value + ");",
               {mapped(numbers)});
  }
};

class CudaEmitter final : public TargetEmitter {
public:
  StringRef getTargetName() const override { return "cuda"; }
  std::unique_ptr<Converter> createConverter(MLIRContext *context) const override {
    return std::make_unique<CudaConverter>(context);
  }
  void convertKernels(ModuleOp module) const override { convertKernelsToCuda(module); }
  bool keepsTablesOnDevice() const override { return true; }

  StringRef getSourceFile() const override { return "model.cu"; }
  StringRef getPrelude() const override {
    return "#include <partita_rt/partita_rt_cuda.h>\n\nusing namespace partita_rt;\n"
           "using namespace partita_rt::cuda;\n";
  }
  void printMakefile(const EmitOptions &options, raw_ostream &os) const override;
  std::string addFiles(const EmitOptions &options, const TemporaryFolder &folder) const override {
    return options.withRuntime ? copyRuntime(options.runtimeSource, folder.in("runtime")) : "";
  }
  bool owns(StringRef path) const override {
    StringRef name = llvm::sys::path::filename(path);
    return TargetEmitter::owns(path) || name == "matmuls.json" ||
           (name == "runtime" && llvm::sys::fs::exists(path + "/cuda/nvcc.mk"));
  }

  StringRef getCompiler() const override { return "nvcc"; }
  /// Builds need nvcc; the runtime's library is built with the first program.
  std::string findObstacle(const EmitOptions &) const override {
    std::string problem = missingNvcc();
    return problem.empty() ? ""
                           : "a program for --target cuda is built by nvcc, and " + problem +
                                 "; --no-build writes the program, and 'make' in its folder builds "
                                 "it where there is one";
  }

private:
  /// Returns why a program's Makefile would not find nvcc (runtime/cuda/nvcc.mk), or "".
  static std::string missingNvcc();
};

/// Requires only nvcc: the runtime's Makefile builds the libraries to link with from source.
void CudaEmitter::printMakefile(const EmitOptions &options, raw_ostream &os) const {
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
     << "FLAGS = $(NVCCFLAGS) -I'$(PARTITA_RT)/include'\n\n"
     << options.program << ": model.cu runtime\n"
     << "\t$(NVCC) $(FLAGS) -o $@ model.cu '$(RUNTIME)' "
        "$(CUDA_LIBS)\n\n"
     << "# The emitted source alone.\n"
     << "model.o: model.cu\n"
     << "\t$(NVCC) $(FLAGS) -c -o $@ model.cu\n\n"
     << "runtime:\n"
     << "\t+$(MAKE) -s -C '$(PARTITA_RT)/cuda' OUT='$(PARTITA_RT_LIB)' ARCH=$(ARCH)\n\n"
     << "clean:\n\trm -f " << options.program << " model.o\n\n.PHONY: clean runtime\n";
}

std::string CudaEmitter::missingNvcc() {
  if (std::getenv("NVCC")) // make reports whether it works
    return {};
  StringRef home = std::getenv("CUDA_HOME") ? std::getenv("CUDA_HOME") : "";
  if (!home.empty())
    return llvm::sys::fs::can_execute(home + "/bin/nvcc")
               ? ""
               : "CUDA_HOME is " + home.str() + ", which has no bin/nvcc";
  if (llvm::sys::findProgramByName("nvcc") ||
      llvm::sys::fs::can_execute("/usr/local/cuda/bin/nvcc"))
    return {};
  return "nvcc is neither in the PATH nor in /usr/local/cuda, and CUDA_HOME is not set";
}

} // namespace

const TargetEmitter &emit::cudaEmitter() {
  static const CudaEmitter emitter;
  return emitter;
}
