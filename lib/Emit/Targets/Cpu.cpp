//===- Cpu.cpp - programs for the target "cpu" ------------------------------------------------===//

#include "lib/Emit/EmitC/KernelsToEmitC.h"
#include "lib/Emit/Targets/TargetEmitter.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace partita;
using namespace partita::emit;
using namespace partita::rt;

namespace {

class CpuConverter final : public Converter {
public:
  explicit CpuConverter(MLIRContext *context) : Converter(context, *Target::find("cpu")) {}

protected:
  Value createStream(Location) override { return {}; }
  StringRef controlPrefix() const override { return "&rank."; }

  /// Emits `static const` within the function.
  void emit(TableOp op) override {
    std::string name = "table" + std::to_string(tables++);
    Type element = cast<DenseElementsAttr>(op.getValue()).getElementType();
    verbatim(op.getLoc(), "static const " + cppName(element).str() + " " + name + "[] = {{" +
                              elementsText(op) + "};");
    values[op.getBuffer()] =
        emitc::LiteralOp::create(b, op.getLoc(), pointerType(op.getBuffer(), true), name);
  }
  void emit(ReportOp op) override {
    std::string line = "rank.report." + op.getField().str() + " = ";
    SmallVector<Value> operands = {mapped(op.getValue())};
    if (op.getDivisor()) {
      line += "*{} / *{};";
      operands.push_back(mapped(op.getDivisor()));
    } else {
      line += op.getField() == "tokenCount" ? "int64_t(*{});" : "*{};";
    }
    verbatim(op.getLoc(), line, operands);
  }
  void emit(IotaOp op) override {
    std::string type = cppName(cast<BufferType>(op.getDst().getType()).getElement()).str();
    verbatim(op.getLoc(), llvm::formatv("for (int64_t i = 0; i < {0}; ++i)", op.getN()).str());
    verbatim(op.getLoc(),
             "  {}[i] = " + type + "(" + doubleLiteral(op.getStart().convertToDouble()) + " + " +
                 doubleLiteral(op.getStep().convertToDouble()) + " * double(i));",
             {mapped(op.getDst())});
  }
  void emit(CountLabelsOp op) override {
    verbatim(op.getLoc(),
             llvm::formatv("*{{} = float(countLabels({{}, {0}, {1}));", op.getN(),
                           int64_t(op.getIgnore()))
                 .str(),
             {mapped(op.getCount()), mapped(op.getLabels())});
  }
  void emit(StepNumberOp op) override {
    verbatim(op.getLoc(), "*{} = float(rank.update);", {mapped(op.getNumber())});
  }
  void emit(RandomKeyOp op) override {
    verbatim(op.getLoc(), "*{} = int64_t(stepKey(rank.seed, rank.step));", {mapped(op.getKey())});
  }
  void setNumber(Location loc, Value numbers, const std::string &value, int64_t at) override {
    verbatim(loc, (at ? "{}[" + std::to_string(at) + "] = " : "*{} = ") + value + ";",
             {mapped(numbers)});
  }
};

class CpuEmitter final : public TargetEmitter {
public:
  StringRef getTargetName() const override { return "cpu"; }
  std::unique_ptr<Converter> createConverter(MLIRContext *context) const override {
    return std::make_unique<CpuConverter>(context);
  }
  void convertKernels(ModuleOp module) const override { convertKernelsToLoops(module); }

  StringRef getSourceFile() const override { return "model.cpp"; }
  StringRef getPrelude() const override {
    return "#include <partita_rt/partita_rt.h>\n\nusing namespace partita_rt;\n";
  }
  void printMakefile(const EmitOptions &options, raw_ostream &os) const override;

  StringRef getCompiler() const override { return "g++"; }
  std::string findObstacle(const EmitOptions &options) const override {
    std::string archive = options.runtimeLibrary + "/libpartita_rt_cpu.a";
    return llvm::sys::fs::exists(archive)
               ? ""
               : "the runtime " + archive + " is not there; build the target partita_rt";
  }
};

void CpuEmitter::printMakefile(const EmitOptions &options, raw_ostream &os) const {
  os << "# Builds " << options.program
     << ". The runtime is found through these two, which may be set on the command line.\n"
     << "PARTITA_RT_INCLUDE ?= " << makeText(options.runtimeInclude) << "\n"
     << "PARTITA_RT_LIB ?= " << makeText(options.runtimeLibrary) << "\n\n"
     << "CXX = g++\n"
     // Without contraction an op has the same bits in whatever loop it is, so stages of a pipeline
     // compute what one rank does. These loops wait for memory, not for arithmetic.
     << "CXXFLAGS = -std=c++17 -O3 -Wall -Wextra -fno-math-errno -ffp-contract=off -march=native "
        "-mprefer-vector-width=512\n"
     // A machine without MPI, or a runtime that was built without it, makes a program whose ranks are
     // threads, or processes that reach each other over TCP.
     << "MPI_LIBS := $(shell test -f '$(PARTITA_RT_LIB)/libpartita_rt_mpi.a' && mpicxx --showme:link "
        "2> /dev/null)\n"
     << "WITH_MPI = -Wl,--whole-archive '$(PARTITA_RT_LIB)/libpartita_rt_mpi.a' "
        "-Wl,--no-whole-archive\n\n"
     << options.program << ": model.cpp\n"
     << "\t$(CXX) $(CXXFLAGS) -I'$(PARTITA_RT_INCLUDE)' -o $@ model.cpp "
        "$(if $(MPI_LIBS),$(WITH_MPI)) '$(PARTITA_RT_LIB)/libpartita_rt_cpu.a' "
        "-lopenblas $(MPI_LIBS) -lpthread\n\n"
     << "clean:\n\trm -f " << options.program << "\n\n.PHONY: clean\n";
}

} // namespace

const TargetEmitter &emit::cpuEmitter() {
  static const CpuEmitter emitter;
  return emitter;
}
