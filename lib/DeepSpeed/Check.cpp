//===- Check.cpp - checks keys by their rows: known, of the right type, in bounds -------------===//

#include "lib/DeepSpeed/Resolver.h"
#include "partita/Support/NearestNames.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace partita::config;

/// Returns true if the key is in a block that drops "auto".
static bool dropsAuto(StringRef path) {
  const Key *block = path.contains('.') ? findKey(path.split('.').first) : nullptr;
  return block && block->shape.dropsAuto;
}

static StringRef canonical(StringRef path) {
  for (const Alias &alias : aliases())
    if (alias.path == path)
      return alias.current;
  return path;
}

/// Returns true if the value is recognizably the default.
static bool isInitial(const Key &key, const Value &value) {
  double number;
  if (value.kind == Value::Integer || value.kind == Value::Real)
    return !StringRef(key.initial).getAsDouble(number) && number == value.real;
  return StringRef(value.toJson()).equals_insensitive(key.initial);
}

namespace {
class Checker {
public:
  Checker(const Document &document, GivenKeys &given) : document(document), given(given) {}

  /// Checks members recursively, as deep as the rows go.
  bool checkMembers(const Value &block, StringRef path, StringRef spelled) {
    for (const Member &member : block.members)
      if (!checkMember(member, path, spelled))
        return false;
    return true;
  }

private:
  bool fail(SMLoc at, const Twine &message) {
    document.error(at, message);
    return false;
  }

  bool unknown(const Member &member, StringRef path, StringRef spelled) {
    std::string text = "unknown key " + quoted(spelled);
    if (spelled.ends_with("..."))
      return fail(member.at, text + "; write what it stands for");
    for (const Alias &alias : aliases()) // a typo in an older name
      if (alias.path.size() == path.size() && path.edit_distance(alias.path) == 1)
        return fail(member.at, text + "; did you mean '" + alias.path + "'?");
    if (const Key *key = nearestKey(path))
      return fail(member.at, text + "; did you mean '" + key->path + "'?");
    return fail(member.at, text + "; 'partita config --keys' lists all that there are");
  }

  bool checkMember(const Member &member, StringRef block, StringRef spelledBlock) {
    std::string spelled = (spelledBlock + (spelledBlock.empty() ? "" : ".") + member.key).str();
    std::string raw = (block + (block.empty() ? "" : ".") + member.key).str();
    StringRef path = canonical(raw);
    const Key *key = member.key.find('.') == std::string::npos ? findKey(path) : nullptr;
    if (!key)
      return unknown(member, raw, spelled);
    auto [place, isNew] = given.try_emplace(path, Given{key, &member.value, member.at, spelled});
    if (!isNew) {
      fail(member.at, quoted(spelled) + " is another name of " + quoted(place->second.spelled) +
                          ", which is given too");
      document.note(place->second.at, "it stands here");
      return false;
    }
    Given &here = place->second;
    if (member.value.kind == Value::Null && (key->initial == "null" || key->isBlock()))
      return here.dropped = true;
    if (member.value.isAuto() && !key->isBlock() && key->initial != "\"auto\"")
      return checkAuto(here);
    if (key->isBlock())
      return checkBlock(here);
    return checkValue(*key, member.value, spelled) && checkRefused(here);
  }

  bool checkAuto(Given &here) {
    if (!here.key->automatic.empty())
      return true;
    if (dropsAuto(here.key->path) || here.key->use == Use::NoEffect)
      return here.dropped = true;
    return fail(here.value->at, quoted(here.spelled) +
                                    " has no rule for \"auto\": give it a value (" +
                                    describeShape(here.key->shape) + ") or leave it out");
  }

