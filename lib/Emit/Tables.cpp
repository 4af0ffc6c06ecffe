//===- Tables.cpp - prints the constant tables of a program -----------------------------------===//

#include "lib/Emit/Tables.h"
#include "dialects/Amp/Amp.h"
#include "dialects/Par/Placement.h"
#include "dialects/Pipe/Pipe.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Roles.h"
#include "dialects/Train/Tensors.h"
#include "dialects/Train/Train.h"
#include "lib/Emit/StageTables.h"
#include "lib/Emit/Topology.h"
#include "partita/Analysis/Flops.h"
#include "partita/Support/Version.h"
#include "runtime/include/partita_rt/fingerprint.h"
#include "runtime/include/partita_rt/state_names.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace mlir;
using namespace partita;
using namespace partita::emit;

namespace {

class TablePrinter {
public:
  TablePrinter(ModuleOp module, const EmitOptions &options, llvm::raw_ostream &os)
      : module(module), options(options), os(os), stages(pipe::stagesOf(module)),
        mesh(par::MeshAttr::of(module)), topology(module) {}

  LogicalResult print() {
    for (ModuleOp stage : stages)
      if (failed(check(stage)))
        return failure();
    programRows("Axis", "Mesh", topology.axes());
    programRows("Group", "Groups", topology.groups());
    programRows("Channel", "Channels", topology.channels());
    printInputs();
    printModelFiles();
    if (failed(printParameters()) || failed(printStates()))
      return failure();
    printOutputs();
    if (failed(printDefaults()))
      return failure();
    std::string list;
    for (auto [number, stage] : llvm::enumerate(stages)) {
      std::string space = stageSpace(stage);
      if (!space.empty())
        os << "namespace " << space << " {\n\n";
      printStageTables(stage, os);
      if (!space.empty())
        os << "} // namespace " << space << "\n\n";
      list += (number ? ", " : "") + (space.empty() ? "" : space + "::") + "stage()";
    }
    os << "static const Stage kStages[] = {" << list << "};\n\n";
    printProgram();
    return success();
  }

private:
  static LogicalResult check(ModuleOp stage) {
    if (!required<rt::ProgramAttr>(stage, rt::RtDialect::kProgram) ||
        !required<IntegerAttr>(stage, rt::RtDialect::kArenaBytes) ||
        !required<IntegerAttr>(stage, rt::RtDialect::kPersistentBytes))
      return failure();
    if (!stage.getOps<train::ParameterOp>().empty() &&
        !train::lookup(stage, train::EntryPoint::Init))
      return stage.emitError()
             << "has parameters and no entry point '" << train::nameOf(train::EntryPoint::Init)
             << "' that fills them; the pass make-init makes it of a module before phase 'optimize'";
    return success();
  }

  bool isOfStages() const { return stages.front() != module; }

  /// Prints a table of the program and notes it for program().
  void programRows(StringRef type, StringRef name, ArrayRef<std::string> list) {
    if (!printRows(type, name, list, os))
      return;
    std::string member = name.str();
    member[0] = llvm::toLower(member[0]);
    members.push_back({member, ("k" + name).str()});
  }

  /// Returns the axis's number; types only name axes of the mesh.
  int64_t numberOf(StringAttr axis) {
    return pipe::axisNumber(stages.front(),
                            llvm::find(mesh.getAxes(), axis) - mesh.getAxes().begin());
  }

  static std::string blocksText(const par::Blocks &blocks) {
    if (blocks == 1)
      return {};
    std::string text = ", " + std::to_string(blocks.count);
    if (blocks.mirrored)
      return text + ", {}, true";
    if (blocks.sizes.empty())
      return text;
    auto sizes = llvm::map_range(blocks.sizes, [](int64_t size) { return std::to_string(size); });
    return text + ", {" + llvm::join(sizes, ", ") + "}";
  }

