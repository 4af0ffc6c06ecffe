//===- Options.cpp - a command's options: declared, parsed, explained -------------------------===//

#include "tools/partita/Options.h"
#include "partita/Support/NearestNames.h"
#include "runtime/include/partita_rt/printable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/WithColor.h"

using namespace llvm;
using namespace partita::tool;

std::string partita::tool::printableLines(const Twine &text) {
  std::string all = text.str(), shown;
  for (StringRef line : split(all, '\n'))
    shown += (line.data() == all.data() ? "" : "\n") + partita_rt::printable(line.str());
  return shown;
}

int partita::tool::fail(StringRef command, const Twine &message) {
  errs() << "partita";
  if (!command.empty())
    errs() << ' ' << command;
  errs() << ": ";
  WithColor(errs(), HighlightColor::Error) << "error: ";
  errs() << printableLines(message) << '\n';
  return 1;
}

std::string partita::tool::formatBytes(uint64_t bytes) {
  static constexpr const char *kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  unsigned unit = 0;
  while (value >= 1024 && unit < 4) {
    value /= 1024;
    ++unit;
  }
  std::string text;
  raw_string_ostream(text) << format(unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

void OptionSet::add(StringRef name, StringRef value, StringRef initial, StringRef help,
                    bool takesValue, Setter setter) {
  options.push_back({name.str(), value.str(), initial.str(), help.str(), currentGroup, takesValue,
                     std::move(setter)});
}

void OptionSet::flag(StringRef name, bool &target, StringRef help) {
  add(name, "", "", help, false, [&target](StringRef) {
    target = true;
    return std::string();
  });
}

void OptionSet::text(StringRef name, StringRef value, std::string &target, StringRef help) {
  add(name, value, target, help, true, [&target](StringRef text) {
    target = text.str();
    return std::string(text.empty() ? "the value is empty" : "");
  });
}

void OptionSet::list(StringRef name, StringRef value, std::vector<std::string> &target,
                     StringRef help) {
  add(name, value, "", help, true, [&target](StringRef text) {
    target.push_back(text.str());
    return std::string(text.empty() ? "the value is empty" : "");
  });
  options.back().repeats = true;
}

void OptionSet::repeated(StringRef name, StringRef value, StringRef help, Setter setter) {
  add(name, value, "", help, true, std::move(setter));
  options.back().repeats = true;
}

void OptionSet::integer(StringRef name, StringRef value, int64_t &target, int64_t low, int64_t high,
                        StringRef help) {
  add(name, value, std::to_string(target), help, true, [&target, low, high](StringRef text) {
    int64_t number;
    if (text.getAsInteger(10, number))
      return ("'" + text + "' is not an integer").str();
    if (number < low || number > high)
      return formatv("{0} is not within {1} to {2}", number, low, high).str();
    target = number;
    return std::string();
  });
}

void OptionSet::custom(StringRef name, StringRef value, StringRef initial, StringRef help,
                       Setter setter) {
  add(name, value, initial, help, /*takesValue=*/!value.empty(), std::move(setter));
}

void OptionSet::positional(StringRef value, std::string &target, StringRef help) {
  positionals.push_back({value.str(), help.str(), &target});
}

void OptionSet::optional(StringRef value, std::string &target, StringRef help) {
  positionals.push_back({value.str(), help.str(), &target, false});
}

void OptionSet::passOn(std::vector<std::string> &target, StringRef about) {
  passOnTarget = &target;
  passOnAbout = about.str();
}

const OptionSet::Option *OptionSet::find(StringRef name) const {
  auto found = find_if(options, [&](const Option &option) { return option.name == name; });
  return found == options.end() ? nullptr : &*found;
}

std::string OptionSet::unknown(StringRef word) const {
  SmallVector<StringRef> names{"help"};
  for (const Option &option : options)
    names.push_back(option.name);
  StringRef best = nearestName(word.ltrim('-'), names);
  std::string text = ("unknown option '" + word + "'").str();
  if (!best.empty())
    return text + "; did you mean '" + (best.size() == 1 ? "-" : "--") + best.str() + "'?";
  return text + "; 'partita " + command + " --help' lists all";
}

std::optional<int> OptionSet::parse(Arguments arguments) {
  size_t nextPositional = 0;
  SmallPtrSet<const Option *, 16> given;
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef word = arguments[i];
    if (word == "--help" || word == "-h") {
      printHelp(outs());
      return 0;
    }
    if (word.empty())
      return fail(command, "an argument is empty");
    if (!word.starts_with("-") || word == "-") {
      if (nextPositional < positionals.size()) {
        *positionals[nextPositional++].target = word.str();
        continue;
      }
      if (!passOnTarget)
        return fail(command, "unexpected argument '" + word + "'");
      passOnTarget->push_back(word.str());
      continue;
    }
    auto [spelled, attached] = word.split('=');
    const Option *option = find(spelled.ltrim('-'));
    if (!option || (spelled != option->spelled())) {
      if (!passOnTarget)
        return fail(command, unknown(spelled));
      passOnTarget->push_back(word.str());
      // An unknown option's value, if the next word is not an option itself.
      if (spelled == word && i + 1 < arguments.size() && !arguments[i + 1].starts_with("--"))
        passOnTarget->push_back(arguments[++i].str());
      continue;
    }
    bool hasAttached = spelled.size() != word.size();
    if (!option->takesValue && hasAttached)
      return fail(command, option->spelled() + " takes no value");
    StringRef value = attached;
    if (option->takesValue && !hasAttached) {
      if (i + 1 == arguments.size())
        return fail(command, option->spelled() + " needs a value: " + option->spelled() + " " +
                                 option->value);
      value = arguments[++i];
    }
    if (!given.insert(option).second && !option->repeats)
      return fail(command, option->spelled() + " is given twice");
    if (std::string problem = option->set(value); !problem.empty())
      return fail(command, option->spelled() + ": " + problem);
  }
  if (nextPositional < positionals.size() && positionals[nextPositional].required)
    return fail(command, positionals[nextPositional].value + " is missing; usage: partita " +
                             command + " " + usage);
  return std::nullopt;
}

/// Writes `text` wrapped at 100 columns, each line after the first indented by `indent` blanks.
static void printWrapped(raw_ostream &os, StringRef text, size_t indent) {
  size_t column = indent;
  SmallVector<StringRef> words;
  text.split(words, ' ', -1, false);
  for (StringRef word : words) {
    if (column > indent && column + 1 + word.size() > 100) {
      os << '\n';
      os.indent(indent);
      column = indent;
    }
    if (column > indent) {
      os << ' ';
      ++column;
    }
    os << word;
    column += word.size();
  }
  os << '\n';
}

static void printRow(raw_ostream &os, StringRef left, StringRef help) {
  constexpr size_t kColumn = 30;
  os << "  " << left;
  if (left.size() + 4 > kColumn) {
    os << '\n';
    os.indent(kColumn);
  } else {
    os.indent(kColumn - 2 - left.size());
  }
  printWrapped(os, help, kColumn);
}

void OptionSet::printHelp(raw_ostream &os) const {
  os << "usage: partita " << command << ' ' << usage << "\n\n";
  printWrapped(os, description, 0);
  if (!positionals.empty())
    os << '\n';
  for (const Positional &positional : positionals)
    printRow(os, positional.value, positional.help);
  std::vector<std::string> groups;
  for (const Option &option : options)
    if (!is_contained(groups, option.group))
      groups.push_back(option.group);
  for (StringRef group : groups) {
    os << '\n' << group << ":\n";
    for (const Option &option : options) {
      if (option.group != group)
        continue;
      std::string left = option.spelled() + (option.takesValue ? " " + option.value : "");
      std::string help = option.help;
      if (!option.initial.empty())
        help += " [" + option.initial + "]";
      printRow(os, left, help);
    }
  }
  if (passOnTarget)
    os << '\n' << passOnAbout << '\n';
  if (!ending.empty())
    os << '\n' << ending << '\n';
}

/// Shows progress on a terminal; prints nothing to a pipe.
void partita::tool::showProgress(StringRef what) {
  if (!llvm::sys::Process::StandardErrIsDisplayed())
    return;
  llvm::errs() << "\r\033[K";
  if (!what.empty())
    llvm::errs() << what << " ...";
}
