//===- Tables.cpp - the constant tables of a program ------------------------------------------===//

#include "lib/Emit/Tables.h"
#include "dialects/Par/Placement.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Tensors.h"
#include "dialects/Train/Train.h"
#include "partita/Analysis/Flops.h"
#include "partita/Support/Version.h"
#include "runtime/include/partita_rt/fingerprint.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace mlir;
using namespace partita;
using namespace partita::emit;

namespace {

std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "{";
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(shape, stream);
  return text + "}";
}

class TablePrinter {
public:
  TablePrinter(ModuleOp module, const EmitOptions &options, llvm::raw_ostream &os)
      : module(module), options(options), os(os), mesh(par::MeshAttr::of(module)) {}

  LogicalResult print() {
    auto program = required<rt::ProgramAttr>(module, rt::RtDialect::kProgram);
    auto arena = required<IntegerAttr>(module, rt::RtDialect::kArenaBytes);
    auto persistent = required<IntegerAttr>(module, rt::RtDialect::kPersistentBytes);
    if (!program || !arena || !persistent)
      return failure();
    if (!module.getOps<train::ParameterOp>().empty() &&
        !train::lookup(module, train::EntryPoint::Init))
      return module.emitError()
             << "has parameters and no @init that fills them; the pass make-init "
                "makes it of a module before phase 'optimize'";
    printMesh();
    printGroups(program.getGathersAhead());
    printInputs(program.getInputs());
    printModelFiles();
    undecayed = program.getUndecayed();
    if (failed(printParameters()) || failed(printStates()))
      return failure();
    printOutputs(program.getOutputs());
    printCensus(program.getCensus());
    if (failed(printDefaults()))
      return failure();
    printStage(program, arena.getInt(), persistent.getInt());
    printProgram(program);
    return success();
  }

private:
  void printMesh() {
    SmallVector<std::string> list;
    for (auto [axis, size] : llvm::zip(mesh.getAxes(), mesh.getSizes()))
      list.push_back("{" + rt::stringLiteral(axis.getValue()) + ", " + std::to_string(size) + "}");
    programRows("Axis", "Mesh", list);
  }

  /// One row for each axis; then one more of those over which gathers begin ahead of their use. No
  /// table if there are none of these.
  void printGroups(ArrayAttr gathersAhead) {
    SmallVector<StringAttr> axes(mesh.getAxes());
    llvm::append_range(axes, rt::elementsOf<StringAttr>(gathersAhead));
    if (axes.size() == mesh.getAxes().size())
      return;
    programRows("Group", "Groups", llvm::map_to_vector(axes, [](StringAttr axis) {
                  return "{" + rt::stringLiteral(axis.getValue()) + ", {" +
                         rt::axisName(axis.getValue()) + "}}";
                }));
  }

  /// `static const Type kName[] = {rows};`
  /// Is there a table?
  bool rows(StringRef type, StringRef name, ArrayRef<std::string> list) {
    if (list.empty())
      return false;
    os << "static const " << type << " k" << name << "[] = {\n";
    for (const std::string &row : list)
      os << "    " << row << ",\n";
    os << "};\n\n";
    return true;
  }

  /// The same of a table of the program, noted for program().
  void programRows(StringRef type, StringRef name, ArrayRef<std::string> list) {
    if (!rows(type, name, list))
      return;
    std::string member = name.str();
    member[0] = llvm::toLower(member[0]);
    members.push_back({member, ("k" + name).str()});
  }

  /// The mesh axis's number; the program's types name axes of its mesh alone.
  int64_t numberOf(StringAttr axis) {
    return llvm::find(mesh.getAxes(), axis) - mesh.getAxes().begin();
  }

