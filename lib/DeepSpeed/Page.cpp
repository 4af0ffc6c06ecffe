//===- Page.cpp - prints all keys, and resolved files -----------------------------------------===//

#include "partita/DeepSpeed/Resolve.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace partita::config;

//===------------------------------------------------------------------------------------------===//
// The page of all keys
//===------------------------------------------------------------------------------------------===//

static StringRef useText(const Key &key) {
  if (key.shape.kind == Shape::Foreign)
    return "refused when enabled";
  switch (key.use) {
  case Use::Obeyed:
    return "implemented";
  case Use::NoEffect:
    return "accepted, without effect";
  case Use::Refused:
    return key.isBlock() ? "refused" : "refused unless default";
  case Use::Part:
    return "refused with its block";
  }
  return "";
}

/// Escapes a table cell: '|' would end it.
static std::string cell(StringRef text) {
  std::string result;
  for (char c : text)
    result += c == '|' ? "\\|" : std::string(1, c);
  return result;
}

void partita::config::printPage(raw_ostream &os) {
  size_t counts[4] = {};
  for (const Key *key : allKeys())
    ++counts[int(key->use)];
  os << "# Keys of a DeepSpeed configuration\n\n"
        "What `partita compile --config FILE` does with each key: "
     << counts[0] << " are implemented, " << counts[1] << " accepted without effect, "
     << counts[2] + counts[3]
     << " refused\nunless they have their default value. Any other key is an error. Where DeepSpeed's code "
        "and documentation disagree, defaults are\nthe code's. `partita config --keys` prints this "
        "page. Sizes are numbers without\nunits, as DeepSpeed reads them; those of options have units (`--bucket-bytes 25M`).\n\n[Coming from DeepSpeed](tutorials/from_deepspeed.md) shows how to compile from a configuration.\n";
  for (const Section &section : sections()) {
    os << "\n## " << section.title
       << "\n\n| key | value | default | support | effect, or reason | value of \"auto\" "
          "|\n|---|---|---|---|---|---|\n";
    for (const Key &key : section.keys)
      os << "| `" << key.path << "` | " << cell(describeShape(key.shape)) << " | "
         << (key.isBlock() ? "" : "`" + key.initial.str() + "`") << " | " << useText(key) << " | "
         << cell(key.about) << " | " << cell(key.automatic) << " |\n";
  }
  os << "\n## Other names\n\n| key | read as |\n|---|---|\n";
  for (const Alias &alias : aliases())
    os << "| `" << alias.path << "` | `" << alias.current << "` |\n";
}

//===------------------------------------------------------------------------------------------===//
// Resolved configurations
//===------------------------------------------------------------------------------------------===//

namespace {
/// Groups values into blocks again.
struct Node {
  StringRef name;
  const Entry *entry = nullptr;
  std::vector<Node> nodes;
};
} // namespace

static void insert(Node &root, const Entry &entry) {
  SmallVector<StringRef> parts;
  StringRef(entry.key->path).split(parts, '.');
  Node *node = &root;
  for (StringRef part : parts) {
    auto found = find_if(node->nodes, [&](const Node &child) { return child.name == part; });
    node =
        found == node->nodes.end() ? &node->nodes.emplace_back(Node{part, nullptr, {}}) : &*found;
  }
  node->entry = &entry;
}

/// Returns a comment of one line, whatever the text.
static std::string commentOf(const Entry &entry) {
  std::string text = entry.from;
  if (!entry.becomes.empty())
    text += ": " + entry.becomes;
  if (!entry.idle.empty())
    text += (entry.becomes.empty() ? ": no effect: " : "; no effect: ") + entry.idle;
  for (char &c : text)
    if (static_cast<unsigned char>(c) < 0x20)
      c = ' ';
  return text;
}

static void printNode(raw_ostream &os, const Node &node, unsigned depth) {
  for (const auto &[index, child] : enumerate(node.nodes)) {
    os.indent(2 * depth) << '"' << child.name << "\": ";
    StringRef comma = index + 1 < node.nodes.size() ? "," : "";
    if (!child.nodes.empty()) {
      os << "{\n";
      printNode(os, child, depth + 1);
      os.indent(2 * depth) << '}' << comma << '\n';
    } else if (child.entry) {
      os << child.entry->value << comma << "  // " << commentOf(*child.entry) << '\n';
    }
  }
}

void Resolution::print(raw_ostream &os) const {
  Node root;
  for (const Entry &entry : entries)
    insert(root, entry);
  os << "{\n";
  printNode(os, root, 1);
  os << "}\n";
}

void Resolution::printJson(raw_ostream &os) const {
  json::Object keys, options, defaults, sizes;
  for (const Entry &entry : entries) {
    Expected<json::Value> value = json::parse(entry.value);
    json::Object row{{"from", json::fixUTF8(entry.from)}};
    if (value)
      row["value"] = std::move(*value);
    else
      consumeError(value.takeError());
    if (!entry.becomes.empty())
      row["sets"] = json::fixUTF8(entry.becomes);
    if (!entry.idle.empty())
      row["no_effect"] = json::fixUTF8(entry.idle);
    keys[entry.key->path] = std::move(row);
  }
  for (const Setting &setting : plan)
    options[setting.option] = json::fixUTF8(setting.value);
  for (const Setting &setting : run)
    defaults[setting.option] = json::fixUTF8(setting.value);
  for (const auto &[name, size] : dims)
    sizes[json::fixUTF8(name)] = size;
  os << formatv("{0:2}", json::Value(json::Object{{"keys", std::move(keys)},
                                                  {"plan", std::move(options)},
                                                  {"run", std::move(defaults)},
                                                  {"dims", std::move(sizes)}}))
     << '\n';
}
