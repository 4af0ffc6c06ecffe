//===- Session.cpp - shared by the commands: context, diagnostics, files ----------------------===//

#include "tools/partita/Session.h"
#include "dialects/Train/Roles.h"
#include "dialects/Train/Tensors.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "partita/Import/Import.h"
#include "partita/Phases/RegisterAll.h"
#include "partita/Support/NamePattern.h"
#include "partita/Support/WriteFile.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;

/// Describes a location: its file, its line if it has one, and the ONNX node's name.
static std::string describe(Location location) {
  FileLineColLoc file;
  std::string name;
  location->walk([&](Location inner) {
    if (auto found = dyn_cast<FileLineColLoc>(inner); found && !file)
      file = found;
    if (auto named = dyn_cast<NameLoc>(inner); named && name.empty())
      name = named.getName().str();
    return WalkResult::advance();
  });
  std::string text;
  llvm::raw_string_ostream os(text);
  if (file) {
    os << file.getFilename().getValue();
    if (file.getLine())
      os << ':' << file.getLine() << ':' << file.getColumn();
    os << ": ";
  }
  if (!name.empty()) {
    os << '\'';
    llvm::printEscapedString(name, os);
    os << "': ";
  }
  return text;
}

Session::Session(StringRef command) : command(command) {
  registerEverything(registry);
  mlirContext = std::make_unique<MLIRContext>(registry);
  mlirContext->loadAllAvailableDialects();
  mlirContext->printOpOnDiagnostic(false); // one message, not a page of IR
  mlirContext->getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    bool isError = diagnostic.getSeverity() == DiagnosticSeverity::Error;
    if (isError && failed && !tellsAll)
      return success();
    failed |= isError;
    std::string place = describe(diagnostic.getLocation());
    bool isWarning = diagnostic.getSeverity() == DiagnosticSeverity::Warning;
    if (isWarning && !warned.insert(place + diagnostic.str()).second)
      return success(); // a command that compiles several programs of a model would repeat it
    bool isRefused = refusesWarnings && isWarning;
    refused |= isRefused;
    llvm::errs() << (place.empty() ? "partita " + this->command + ": " : printableLines(place));
    if (isError || isRefused)
      llvm::WithColor(llvm::errs(), llvm::HighlightColor::Error) << "error: ";
    else if (isWarning)
      llvm::WithColor(llvm::errs(), llvm::HighlightColor::Warning) << "warning: ";
    else
      llvm::WithColor(llvm::errs(), llvm::HighlightColor::Remark) << "remark: ";
    llvm::errs() << printableLines(diagnostic.str()) << '\n';
    for (Diagnostic &note : diagnostic.getNotes())
      llvm::errs() << printableLines("  " + describe(note.getLocation()) + "note: " + note.str())
                   << '\n';
    std::string text = diagnostic.str();
    StringRef option = StringRef(text).take_until([](char c) { return c == ':' || c == ' '; });
    auto origin = origins.find(option.drop_while([](char c) { return c == '-'; }).str());
    if (option.starts_with("--") && origin != origins.end())
      llvm::errs() << printableLines("  note: " + origin->second) << '\n';
    return success();
  });
}

void partita::tool::declareWarningsAsErrors(OptionSet &options, bool &target) {
  options.group("Messages");
  options.flag("warnings-as-errors", target,
               "a warning is an error: the command ends with exit code 1 and writes nothing");
}

int Session::fail(const Twine &message) {
  failed = true;
  return tool::fail(command, message);
}

std::string partita::tool::parseDim(StringRef text, std::pair<std::string, int64_t> &dim) {
  auto [name, size] = text.rsplit('=');
  if (name.empty() || size.empty() || size.getAsInteger(10, dim.second))
    return ("'" + text + "' is not a dimension with its size, such as batch=8").str();
  if (dim.second < 1)
    return ("dimension '" + name + "' has size " + size + "; a size is at least 1").str();
  dim.first = name.str();
  return {};
}

bool partita::tool::isMlirFile(StringRef path) {
  if (path.ends_with(".mlir") || path.ends_with(".mlirbc") || path == "-")
    return true;
  auto start = llvm::MemoryBuffer::getFileSlice(path, 4, 0);
  return start && (*start)->getBuffer() == "ML\xefR";
}