  std::string splitsText(RankedTensorType type) {
    SmallVector<std::string> splits;
    for (auto [dim, axes] : llvm::enumerate(par::Layout::of(type).splits))
      for (const par::AxisSplit &split : axes)
        splits.push_back("{" + std::to_string(dim) + ", " + std::to_string(numberOf(split.axis)) +
                         blocksText(split.blocks) + "}");
    for (StringAttr axis : par::Layout::of(type).flat)
      splits.push_back("{kFlat, " + std::to_string(numberOf(axis)) + "}");
    return "{" + llvm::join(splits, ", ") + "}";
  }

  /// Returns "global shape, local shape, splits".
  std::string placedText(RankedTensorType type) {
    return shapeText(par::fullType(type).getShape()) + ", " + shapeText(type.getShape()) + ", " +
           splitsText(type);
  }

  /// Returns the members of an Input that differ from their defaults.
  static std::string restText(int64_t filler, bool batched) {
    std::string text = filler != 0 || !batched ? ", " + std::to_string(filler) : "";
    return batched ? text : text + ", false";
  }

  /// Returns the inputs, which all stages' functions share. What an input indexes is known on the
  /// stage that reads it.
  SmallVector<rt::InputAttr> inputs() {
    SmallVector<rt::InputAttr> list;
    for (ModuleOp stage : stages)
      for (auto [i, input] :
           llvm::enumerate(rt::elementsOf<rt::InputAttr>(rt::ProgramAttr::of(stage).getInputs()))) {
        if (i == list.size()) {
          list.push_back(input);
          continue;
        }
        int64_t known = list[i].getVocabulary(), here = input.getVocabulary();
        list[i] = rt::InputAttr::get(input.getContext(), input.getName(), input.getRole(),
                                     input.getType(), input.getBatched(),
                                     input.getFiller() ? input.getFiller() : list[i].getFiller(),
                                     known && here ? std::min(known, here) : std::max(known, here));
      }
    return list;
  }

  void printInputs() {
    programRows("Input", "Inputs", llvm::map_to_vector(inputs(), [&](rt::InputAttr input) {
                  StringRef kind =
                      train::findRole(input.getRole())->runtime; // verified by InputAttr
                  RankedTensorType type = input.getType();
                  return "{" + rt::stringLiteral(input.getName()) + ", InputRole::" + kind.str() +
                         ", " + rt::dtypeName(type.getElementType()) + ", " + placedText(type) +
                         ", " + std::to_string(input.getVocabulary()) +
                         restText(input.getFiller(), input.getBatched()) + "}";
                }));
  }

  void printModelFiles() {
    SmallVector<std::string> list;
    for (const KnownFile &file : knownFiles(module))
      list.push_back("{" + rt::stringLiteral(file.name) + ", " + std::to_string(file.bytes) +
                     ", 0x" + file.fingerprint + "}");
    programRows("ModelFile", "ModelFiles", list);
  }

  bool isDecayed(StringRef name) {
    return llvm::none_of(stages, [&](ModuleOp stage) {
      auto undecayed = rt::elementsOf<FlatSymbolRefAttr>(rt::ProgramAttr::of(stage).getUndecayed());
      return llvm::any_of(undecayed,
                          [&](FlatSymbolRefAttr symbol) { return symbol.getValue() == name; });
    });
  }

  /// A parameter or state, and the stages that have it.
  template <typename Op> struct Held {
    Op op;
    SmallVector<int64_t> stages;
  };

  /// Returns symbols in the order of the program's tables, which `pipe-agree` noted if there are
  /// several stages.
  template <typename Op> SmallVector<Held<Op>> held(StringRef noted) {
    llvm::MapVector<StringRef, Held<Op>> all;
    if (auto list = stages.front()->template getAttrOfType<ArrayAttr>(noted))
      for (auto symbol : rt::elementsOf<FlatSymbolRefAttr>(list))
        all.insert({symbol.getValue(), {}});
    for (auto [number, stage] : llvm::enumerate(stages))
      for (auto op : stage.template getOps<Op>()) {
        Held<Op> &one = all[op.getSymName()];
        one.op = one.op ? one.op : op;
        one.stages.push_back(static_cast<int64_t>(number));
      }
    SmallVector<Held<Op>> result;
    for (auto &[name, one] : all)
      if (one.op)
        result.push_back(std::move(one));
    return result;
  }

