//===- StageTables.cpp - prints the tables of one stage -------------------------------------===//

#include "lib/Emit/StageTables.h"
#include "dialects/Rt/Names.h"
#include "dialects/Rt/Rt.h"
#include "dialects/Train/Train.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace partita;
using namespace partita::emit;

bool emit::printRows(StringRef type, StringRef name, ArrayRef<std::string> list, raw_ostream &os) {
  if (list.empty())
    return false;
  os << "static const " << type << " k" << name << "[] = {\n";
  for (const std::string &row : list)
    os << "    " << row << ",\n";
  os << "};\n\n";
  return true;
}

static bool printMessages(ArrayAttr messages, raw_ostream &os) {
  SmallVector<std::string> list;
  for (rt::MessageAttr row : rt::elementsOf<rt::MessageAttr>(messages))
    if (row.getFunction() == train::nameOf(train::EntryPoint::TrainStep))
      list.push_back(llvm::formatv("{{{0}, {1}, {2}, {3}}", rt::channelName(row.getChannel()),
                                   row.getMessages(), row.getBytes(),
                                   rt::stringLiteral(row.getReason()))
                         .str());
  return printRows("MessageEntry", "Messages", list, os);
}

static std::string stepsOf(rt::CensusAttr row) {
  par::ExactStepsAttr exact = row.getExact();
  return exact ? llvm::formatv(", {{Steps::{0}, {{{1}, {2}}}",
                               row.getSteps() == partita_rt::Steps::Exact ? "Exact" : "Others",
                               exact.getUntil(), exact.getDoubling())
                     .str()
               : "";
}

static bool printZeros(ModuleOp module, raw_ostream &os) {
  SmallVector<std::string> list;
  for (auto parameter : module.getOps<train::ParameterOp>()) {
    auto at = parameter->getAttrOfType<rt::AtAttr>(rt::RtDialect::kAt);
    auto local = parameter->getAttrOfType<TypeAttr>(rt::RtDialect::kLocal);
    if (!parameter->hasAttr(rt::RtDialect::kPaddedRows) || !at || !local)
      continue;
    auto type = cast<RankedTensorType>(local.getValue());
    int64_t bytes = type.getNumElements() * rt::elementBytes(type.getElementType());
    int64_t zeros = rt::bytesInMemory(parameter, type) - bytes;
    list.push_back(llvm::formatv("{{{0}, {1}}", at.getOffset() + bytes, zeros).str());
  }
  return printRows("ZerosEntry", "Zeros", list, os);
}

static bool printCensus(rt::ProgramAttr program, raw_ostream &os) {
  SmallVector<std::string> list;
  for (rt::CensusAttr row : rt::elementsOf<rt::CensusAttr>(program.getCensus()))
    if (row.getFunction() == train::nameOf(train::EntryPoint::TrainStep))
      list.push_back(
          std::string("{CollectiveKind::") + partita_rt::rowOf(row.getKind()).spelling + ", " +
          rt::stringLiteral(program.getCommunicator(row.getCommunicator()).getCounted()) + ", " +
          std::to_string(row.getCalls()) + ", " + std::to_string(row.getBytes()) + ", " +
          rt::stringLiteral(row.getReason()) + stepsOf(row) + "}");
  return printRows("CensusEntry", "Census", list, os);
}

void emit::printStageTables(ModuleOp module, raw_ostream &os) {
  auto program = rt::ProgramAttr::of(module);
  auto sizeOf = [&](StringRef name) { return module->getAttrOfType<IntegerAttr>(name).getInt(); };
  int64_t arena = sizeOf(rt::RtDialect::kArenaBytes),
          persistent = sizeOf(rt::RtDialect::kPersistentBytes);
  bool hasCensus = printCensus(program, os);
  bool hasMessages = printMessages(program.getMessages(), os);
  bool hasZeros = printZeros(module, os);
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
  if (hasMessages)
    os << "  s.messages = kMessages;\n";
  if (hasZeros)
    os << "  s.zeros = kZeros;\n";
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
  os << "  return s;\n}\n\n";
}