/// Checks what every phase relies on, and the importer provides.
static LogicalResult checkStaticShapes(ModuleOp module) {
  auto isStatic = [](Type type) {
    auto shaped = dyn_cast<ShapedType>(type);
    return !shaped || shaped.hasStaticShape();
  };
  WalkResult result = module.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          if (!isStatic(argument.getType())) {
            op->emitError() << "has an argument of a dynamic shape, " << argument.getType()
                            << "; shapes are static from the import on";
            return WalkResult::interrupt();
          }
    for (Type type : op->getResultTypes())
      if (!isStatic(type)) {
        op->emitError() << "has a result of a dynamic shape, " << type
                        << "; shapes are static from the import on";
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return success(!result.wasInterrupted());
}

/// Returns the words of a plan option that is a list.
static std::vector<std::string> wordsOf(const Plan &plan, StringRef option) {
  SmallVector<StringRef> words;
  plan.get(option).split(words, ',', -1, /*KeepEmpty=*/false);
  return {words.begin(), words.end()};
}

ImportOptions partita::tool::weightOptions(const Plan &plan) {
  ImportOptions options;
  options.trainable = wordsOf(plan, "trainable");
  options.freeze = wordsOf(plan, "freeze");
  options.tie = wordsOf(plan, "tie");
  return options;
}

OwningOpRef<ModuleOp> Session::load(StringRef path, ArrayRef<std::string> dims, const Plan &plan) {
  if (!isMlirFile(path)) {
    ImportOptions options = weightOptions(plan);
    options.keepGoing = tellsAll;
    for (const std::string &text : dims)
      if (std::string problem = parseDim(text, options.dims.emplace_back()); !problem.empty()) {
        fail("--dim: " + problem);
        return {};
      }
    for (const std::string &binding : wordsOf(plan, "input")) {
      auto [name, role] = StringRef(binding).rsplit('=');
      options.inputs.emplace_back(name, role);
    }
    int64_t documentEnd;
    options.masksAreOnes = !plan.get("pack").getAsInteger(10, documentEnd) && documentEnd >= 0;
    FailureOr<OwningOpRef<ModuleOp>> module = importOnnx(path, options, mlirContext.get());
    return succeeded(module) ? std::move(*module) : OwningOpRef<ModuleOp>();
  }
  if (!dims.empty()) {
    fail("--dim binds dimensions of an ONNX file, but " + path +
         " is a module whose shapes are settled; leave --dim out");
    return {};
  }
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer) {
    fail(path + ": " + buffer.getError().message());
    return {};
  }
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
  auto module = parseSourceFile<ModuleOp>(sources, ParserConfig(mlirContext.get()));
  return module && succeeded(checkStaticShapes(*module)) ? std::move(module)
                                                         : OwningOpRef<ModuleOp>();
}

void Session::tellGuesses(ModuleOp module, const Plan &plan) {
  bool isTrained = plan.get("objective") != "none";
  // Collect tensors of the parameters that an option names in any way. Import has already left out
  // those that it decided; nothing here decides about a constant that it keeps.
  auto namedBy = [&](StringRef option) {
    std::vector<std::string> patterns = wordsOf(plan, option);
    auto matches = [&](StringRef name) {
      return llvm::any_of(patterns, [&](const std::string &text) {
        llvm::Expected<NamePattern> pattern = NamePattern::parse(text);
        if (!pattern)
          llvm::consumeError(pattern.takeError()); // reported when parameters are looked up
        return pattern && pattern->match(name);
      });
    };
    llvm::StringSet<> tensors;
    for (auto parameter : module.getOps<train::ParameterOp>())
      if (train::anyNameOf(parameter, matches))
        for (const train::StoredTensor &each : train::tensorsOf(parameter))
          tensors.insert(each.name);
    return tensors;
  };
  llvm::StringSet<> frozen = namedBy("freeze"), trainable = namedBy("trainable");
  SmallVector<train::NoteAttr> open;
  for (train::NoteAttr note : train::notesOf(module)) {
    auto isDecided = [&](StringAttr name) {
      return frozen.contains(name.getValue()) ||
             (!note.getOfParameters() && trainable.contains(name.getValue()));
    };
    ArrayAttr names = note.getTensors();
    bool decided = names && llvm::all_of(names.getAsRange<StringAttr>(), isDecided);
    if (decided || !(isTrained || note.getOfForward()))
      continue;
    open.push_back(note);
    module.emitWarning() << note.getText();
  }
  train::setNotes(module, open);
}

void Session::tellForwardGuesses(ModuleOp module) {
  for (train::NoteAttr note : train::notesOf(module))
    if (note.getOfForward())
      module.emitWarning() << note.getText();
}

std::string partita::tool::checkNotModel(StringRef output, ModuleOp module, StringRef option) {
  auto model = module->getAttrOfType<StringAttr>(train::TrainDialect::kModel);
  if (!model)
    return {};
  std::string problem = checkNotInput(output, model.getValue(), option);
  for (train::FileAttr file : train::filesOf(module)) {
    if (!problem.empty())
      break;
    llvm::SmallString<128> path(llvm::sys::path::parent_path(model.getValue()));
    llvm::sys::path::append(path, file.getName());
    problem = checkNotInput(output, path, option);
  }
  return problem;
}

std::string partita::tool::writeOutput(StringRef path,
                                       llvm::function_ref<void(llvm::raw_ostream &)> write) {
  if (path == "-") {
    write(llvm::outs());
    return {}; // main checks whether it could be written
  }
  return writeFile(path, [&](llvm::raw_ostream &os) {
    write(os);
    return std::string();
  });
}
