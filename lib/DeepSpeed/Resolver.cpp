//===- Resolver.cpp - reads keys, sets options ------------------------------------------------===//

#include "lib/DeepSpeed/Resolver.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace partita::config;

//===------------------------------------------------------------------------------------------===//
// Reading
//===------------------------------------------------------------------------------------------===//

const Given *Resolver::find(StringRef path) {
  out.read.insert(path);
  auto found = given.find(path);
  return found == given.end() || found->second.dropped ? nullptr : &found->second;
}

bool Resolver::isAuto(StringRef path) {
  const Given *key = find(path);
  return key && key->value->isAuto();
}

bool Resolver::flag(StringRef path) {
  const Given *key = find(path);
  return key && key->value->kind == Value::Boolean ? key->value->boolean
                                                   : findKey(path)->initial == "true";
}

double Resolver::real(StringRef path) {
  const Given *key = find(path);
  if (key && (key->value->kind == Value::Integer || key->value->kind == Value::Real))
    return key->value->real;
  double initial = 0;
  return findKey(path)->initial.getAsDouble(initial) ? 0 : initial;
}

int64_t Resolver::integer(StringRef path) { return int64_t(real(path)); }

std::string Resolver::word(StringRef path) {
  const Given *key = find(path);
  const Key *row = findKey(path);
  StringRef text = key && !key->value->isAuto() ? StringRef(key->value->text)
                                                : StringRef(row->initial).trim('"');
  return row->shape.kind == Shape::Choice ? text.lower() : text.str();
}

const std::string *Resolver::commandLine(StringRef option) const {
  auto found = facts.commandLine.find(option.str());
  return found == facts.commandLine.end() ? nullptr : &found->second;
}

std::string Resolver::planned(StringRef option) const {
  for (const Setting &setting : out.plan)
    if (setting.option == option)
      return setting.value;
  const std::string *said = commandLine(option);
  return said ? *said : "";
}

int64_t Resolver::size(StringRef axis) const {
  for (const auto &[name, size] : facts.mesh)
    if (name == axis)
      return size;
  return 1;
}

int64_t Resolver::world() const {
  int64_t ranks = 1;
  for (const auto &[name, size] : facts.mesh)
    ranks *= size;
  return ranks;
}

//===------------------------------------------------------------------------------------------===//
// Messages and options
//===------------------------------------------------------------------------------------------===//

SMLoc Resolver::placeOf(StringRef path) {
  for (; !path.empty(); path = path.contains('.') ? path.rsplit('.').first : StringRef())
    if (auto found = given.find(path); found != given.end())
      return found->second.value->at;
  return document.root().at;
}

std::string Resolver::name(StringRef path) {
  auto found = given.find(path);
  return quoted(found == given.end() ? path : StringRef(found->second.spelled));
}

bool Resolver::fail(StringRef path, const Twine &message) {
  document.error(placeOf(path), message);
  return false;
}

void Resolver::value(StringRef path, StringRef json, StringRef from) {
  Entry &entry = entryOf[path];
  entry.value = json.str();
  entry.from = from.str();
}

void Resolver::idle(StringRef path, StringRef reason) {
  if (isGiven(path))
    entryOf[path].idle = reason.str();
}

/// Returns true if two texts are equal as numbers: "0.001" and "1e-3", "0.9,0.999" and
/// "0.90,0.999".
static bool sayTheSame(StringRef one, StringRef other) {
  SmallVector<StringRef> parts[2];
  one.split(parts[0], ',');
  other.split(parts[1], ',');
  return parts[0].size() == parts[1].size() && all_of(zip(parts[0], parts[1]), [](auto pair) {
           double numbers[2];
           auto [a, b] = pair;
           return a == b || (!a.getAsDouble(numbers[0]) && !b.getAsDouble(numbers[1]) &&
                             numbers[0] == numbers[1]);
         });
}

static std::string optionText(StringRef option, StringRef text) {
  return ("--" + option + (text == "true" ? "" : " " + text)).str();
}

std::string partita::config::jsonOf(StringRef path, StringRef text) {
  double number;
  const Key *key = findKey(path);
  if (key && key->shape.kind == Shape::Betas) {
    auto [first, second] = text.split(',');
    return ("[" + first + ", " + second + "]").str();
  }
  bool isBare = text == "true" || text == "false" || !text.getAsDouble(number);
  return isBare ? text.str() : ("\"" + text + "\"").str();
}

bool Resolver::set(StringRef path, StringRef option, StringRef text) {
  if (const std::string *other = commandLine(option)) {
    if (!isGiven(path)) {
      value(path, jsonOf(path, *other), ("command line, --" + option).str());
      return true;
    }
    if (!sayTheSame(*other, text))
      return fail(path, name(path) + " asks for " + optionText(option, text) +
                            ", but the command line says " + optionText(option, *other) +
                            "; leave one of them out");
    return true; // already equal
  }
  out.plan.push_back({option.str(), text.str(), findKey(path), placeOf(path)});
  Entry &entry = entryOf[path];
  entry.becomes += (entry.becomes.empty() ? "" : " ") + optionText(option, text);
  return true;
}

