//===- ExplainCommand.cpp - partita explain ---------------------------------------------------===//
//
// What the compiler knows of a program before it runs, for a reader: every collective with its
// reason, bytes and group, and what the memory of a rank holds. All from manifest.json (Program.h).
//
//===------------------------------------------------------------------------------------------------===//

#include "tools/partita/Program.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace partita::tool;

/// Names come from model files: what a terminal would obey is shown as its code.
static std::string printable(StringRef name) {
  std::string shown;
  llvm::raw_string_ostream os(shown);
  llvm::printEscapedString(name, os);
  return shown;
}

static std::string text(const json::Object &object, StringRef key) {
  return printable(object.getString(key).value_or(""));
}

static int64_t number(const json::Object &object, StringRef key) {
  return object.getInteger(key).value_or(0);
}

/// The objects of an array; entries of another kind are left out.
static std::vector<const json::Object *> objects(const json::Array *array) {
  std::vector<const json::Object *> result;
  if (array)
    for (const json::Value &value : *array)
      if (const json::Object *object = value.getAsObject())
        result.push_back(object);
  return result;
}

/// "a, b, c and 12 more".
static std::string nameList(const json::Array *names, size_t most) {
  std::string list;
  size_t count = names ? names->size() : 0;
  for (size_t i = 0; i < std::min(count, most); ++i)
    list += (i ? ", " : "") + printable((*names)[i].getAsString().value_or(""));
  if (count > most)
    list += " and " + std::to_string(count - most) + " more";
  return list;
}

/// The groups of ranks along an axis, the last axis of the mesh varying fastest: "0,1 | 2,3".
static std::string groupsOf(const json::Object &manifest, StringRef axis, size_t most) {
  int64_t size = 1, stride = 1, ranks = 1;
  std::vector<const json::Object *> axes = objects(manifest.getArray("mesh"));
  for (const json::Object *each : llvm::reverse(axes)) {
    if (text(*each, "axis") == axis)
      size = number(*each, "size"), stride = ranks;
    ranks *= std::max<int64_t>(number(*each, "size"), 1);
  }
  std::string list;
  size_t shown = 0;
  for (int64_t first = 0; first < ranks; ++first) {
    if (first / stride % std::max<int64_t>(size, 1) != 0)
      continue;
    if (++shown > most)
      return list + " | ...";
    list += list.empty() ? "" : " | ";
    for (int64_t i = 0; i < size; ++i)
      list += (i ? "," : "") + std::to_string(first + i * stride);
  }
  return list;
}

static void explainCollectives(const json::Object &manifest, bool all) {
  std::vector<const json::Object *> collectives = objects(manifest.getArray("collectives"));
  if (collectives.empty()) {
    outs() << "\nNo collectives: one rank, or nothing to exchange.\n";
    return;
  }
  outs() << '\n';
  for (const json::Object *axis : objects(manifest.getArray("mesh")))
    if (number(*axis, "size") > 1)
      outs() << formatv("Groups of {0}: {1}\n", text(*axis, "axis"),
                        groupsOf(manifest, text(*axis, "axis"), all ? 1 << 20 : 8));
  std::string function;
  for (const json::Object *collective : collectives) {
    if (std::string of = text(*collective, "function"); of != function) {
      function = of;
      outs() << "\nCollectives of " << function << ", per rank and call of it\n";
    }
    outs() << formatv("  {0,3} x {1} over {2} ({3} ranks), {4} bytes: {5}\n",
                      number(*collective, "calls"), text(*collective, "kind"),
                      text(*collective, "axis"), number(*collective, "ranks"),
                      grouped(number(*collective, "bytes")), text(*collective, "why"));
    const json::Array *tensors = collective->getArray("tensors");
    if (tensors && tensors->size())
      outs() << "        of " << nameList(tensors, all ? tensors->size() : 3) << '\n';
  }
}

static void explainMemory(const json::Object &manifest, bool all) {
  const json::Object *memory = manifest.getObject("memory");
  if (!memory)
    return;
  int64_t persistent = number(*memory, "persistent"), arena = number(*memory, "arena");
  outs() << formatv("\nMemory of a rank: {0} bytes = {1} persistent + {2} arena\n",
                    grouped(persistent + arena), grouped(persistent), grouped(arena));
  std::vector<const json::Object *> ledger = objects(memory->getArray("ledger"));
  sort(ledger, [](const json::Object *a, const json::Object *b) {
    int64_t x = number(*a, "bytes"), y = number(*b, "bytes");
    return x != y ? x > y : text(*a, "name") < text(*b, "name");
  });
  size_t shown = all ? ledger.size() : std::min<size_t>(ledger.size(), 12);
  outs() << formatv("  {0,16}  {1,-11} {2}\n", "bytes", "kind", "of");
  for (size_t i = 0; i < shown; ++i)
    outs() << formatv("  {0,16}  {1,-11} {2}\n", grouped(number(*ledger[i], "bytes")),
                      text(*ledger[i], "kind"), text(*ledger[i], "name"));
  if (shown < ledger.size())
    outs() << "  and " << ledger.size() - shown << " more; --all lists them\n";
}

int partita::tool::explainMain(Arguments arguments) {
  std::string folder;
  bool all = false, asJson = false;
  OptionSet options("explain", "DIR [--all] [--json]",
                    "Says what a compiled program exchanges between ranks, and why, and what the "
                    "memory of a rank holds.");
  options.positional("DIR", folder, "the folder that 'partita compile -o DIR' wrote");
  options.group("Output");
  options.flag("all", all, "every tensor of every collective, every buffer of the ledger");
  options.flag("json", asJson, "the same as one JSON object, always complete");
  if (std::optional<int> done = options.parse(arguments))
    return *done;
  std::string problem;
  std::optional<json::Object> manifest =
      readManifest(folder, problem, {"program", "ranks", "target", "mesh", "memory"});
  if (!manifest)
    return fail("explain", problem);
  if (asJson) {
    json::Object result;
    for (StringRef key : {"mesh", "ranks", "accumulate", "collectives", "memory"})
      if (json::Value *value = manifest->get(key))
        result[key] = *value;
    outs() << formatv("{0:2}", json::Value(std::move(result))) << '\n';
    return 0;
  }
  outs() << describeProgram(*manifest) << '\n';
  explainCollectives(*manifest, all);
  explainMemory(*manifest, all);
  return 0;
}
