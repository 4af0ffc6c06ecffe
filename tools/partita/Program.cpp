//===- Program.cpp - a compiled program's folder ----------------------------------------------===//

#include "tools/partita/Program.h"
#include "partita/Memory/Ledger.h"
#include "partita/Support/ParseJson.h"
#include "tools/partita/Elastic.h"
#include "tools/partita/Session.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace partita;
using namespace partita::tool;

std::string partita::tool::inFolder(StringRef folder, StringRef name) {
  SmallString<128> path(folder);
  sys::path::append(path, name);
  return path.str().str();
}

int64_t partita::tool::numberIn(const json::Object &object, StringRef key) {
  return object.getInteger(key).value_or(0);
}

std::vector<const json::Object *> partita::tool::objectsIn(const json::Array *array) {
  std::vector<const json::Object *> result;
  if (array)
    for (const json::Value &value : *array)
      if (const json::Object *object = value.getAsObject())
        result.push_back(object);
  return result;
}

std::optional<json::Object> partita::tool::readManifest(StringRef folder, std::string &problem,
                                                        ArrayRef<StringRef> keys) {
  if (!sys::fs::is_directory(folder)) {
    problem = (folder + ": is not a folder; 'partita compile MODEL -o DIR' makes one").str();
    return std::nullopt;
  }
  std::string path = inFolder(folder, "manifest.json");
  if (isElastic(folder)) {
    std::optional<ElasticFolder> several = readElastic(folder, problem);
    if (several)
      problem = (folder + ": has programs of several sizes; name one, such as " +
                 several->programs.back().folder)
                    .str();
    return std::nullopt;
  }
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer) {
    problem = path + ": " + buffer.getError().message() + "; is " + folder.str() +
              " the folder of a compiled program?";
    return std::nullopt;
  }
  if ((*buffer)->getBuffer().trim().empty()) {
    problem = path + ": is empty; compile the model again";
    return std::nullopt;
  }
  Expected<json::Value> value = parseJson((*buffer)->getBuffer());
  if (!value) {
    problem = path + ": " + toString(value.takeError());
    return std::nullopt;
  }
  json::Object *object = value->getAsObject();
  for (StringRef key : keys)
    if (!object || !object->get(key)) {
      problem = path + ": is not a program's manifest, it has no '" + key.str() + "'";
      return std::nullopt;
    }
  return std::move(*object);
}

std::string partita::tool::checkNotProgram(StringRef output, StringRef folder,
                                           const json::Object &manifest, StringRef option) {
  std::vector<std::string> files;
  for (StringRef name : {StringRef("manifest.json"), StringRef("model.cpp"), StringRef("model.cu"),
                         StringRef("matmuls.json"), StringRef("Makefile"),
                         manifest.getString("program").value_or("")})
    files.push_back(inFolder(folder, name));
  StringRef model = manifest.getString("model").value_or("");
  files.push_back(model.str());
  if (const json::Array *of = manifest.getArray("files"))
    for (const json::Value &value : *of)
      if (const json::Object *file = value.getAsObject())
        files.push_back(
            inFolder(sys::path::parent_path(model), file->getString("file").value_or("")));
  for (const std::string &file : files)
    if (std::string problem = checkNotInput(output, file, option); !problem.empty())
      return problem;
  return {};
}

std::string partita::tool::grouped(int64_t value) {
  std::string text = std::to_string(value);
  for (int64_t i = int64_t(text.size()) - 3; i > (value < 0 ? 1 : 0); i -= 3)
    text.insert(size_t(i), ",");
  return text;
}

const partita::rt::Target &partita::tool::targetOf(const json::Object &manifest) {
  const rt::Target *named = rt::Target::find(manifest.getString("target").value_or(""));
  return named ? *named : *rt::Target::all().front();
}

std::string partita::tool::describeProgram(const json::Object &manifest) {
  std::string mesh;
  if (const json::Array *axes = manifest.getArray("mesh"))
    for (const json::Value &value : *axes)
      if (const json::Object *axis = value.getAsObject())
        mesh += (mesh.empty() ? "" : ", ") + axis->getString("axis").value_or("?").str() + " = " +
                std::to_string(axis->getInteger("size").value_or(1));
  int64_t ranks = manifest.getInteger("ranks").value_or(1);
  int64_t accumulate = manifest.getInteger("accumulate").value_or(1);
  std::string text = manifest.getString("program").value_or("program").str() + ": ";
  text += std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  if (!mesh.empty())
    text += " (" + mesh + ")";
  text += ", " + std::to_string(accumulate) +
          (accumulate == 1 ? " micro-batch per step" : " micro-batches per step");
  return text + ", target " + manifest.getString("target").value_or("unknown").str();
}

std::string partita::tool::partsText(const json::Object &memory, StringRef separator) {
  std::string text;
  for (const memory::Part &part : memory::deviceParts())
    if (std::optional<int64_t> bytes = memory.getInteger(part.key); bytes || part.always)
      text += (text.empty() ? "" : separator.str()) + grouped(bytes.value_or(0)) + " " +
              part.title.str();
  return text;
}

std::string partita::tool::describeMemory(const json::Object &manifest) {
  const json::Object *memory = manifest.getObject("memory");
  json::Object none;
  const json::Object &device = memory ? *memory : none;
  std::optional<int64_t> stage = manifest.getInteger("memory_stage");
  std::string text = grouped(memory::deviceBytes(device)) + " bytes per rank" +
                     (stage ? " of stage " + std::to_string(*stage) + ", the fullest" : "") + ": " +
                     partsText(device, ", ");
  const json::Object *host = memory ? memory->getObject("host") : nullptr;
  if (!host)
    return text;
  int64_t persistent = host->getInteger("persistent").value_or(0);
  int64_t arena = host->getInteger("arena").value_or(0);
  return text + "; " + grouped(persistent + arena) +
         " bytes of host memory: " + grouped(persistent) + " persistent, " + grouped(arena) +
         " pinned";
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
    problem = sys::fs::exists(program)
                  ? program + ": cannot be executed; chmod +x lets it, 'make -B -C " +
                        folder.str() + "' builds it anew"
                  : program + ": is not there; 'make -C " + folder.str() + "' builds it";
    return "";
  }
  return program;
}