  /// Returns the stages; "" stands for all.
  std::string stagesText(ArrayRef<int64_t> some) const {
    return some.size() == stages.size() ? "" : shapeText(some);
  }

  /// Checks that ranks which the type does not split have the same values: the tables say no more,
  /// and both checkpoints and --check-replicas go by them.
  static LogicalResult checkReplicas(Operation *symbol, RankedTensorType type) {
    par::Layout layout = par::Layout::of(type);
    if (layout.partial.empty() && layout.max.empty())
      return success();
    return symbol->emitOpError() << "is kept as " << type
                                 << ", whose values differ between ranks that it does not split";
  }

  LogicalResult printParameters() {
    SmallVector<std::string> list;
    for (auto &[parameter, some] : held<train::ParameterOp>(pipe::PipeDialect::kParameters)) {
      auto type = cast<RankedTensorType>(
          parameter->getAttrOfType<TypeAttr>(rt::RtDialect::kLocal).getValue());
      if (!isa<FloatType>(type.getElementType()))
        return parameter.emitOpError()
               << "is of type " << type << "; the runtime keeps parameters in floats";
      if (failed(checkReplicas(parameter, type)))
        return failure();
      indexOf[parameter.getSymName()] = list.size();
      list.push_back("{" + rt::stringLiteral(parameter.getModelName()) + ", " + placedText(type) +
                     ", " + std::to_string(offsetOf(parameter)) + ", " +
                     (parameter.getFrozen() ? "false" : "true") + ", " +
                     (isDecayed(parameter.getSymName()) ? "true" : "false") +
                     parameterTail(parameter, type, stagesText(some)) + "}");
    }
    programRows("Parameter", "Parameters", list);
    return success();
  }

  static int64_t offsetOf(Operation *symbol) {
    return symbol->getAttrOfType<rt::AtAttr>(rt::RtDialect::kAt).getOffset();
  }

  /// Returns the home and type unless they are the default: device and float32. `isInFull`: fields
  /// follow, so neither is left out.
  static std::string homeText(Operation *symbol, RankedTensorType type, bool isInFull = false) {
    bool onHost =
        symbol->getAttrOfType<rt::AtAttr>(rt::RtDialect::kAt).getSpace() == rt::Space::Host;
    if (!type.getElementType().isF32() || isInFull)
      return (onHost ? ", Home::Host, " : ", Home::Device, ") +
             rt::dtypeName(type.getElementType());
    return onHost ? ", Home::Host" : "";
  }

  /// Returns a parameter's last fields, without trailing defaults.
  static std::string parameterTail(train::ParameterOp parameter, RankedTensorType type,
                                   const std::string &some) {
    train::Folded folded = train::tensorsOf(parameter).front().folded;
    std::string text = folded == train::Folded::No ? ""
                       : train::isMoved(folded)    ? ", Folded::Moved"
                                                   : ", Folded::Computed";
    if (!text.empty() || !some.empty())
      text = ", " + (some.empty() ? "{}" : some) + text;
    return homeText(parameter, type, /*isInFull=*/!text.empty()) + text;
  }

  /// Returns the last fields of a state that is no parameter's, without trailing defaults.
  static std::string scalarTail(train::StateOp state, RankedTensorType type) {
    bool countsSkipped = state.getSymName() == amp::AmpDialect::kSkipped;
    double initial = state.getValue().convertToDouble();
    std::string text = initial == 0 ? "" : ", " + rt::doubleLiteral(initial);
    if (!text.empty() || type.getRank() > 0)
      text = ", " + shapeText(type.getShape()) + text;
    return text.empty() && !countsSkipped ? "" : (countsSkipped ? ", true" : ", false") + text;
  }

  /// Of ranks that have a row each; 0 for other states.
  static int64_t rowsOf(train::StateOp state) {
    return state.getKind() == StringRef(partita_rt::kWorkerError) ? state.getType().getDimSize(0)
                                                                  : 0;
  }

