//===- Program.cpp - a compiled program's folder
//---------------------------------------------------===//

#include "tools/partita/Program.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace partita::tool;

static std::string inFolder(StringRef folder, StringRef name) {
  SmallString<128> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

std::optional<json::Object> partita::tool::readManifest(StringRef folder, std::string &problem) {
  if (!sys::fs::is_directory(folder)) {
    problem = (folder + ": is not a folder; 'partita compile MODEL -o DIR' makes one").str();
    return std::nullopt;
  }
  std::string path = inFolder(folder, "manifest.json");
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer) {
    problem = path + ": " + buffer.getError().message() + "; is " + folder.str() +
              " the folder of a compiled program?";
    return std::nullopt;
  }
  Expected<json::Value> value = json::parse((*buffer)->getBuffer());
  if (!value) {
    problem = path + ": " + toString(value.takeError());
    return std::nullopt;
  }
  json::Object *object = value->getAsObject();
  if (!object) {
    problem = path + ": is not a JSON object";
    return std::nullopt;
  }
  return std::move(*object);
}

std::string partita::tool::findProgram(StringRef folder, std::string &problem) {
  std::optional<json::Object> manifest = readManifest(folder, problem);
  if (!manifest)
    return "";
  std::optional<StringRef> name = manifest->getString("program");
  if (!name || name->contains('/')) {
    problem =
        inFolder(folder, "manifest.json") + ": has no key 'program' that names a file beside it";
    return "";
  }
  std::string program = inFolder(folder, *name);
  if (!sys::fs::can_execute(program)) {
    problem = program + ": is not there; 'make -C " + folder.str() + "' builds it";
    return "";
  }
  return program;
}