  bool checkBlock(Given &here) {
    const Value &value = *here.value;
    // DeepSpeed's first versions only had a switch.
    if (here.key->path == "zero_optimization" && value.kind == Value::Boolean)
      return true;
    if (value.kind == Value::Boolean && !value.boolean && here.key->shape.kind == Shape::Foreign)
      return here.dropped = true;
    if (value.kind != Value::Block)
      return fail(value.at,
                  quoted(here.spelled) + " is " + shown(value) + ", expected a block {...}");
    if (here.key->shape.kind == Shape::Foreign) {
      const Value *on = findSwitch(value);
      return !on || fail(on->at, quoted(here.spelled) + " is switched on: " + here.key->about);
    }
    if (here.key->use == Use::Refused)
      return fail(here.at, quoted(here.spelled) + ": " + here.key->about);
    std::string path = here.key->path.str(), spelled = here.spelled; // the map may grow
    if (path == "optimizer") // before its parameters, which may belong to another one
      for (const Member &member : value.members)
        if (member.key == "type" && member.value.kind == Value::Text && !member.value.isAuto())
          if (std::string problem = optimizerProblem(member.value.text); !problem.empty())
            return fail(member.value.at, problem);
    return checkMembers(value, path, spelled);
  }

  /// Finds the "enabled" of a foreign block that is true: its own or, if it has none, one within
  /// it.
  static const Value *findSwitch(const Value &block) {
    for (const Member &member : block.members)
      if (member.key == "enabled")
        return member.value.kind == Value::Boolean && !member.value.boolean ? nullptr
                                                                            : &member.value;
    for (const Member &member : block.members)
      if (const Value *on = findSwitch(member.value))
        return on;
    return nullptr;
  }

  static std::string shown(const Value &value) {
    if (value.kind == Value::List || value.kind == Value::Block)
      return Value::nameOf(value.kind).str();
    std::string text = value.toJson();
    return text.size() <= 80 ? text : text.substr(0, 80) + "...";
  }

  static bool fits(const Shape &shape, const Value &value) {
    bool isNumber = value.kind == Value::Integer || value.kind == Value::Real;
    auto within = [&](double number) { return number >= shape.low && number <= shape.high; };
    switch (shape.kind) {
    case Shape::Boolean:
      return value.kind == Value::Boolean;
    case Shape::Integer:
      return value.kind == Value::Integer && within(value.real);
    case Shape::Number:
      return isNumber && within(value.real);
    case Shape::Text:
      return value.kind == Value::Text;
    case Shape::Choice: {
      SmallVector<StringRef> words;
      shape.values.split(words, '|');
      return value.kind == Value::Text &&
             any_of(words, [&](StringRef word) { return word.equals_insensitive(value.text); });
    }
    case Shape::Betas:
      return value.kind == Value::List && value.items.size() == 2 &&
             all_of(value.items, [](const Value &item) {
               return (item.kind == Value::Integer || item.kind == Value::Real) && item.real >= 0 &&
                      item.real < 1;
             });
    default:
      return true;
    }
  }

  bool checkValue(const Key &key, const Value &value, StringRef spelled) {
    if (fits(key.shape, value))
      return true;
    std::string message =
        quoted(spelled) + " is " + shown(value) + ", expected " + describeShape(key.shape);
    if (key.shape.kind == Shape::Choice && value.kind == Value::Text) {
      SmallVector<StringRef> words;
      key.shape.values.split(words, '|');
      if (StringRef best = partita::nearestName(value.text, words); !best.empty())
        message += "; did you mean \"" + best.str() + "\"?";
    }
    double number;
    bool isNumeric = key.shape.kind == Shape::Integer || key.shape.kind == Shape::Number;
    if (isNumeric && value.kind == Value::Text && !StringRef(value.text).getAsDouble(number))
      message += "; write it without quotes";
    return fail(value.at, message);
  }

  bool checkRefused(const Given &here) {
    if (here.key->use != Use::Refused || isInitial(*here.key, *here.value))
      return true;
    return fail(here.value->at,
                quoted(here.spelled) + " is " + shown(*here.value) + ": " + here.key->about);
  }

  const Document &document;
  GivenKeys &given;
};
} // namespace

bool partita::config::collectKeys(const Document &document, GivenKeys &given) {
  return Checker(document, given).checkMembers(document.root(), "", "");
}

bool partita::config::checkKeys(const Document &document) {
  GivenKeys given;
  return collectKeys(document, given);
}