  LogicalResult printStates() {
    SmallVector<std::string> moments, scalars;
    for (auto &[state, some] : held<train::StateOp>(pipe::PipeDialect::kParameterStates)) {
      auto type =
          cast<RankedTensorType>(state->getAttrOfType<TypeAttr>(rt::RtDialect::kLocal).getValue());
      if (failed(checkReplicas(state, type)))
        return failure();
      std::string name = rt::stringLiteral(state.getSymName()),
                  offset = std::to_string(offsetOf(state));
      if (auto of = state.getOfAttr()) {
        auto parameter = indexOf.find(of.getValue());
        if (parameter == indexOf.end())
          return state.emitOpError() << "belongs to " << of << ", which is not a parameter";
        moments.push_back("{" + name + ", " + std::to_string(parameter->second) + ", " +
                          shapeText(type.getShape()) + ", " + splitsText(type) + ", " + offset +
                          homeText(state, type, /*isInFull=*/rowsOf(state) > 0) +
                          (rowsOf(state) ? ", " + std::to_string(rowsOf(state)) : "") + "}");
      } else if (type == state.getType()) {
        scalars.push_back("{" + name + ", " + rt::dtypeName(type.getElementType()) + ", " + offset +
                          scalarTail(state, type) + "}");
      } else {
        return state.emitOpError() << "of type " << type
                                   << " belongs to no parameter; only one that no rank splits may";
      }
    }
    programRows("OptimizerState", "OptimizerStates", moments);
    programRows("ScalarState", "ScalarStates", scalars);
    return success();
  }

  /// Prints each output of the first stage that has it.
  void printOutputs() {
    SmallVector<std::string> list;
    llvm::StringSet<> seen;
    for (auto [number, stage] : llvm::enumerate(stages))
      for (auto output : rt::elementsOf<rt::OutputAttr>(rt::ProgramAttr::of(stage).getOutputs())) {
        RankedTensorType type = output.getType();
        if (!seen.insert(output.getName()).second && isOfStages())
          continue;
        list.push_back("{" + rt::stringLiteral(output.getName()) + ", " +
                       rt::dtypeName(type.getElementType()) + ", " + placedText(type) + ", " +
                       std::to_string(output.getOffset()) +
                       (isOfStages() ? ", {" + std::to_string(number) + "}}" : "}"));
      }
    programRows("Output", "Outputs", list);
  }

  LogicalResult printDefaults() {
    Attribute attribute = module->getAttr(kRunDefaultsAttr);
    if (!attribute)
      return success();
    auto pairs = dyn_cast<ArrayAttr>(attribute);
    SmallVector<std::string> list;
    for (Attribute each : pairs ? pairs.getValue() : ArrayRef(attribute)) {
      auto pair = dyn_cast<ArrayAttr>(each);
      bool isPair = pair && pair.size() == 2 && llvm::all_of(pair, llvm::IsaPred<StringAttr>);
      if (!isPair)
        return module.emitError()
               << kRunDefaultsAttr << " holds " << each
               << ", which is not an option with its value, [\"--log\", \"FILE\"]";
      list.push_back("{" + rt::stringLiteral(cast<StringAttr>(pair[0]).getValue()) + ", " +
                     rt::stringLiteral(cast<StringAttr>(pair[1]).getValue()) + "}");
    }
    programRows("RunDefault", "Defaults", list);
    return success();
  }

  /// Returns the optimizer of the first stage that has one. All stages have the same, except those
  /// that train nothing.
  StringRef optimizer() {
    for (ModuleOp stage : stages)
      if (StringRef name = rt::ProgramAttr::of(stage).getOptimizer(); name != "none")
        return name;
    return "none";
  }