void Resolver::offload(StringRef path, StringRef what) {
  offloaded.push_back({path.str(), what.str()});
  entryOf[path].becomes = ("--offload " + what).str();
}

void Resolver::setRun(StringRef path, StringRef option, StringRef text) {
  out.run.push_back({option.str(), text.str(), findKey(path), placeOf(path)});
  Entry &entry = entryOf[path];
  entry.becomes += (entry.becomes.empty() ? "" : " ") + optionText(option, text) + " of a run";
}

bool Resolver::settle(StringRef path, StringRef option, StringRef initial, std::string &text) {
  const std::string *other = commandLine(option);
  if (!isAuto(path) && has(path)) {
    text = numberText(real(path));
    return set(path, option, text);
  }
  text = other ? *other : initial.str();
  value(path, jsonOf(path, text), other ? ("command line, --" + option).str() : "default");
  return other || set(path, option, text);
}

//===------------------------------------------------------------------------------------------===//
// After all blocks
//===------------------------------------------------------------------------------------------===//

/// Reports an option that a key needs and this version lacks. An option that no key requests only
/// sets DeepSpeed's default, which may be dropped.
bool Resolver::refuseWhatIsNotThere() {
  auto check = [&](std::vector<Setting> &settings, const std::function<bool(StringRef)> &knows,
                   StringRef whose) {
    for (const Setting &setting : settings)
      if (knows && !knows(setting.option) && setting.key && given.contains(setting.key->path))
        return fail(setting.key->path, name(setting.key->path) + " needs " + whose + " --" +
                                           setting.option +
                                           ", which this version does not have yet");
    erase_if(settings, [&](const Setting &setting) {
      bool isThere = !knows || knows(setting.option);
      if (!isThere && setting.key)
        entryOf[setting.key->path] = {nullptr, setting.key->initial.str(), "default", "",
                                      "this version has no --" + setting.option + " yet"};
      return !isThere;
    });
    return true;
  };
  return check(out.plan, facts.knowsPlan, "the plan option") &&
         check(out.run, facts.knowsRun, "the run option");
}

bool Resolver::finish() {
  if (!lacking.empty()) {
    std::string text = "\"auto\" needs a value from elsewhere, and there is none for ";
    for (size_t i = 0; i < lacking.size(); ++i)
      text += (i ? ", " : "") + name(lacking[i].first) + " (" + lacking[i].second + ")";
    return fail(lacking[0].first, text);
  }
  if (!offloaded.empty() && !commandLine("offload")) {
    std::string words;
    for (const auto &[path, word] : offloaded)
      words += (words.empty() ? "" : ",") + word;
    StringRef first = offloaded[0].first;
    out.plan.push_back({"offload", words, findKey(first), placeOf(first)});
  }
  if (!refuseWhatIsNotThere())
    return false;
  for (const auto &each : given)
    if (!each.second.dropped)
      out.given.insert(each.first());
  for (const Key *key : allKeys()) {
    auto found = given.find(key->path);
    bool isGiven = found != given.end();
    auto known = entryOf.find(key->path);
    if (key->isBlock() && known == entryOf.end() && !(isGiven && key->shape.kind == Shape::Foreign))
      continue;
    if (!isGiven && known == entryOf.end())
      continue;
    Entry entry = known == entryOf.end() ? Entry() : known->second;
    entry.key = key;
    bool isOpen = isGiven && (found->second.dropped || found->second.value->isAuto());
    if (entry.value.empty() && isOpen)
      entry.value = key->initial.str(), entry.from = "default";
    if (entry.value.empty() && isGiven)
      entry.value = found->second.value->toJson(), entry.from = document.lineOf(found->second.at);
    if (entry.value.empty())
      entry.value = key->initial.str(), entry.from = "default";
    if (key->use == Use::NoEffect && entry.idle.empty() && isGiven)
      entry.idle = key->about.str();
    if (key->isBlock() && entry.becomes.empty() && isGiven)
      entry.idle = entry.idle.empty() ? "switched off" : entry.idle;
    out.entries.push_back(entry);
  }
  return true;
}

bool partita::config::resolve(const Document &document, const Facts &facts,
                              Resolution &resolution) {
  Resolver r(document, facts, resolution);
  return collectKeys(document, r.given) && resolvePrecision(r) && resolveBatch(r) &&
         resolveGradientTypes(r) && resolveStep(r) && resolveOptimizer(r) && resolveScheduler(r) &&
         resolveZero(r) && resolveTensorParallel(r) && resolvePipeline(r) &&
         resolveSparseAttention(r) && resolveActivationCheckpointing(r) && resolveMonitors(r) &&
         r.finish();
}
