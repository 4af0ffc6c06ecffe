//===- ConfigCommand.cpp - partita config -----------------------------------------------------===//

#include "tools/partita/ConfigOptions.h"
#include "tools/partita/PlanOptions.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace partita;
using namespace partita::tool;

namespace {
struct ConfigCommandOptions {
  std::string file, model, folder;
  std::vector<std::string> dims;
  bool listsKeys = false, asJson = false;
  ConfigOptions config;
  Plan plan;
};
} // namespace

static std::optional<int> parseOptions(Arguments arguments, ConfigCommandOptions &o) {
  OptionSet options(
      "config", "FILE.json [MODEL] [OPTIONS]",
      "Checks a DeepSpeed configuration as compile --config does, and prints what it was resolved "
      "to: JSON, with a comment on each value that says where it comes from and what it sets. No "
      "weight is read.");
  options.optional("FILE.json", o.file,
                   "JSON with Hjson's liberties: comments, missing commas at line ends, trailing "
                   "commas; not base64");
  options.optional("MODEL", o.model,
                   "an ONNX file or a module: the batch and the hidden size that \"auto\" needs");
  options.list("dim", "NAME=SIZE", o.dims, "binds a symbolic dimension of the model");
  o.config.declare(options, /*namesFile=*/false);
  options.group("Output");
  options.flag("json", o.asJson, "prints JSON without comments: keys, plan options, run options");
  options.flag("keys", o.listsKeys,
               "prints the page of all keys (Markdown) and what becomes of each; takes no FILE");
  options.text("each", "DIR", o.folder,
               "checks every file of a folder and prints which are refused; takes no FILE");
  declarePlanOptions(options, o.plan);
  return options.parse(arguments);
}

static bool check(Session &session, StringRef file, const config::Facts &facts,
                  const ConfigCommandOptions &o, config::Resolution &resolution) {
  std::unique_ptr<config::Document> document = config::Document::read(file);
  Plan plan = o.plan;
  if (!document || !config::resolve(*document, facts, resolution) ||
      !applyToPlan(*document, resolution, plan))
    return false;
  noteWhatRanksRefuse(*document, facts, o.plan);
  return true;
}

static int checkFolder(Session &session, const config::Facts &facts,
                       const ConfigCommandOptions &o) {
  std::vector<std::string> files;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(o.folder, error), end; !error && it != end;
       it.increment(error))
    files.push_back(it->path());
  if (error)
    return session.fail("--each: " + o.folder + ": " + error.message());
  if (files.empty())
    return session.fail("--each: " + o.folder + " is empty");
  llvm::sort(files);
  int refused = 0;
  for (const std::string &file : files) {
    config::Resolution resolution;
    bool isGood = check(session, file, facts, o, resolution);
    refused += !isGood;
    llvm::outs() << llvm::sys::path::filename(file) << (isGood ? ": ok\n" : ": refused\n");
  }
  return refused ? 1 : 0;
}

int partita::tool::configMain(Arguments arguments) {
  ConfigCommandOptions o;
  if (std::optional<int> done = parseOptions(arguments, o))
    return *done;
  if (o.listsKeys && !(o.file.empty() && o.folder.empty()))
    return fail("config", "--keys takes neither FILE nor --each");
  if (!o.listsKeys && o.file.empty() && o.folder.empty())
    return fail("config",
                "FILE.json is missing; usage: partita config FILE.json [MODEL] [OPTIONS], "
                "or --keys, or --each DIR");
  if (o.asJson && (o.listsKeys || !o.folder.empty()))
    return fail("config", "--json: has no effect with --keys or --each");
  if (o.listsKeys) {
    config::printPage(llvm::outs());
    return 0;
  }
  if (!o.folder.empty() && !o.model.empty())
    return fail("config", "--each DIR goes with one MODEL at most");
  Session session("config");
  StringRef model = o.folder.empty() ? o.model : o.file;
  if (o.folder.empty()) { // report errors in the keys before the model is opened
    std::unique_ptr<config::Document> document = config::Document::read(o.file);
    if (!document || !config::checkKeys(*document))
      return 1;
  }
  OwningOpRef<ModuleOp> module;
  if (!model.empty() && isMlirFile(model) && !(module = session.load(model, o.dims)))
    return 1;
  std::optional<config::Facts> facts =
      findFacts(session, o.config, model, module ? *module : ModuleOp(), o.dims, o.plan);
  if (!facts)
    return 1;
  if (!o.folder.empty())
    return checkFolder(session, *facts, o);
  config::Resolution resolution;
  if (!check(session, o.file, *facts, o, resolution))
    return 1;
  if (o.asJson)
    resolution.printJson(llvm::outs());
  else
    resolution.print(llvm::outs());
  return 0;
}