  void printProgram() {
    auto program = rt::ProgramAttr::of(stages.front());
    os << "static Program program() {\n  Program p;\n";
    os << "  p.name = " << rt::stringLiteral(options.program) << ";\n";
    os << "  p.compiler = " << rt::stringLiteral(versionText()) << ";\n";
    os << "  p.optimizer = " << rt::stringLiteral(optimizer()) << ";\n";
    if (llvm::any_of(
            held<train::ParameterOp>(pipe::PipeDialect::kParameters),
            [](Held<train::ParameterOp> &each) { return each.op.getInitial().has_value(); }))
      os << "  p.modelFolder = " << rt::stringLiteral(options.modelFolder) << ";\n";
    if (module->hasAttr(train::TrainDialect::
                            kModel)) // of its own a module has no file that a run might replace
      os << "  p.model = " << rt::stringLiteral(options.model) << ";\n";
    for (auto &[member, table] : members)
      os << "  p." << member << " = " << table << ";\n";
    os << "  p.stages = kStages;\n";
    if (isOfStages())
      os << "  p.stageAxis = " << rt::axisName(pipe::PipeDialect::kAxisName) << ";\n";
    os << "  p.accumulate = " << program.getAccumulate() << ";\n";
    if (double flops = modelFlops(notedWork(module));
        flops > 0 && std::isfinite(flops) &&
        train::lookup(stages.front(), train::EntryPoint::TrainStep))
      os << "  p.modelFlops = " << llvm::formatv("{0:f1}", flops) << ";\n";
    NamedAttrList hyper;
    for (ModuleOp stage : stages)
      if (DictionaryAttr read = rt::ProgramAttr::of(stage).getHyper())
        for (NamedAttribute field : read)
          hyper.set(field.getName(), field.getValue());
    for (NamedAttribute field : hyper)
      os << "  p.hyper." << field.getName().getValue() << " = "
         << rt::doubleLiteral(cast<FloatAttr>(field.getValue()).getValueAsDouble()) << ";\n";
    for (NamedAttribute field : hyper) // the command line may set what updates read
      if (field.getName() != "learningRate")
        os << "  p.reads." << field.getName().getValue() << " = true;\n";
    if (StringRef schedule = program.getLrSchedule(); !schedule.empty() && schedule != "constant")
      os << "  p.lrSchedule = " << rt::stringLiteral(schedule) << ";\n";
    if (auto end = module->getAttrOfType<IntegerAttr>(train::TrainDialect::kDocumentEnd))
      os << "  p.documentEnd = " << end.getInt() << ";\n";
    if (optimizer() != "none")
      os << "  p.exposesGradients = true;\n";
    if (!rt::Target::of(module).queuesWork()) // lower-to-rt has made the calls
      os << "  p.announcesChanges = true;\n";
    if (int64_t least = leastCapability(stages))
      os << "  p.leastCapability = " << least << ";\n";
    os << "  return p;\n}\n\nint main(int argc, char **argv) { return programMain(argc, argv, "
          "program()); }\n";
  }

  ModuleOp module;
  const EmitOptions &options;
  llvm::raw_ostream &os;
  SmallVector<ModuleOp> stages;
  par::MeshAttr mesh;
  Topology topology;
  llvm::StringMap<size_t> indexOf;
  SmallVector<std::pair<std::string, std::string>> members;
};

} // namespace

std::string emit::stageSpace(ModuleOp stage) {
  std::optional<int64_t> number = pipe::stageOf(stage);
  return number ? "stage" + std::to_string(*number) : "";
}

int64_t emit::leastCapability(ArrayRef<ModuleOp> stages) {
  int64_t least = 0;
  for (ModuleOp stage : stages)
    if (auto needed = stage->getAttrOfType<IntegerAttr>(rt::RtDialect::kLeastCapability))
      least = std::max(least, needed.getInt());
  return least;
}

SmallVector<KnownFile> emit::knownFiles(ModuleOp module) {
  return llvm::map_to_vector(train::filesOf(module), [](train::FileAttr file) {
    return KnownFile{file.getName().str(), file.getBytes(),
                     partita_rt::fingerprintText(file.getFingerprint())};
  });
}

LogicalResult emit::printTables(ModuleOp module, const EmitOptions &options,
                                llvm::raw_ostream &os) {
  return TablePrinter(module, options, os).print();
}