  static std::string blocksText(const par::Blocks &blocks) {
    if (blocks == 1)
      return {};
    std::string text = ", " + std::to_string(blocks.count);
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

  /// "global shape, local shape, splits".
  std::string placedText(RankedTensorType type) {
    return shapeText(par::wholeType(type).getShape()) + ", " + shapeText(type.getShape()) + ", " +
           splitsText(type);
  }

  /// Members of an Input that have other values than usual.
  static std::string restText(int64_t filler, bool batched) {
    std::string text = filler != 0 || !batched ? ", " + std::to_string(filler) : "";
    return batched ? text : text + ", false";
  }

  void printInputs(ArrayAttr inputs) {
    programRows("Input", "Inputs",
         llvm::map_to_vector(rt::elementsOf<rt::InputAttr>(inputs), [&](rt::InputAttr input) {
           StringRef kind = llvm::StringSwitch<StringRef>(input.getRole())
                                .Case("ids", "TokenIds")
                                .Case("labels", "Labels")
                                .Case("targets", "Targets")
                                .Case("positions", "PositionIds")
                                .Case("ones", "Ones")
                                .Case("zeros", "Zeros")
                                .Case("shifted", "Shifted")
                                .Default("Data");
           RankedTensorType type = input.getType();
           return "{" + rt::stringLiteral(input.getName()) + ", InputRole::" + kind.str() + ", " +
                  rt::dtypeName(type.getElementType()) + ", " + placedText(type) + ", " +
                  std::to_string(input.getVocabulary()) +
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
    return llvm::none_of(rt::elementsOf<FlatSymbolRefAttr>(undecayed),
                         [&](FlatSymbolRefAttr symbol) { return symbol.getValue() == name; });
  }

  LogicalResult printParameters() {
    SmallVector<std::string> list;
    for (auto parameter : module.getOps<train::ParameterOp>()) {
      auto type = cast<RankedTensorType>(
          parameter->getAttrOfType<TypeAttr>(rt::RtDialect::kLocal).getValue());
      if (!isa<FloatType>(type.getElementType()))
        return parameter.emitOpError()
               << "is of type " << type << "; the CPU target keeps parameters in floats";
      indexOf[parameter.getSymName()] = list.size();
      list.push_back("{" + rt::stringLiteral(parameter.getModelName()) + ", " + placedText(type) +
                     ", " + std::to_string(offsetOf(parameter)) + ", " +
                     (parameter.getFrozen() ? "false" : "true") + ", " +
                     (isDecayed(parameter.getSymName()) ? "true" : "false") +
                     parameterTail(parameter, type) + "}");
    }
    programRows("Parameter", "Parameters", list);
    return success();
  }

  static int64_t offsetOf(Operation *symbol) {
    return symbol->getAttrOfType<rt::AtAttr>(rt::RtDialect::kAt).getOffset();
  }

  /// What lives on the host says so, and what is no float; `isInFull` where fields follow.
  static std::string homeText(Operation *symbol, RankedTensorType type, bool isInFull = false) {
    bool onHost =
        symbol->getAttrOfType<rt::AtAttr>(rt::RtDialect::kAt).getSpace() == rt::Space::Host;
    if (!type.getElementType().isF32() || isInFull)
      return (onHost ? ", Home::Host, " : ", Home::Device, ") +
             rt::dtypeName(type.getElementType());
    return onHost ? ", Home::Host" : "";
  }

  /// The last fields of a parameter, as far as they are not the default.
  static std::string parameterTail(train::ParameterOp parameter, RankedTensorType type) {
    train::Folded folded = train::tensorsOf(parameter).front().folded;
    llvm::StringRef text = folded == train::Folded::No      ? ""
                           : folded == train::Folded::Moved ? ", {}, Folded::Moved"
                                                            : ", {}, Folded::Computed";
    return homeText(parameter, type, /*isInFull=*/!text.empty()) + text.str();
  }

  LogicalResult printStates() {
    SmallVector<std::string> moments, scalars;
    for (auto state : module.getOps<train::StateOp>()) {
      auto type =
          cast<RankedTensorType>(state->getAttrOfType<TypeAttr>(rt::RtDialect::kLocal).getValue());
      std::string name = rt::stringLiteral(state.getSymName()),
                  offset = std::to_string(offsetOf(state));
      if (auto of = state.getOfAttr()) {
        auto parameter = indexOf.find(of.getValue());
        if (parameter == indexOf.end())
          return state.emitOpError() << "belongs to " << of << ", which is not a parameter";
        moments.push_back("{" + name + ", " + std::to_string(parameter->second) + ", " +
                          shapeText(type.getShape()) + ", " + splitsText(type) + ", " + offset +
                          homeText(state, type) + "}");
      } else if (type.getNumElements() == 1) {
        scalars.push_back("{" + name + ", " + rt::dtypeName(type.getElementType()) + ", " + offset +
                          "}");
      } else {
        return state.emitOpError()
               << "of type " << type << " belongs to no parameter; only a scalar may";
      }
    }
    programRows("OptimizerState", "OptimizerStates", moments);
    programRows("ScalarState", "ScalarStates", scalars);
    return success();
  }

  void printOutputs(ArrayAttr outputs) {
    programRows("Output", "Outputs",
         llvm::map_to_vector(rt::elementsOf<rt::OutputAttr>(outputs), [&](rt::OutputAttr output) {
           RankedTensorType type = output.getType();
           return "{" + rt::stringLiteral(output.getName()) + ", " +
                  rt::dtypeName(type.getElementType()) + ", " + placedText(type) + ", " +
                  std::to_string(output.getOffset()) + "}";
         }));
  }

  void printCensus(ArrayAttr census) {
    SmallVector<std::string> list;
    for (rt::CensusAttr row : rt::elementsOf<rt::CensusAttr>(census))
      if (row.getFunction() == train::nameOf(train::EntryPoint::TrainStep))
        list.push_back(std::string("{CollectiveKind::") +
                       partita_rt::rowOf(row.getKind()).spelling + ", " +
                       rt::stringLiteral(row.getAxis()) + ", " + std::to_string(row.getCalls()) +
                       ", " + std::to_string(row.getBytes()) + ", " +
                       rt::stringLiteral(row.getReason()) + "}");
    hasCensus = rows("CensusEntry", "Census", list);
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
        return module.emitError() << kRunDefaultsAttr << " holds " << each
                                  << ", which is no option with its value, [\"--log\", \"FILE\"]";
      list.push_back("{" + rt::stringLiteral(cast<StringAttr>(pair[0]).getValue()) + ", " +
                     rt::stringLiteral(cast<StringAttr>(pair[1]).getValue()) + "}");
    }
    programRows("RunDefault", "Defaults", list);
    return success();
  }

  /// One stage, for all ranks.
  void printStage(rt::ProgramAttr program, int64_t arena, int64_t persistent) {
    os << "static Stage stage() {\n  Stage s;\n";
    os << "  s.persistentBytes = " << persistent << ";\n  s.arenaBytes = " << arena << ";\n";
    for (auto [name, member] : {std::pair(rt::RtDialect::kHostBytes, "hostBytes"),
                                {rt::RtDialect::kPinnedBytes, "pinnedBytes"},
                                {rt::RtDialect::kForwardArenaBytes, "forwardArenaBytes"},
                                {rt::RtDialect::kScratchBytes, "scratchBytes"}})
      if (auto bytes = module->getAttrOfType<IntegerAttr>(name))
        os << "  s." << member << " = " << bytes.getInt() << ";\n";
    if (hasCensus)
      os << "  s.census = kCensus;\n";
    for (auto [bytes, member] :
         {std::pair(program.getToHost(), "toHost"), {program.getToDevice(), "toDevice"}})
      if (bytes)
        os << "  s.transfers." << member << " = " << bytes << ";\n";
    static constexpr std::pair<train::EntryPoint, StringLiteral> functions[] = {
        {train::EntryPoint::Init, "init"},
        {train::EntryPoint::TrainStep, "trainStep"},
        {train::EntryPoint::EvalStep, "evalStep"},
        {train::EntryPoint::Forward, "forward"}};
    for (auto [entry, field] : functions)
      if (Operation *function = train::lookup(module, entry))
        os << "  s." << field << " = " << SymbolTable::getSymbolName(function).getValue() << ";\n";
    os << "  return s;\n}\n\nstatic const Stage kStages[] = {stage()};\n\n";
  }

  void printProgram(rt::ProgramAttr program) {
    os << "static Program program() {\n  Program p;\n";
    os << "  p.name = " << rt::stringLiteral(options.program) << ";\n";
    os << "  p.compiler = " << rt::stringLiteral(versionText()) << ";\n";
    os << "  p.optimizer = " << rt::stringLiteral(program.getOptimizer()) << ";\n";
    if (llvm::any_of(module.getOps<train::ParameterOp>(), [](train::ParameterOp parameter) {
          return parameter.getInitial().has_value();
        }))
      os << "  p.modelFolder = " << rt::stringLiteral(options.modelFolder) << ";\n";
    if (module->hasAttr("train.model")) // of its own a module has no file that a run might replace
      os << "  p.model = " << rt::stringLiteral(options.model) << ";\n";
    for (auto &[member, table] : members)
      os << "  p." << member << " = " << table << ";\n";
    os << "  p.stages = kStages;\n";
    os << "  p.accumulate = " << program.getAccumulate() << ";\n";
    if (double flops = modelFlops(notedWork(module));
        flops > 0 && std::isfinite(flops) && train::lookup(module, train::EntryPoint::TrainStep))
      os << "  p.modelFlops = " << llvm::formatv("{0:f1}", flops) << ";\n";
    DictionaryAttr read = program.getHyper();
    ArrayRef<NamedAttribute> hyper = read ? read.getValue() : ArrayRef<NamedAttribute>();
    for (NamedAttribute field : hyper)
      os << "  p.hyper." << field.getName().getValue() << " = "
         << rt::doubleLiteral(cast<FloatAttr>(field.getValue()).getValueAsDouble()) << ";\n";
    for (NamedAttribute field : hyper) // the command line may set what the updates read
      if (field.getName() != "learningRate")
        os << "  p.reads." << field.getName().getValue() << " = true;\n";
    if (StringRef schedule = program.getSchedule(); !schedule.empty() && schedule != "constant")
      os << "  p.schedule = " << rt::stringLiteral(schedule) << ";\n";
    if (program.getOptimizer() != "none")
      os << "  p.exposesGradients = true;\n";
    os << "  return p;\n}\n\nint main(int argc, char **argv) { return programMain(argc, argv, "
          "program()); }\n";
  }

  ModuleOp module;
  const EmitOptions &options;
  llvm::raw_ostream &os;
  par::MeshAttr mesh;
  ArrayAttr undecayed;
  llvm::StringMap<size_t> indexOf;
  SmallVector<std::pair<std::string, std::string>> members;
  bool hasCensus = false;
};

} // namespace

SmallVector<KnownFile> emit::knownFiles(ModuleOp module) {
  SmallVector<KnownFile> result;
  auto files = module->getAttrOfType<ArrayAttr>(train::TrainDialect::kFiles);
  if (!files)
    return result;
  for (auto entry : files.getAsRange<DictionaryAttr>()) {
    auto name = dyn_cast_or_null<StringAttr>(entry.get("file"));
    auto bytes = dyn_cast_or_null<IntegerAttr>(entry.get("bytes"));
    auto fingerprint = dyn_cast_or_null<IntegerAttr>(entry.get("fingerprint"));
    if (name && bytes && fingerprint)
      result.push_back({name.getValue().str(), bytes.getInt(),
                        partita_rt::fingerprintText(fingerprint.getInt())});
  }
  return result;
}

LogicalResult emit::printTables(ModuleOp module, const EmitOptions &options,
                                llvm::raw_ostream &os) {
  return TablePrinter(module, options, os).print();
}
