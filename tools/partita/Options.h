//===- Options.h - a command's options: declared, parsed, explained -----------------*- C++ -*-===//
//
//     OptionSet options("import", "MODEL.onnx -o model.mlir", "Turns an ONNX file into tx.");
//     options.positional("MODEL.onnx", model, "the model");
//     options.group("Shapes");
//     options.list("dim", "NAME=SIZE", dims, "binds a symbolic dimension; once per dimension");
//     options.group("Output");
//     options.text("o", "FILE", output, "where the module goes; - is the standard output");
//     options.flag("report", report, "says what the file holds and stops");
//     if (std::optional<int> done = options.parse(arguments)) return *done;
//
// A name of one letter is written -o, a longer one --dim; "--dim x" and "--dim=x" are the same. A
// variable's value at its declaration is the default that --help shows. An unknown option is an
// error that names the nearest known one; only lists may be given several times. Every command has
// --help.
//
//===------------------------------------------------------------------------------------------------===//

#ifndef PARTITA_TOOLS_OPTIONS_H
#define PARTITA_TOOLS_OPTIONS_H

#include "tools/partita/Commands/Commands.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace partita::tool {

/// Makes a message safe for a terminal, whatever names and values it quotes: except for newlines,
/// control characters and invalid UTF-8 become \xNN.
std::string printableLines(const llvm::Twine &text);

/// Prints "partita COMMAND: error: MESSAGE" and returns 1, the exit code.
int fail(llvm::StringRef command, const llvm::Twine &message);

/// "1.5 GiB", "320 KiB".
std::string formatBytes(uint64_t bytes);

class OptionSet {
public:
  /// Takes a value; returns the problem, or "".
  using Setter = std::function<std::string(llvm::StringRef)>;

  OptionSet(llvm::StringRef command, llvm::StringRef usage, llvm::StringRef description)
      : command(command), usage(usage), description(description) {}

  /// Lists the options declared from here on under this title in --help.
  void group(llvm::StringRef title) { currentGroup = title.str(); }
  void flag(llvm::StringRef name, bool &target, llvm::StringRef help);
  void text(llvm::StringRef name, llvm::StringRef value, std::string &target, llvm::StringRef help);
  /// Declares an option that may be given several times.
  void list(llvm::StringRef name, llvm::StringRef value, std::vector<std::string> &target,
            llvm::StringRef help);
  /// Does the same, with each value checked.
  void repeated(llvm::StringRef name, llvm::StringRef value, llvm::StringRef help, Setter setter);
  void integer(llvm::StringRef name, llvm::StringRef value, int64_t &target, int64_t low,
               int64_t high, llvm::StringRef help);
  /// Declares an option with a setter. An empty `value`: the option takes no value.
  void custom(llvm::StringRef name, llvm::StringRef value, llvm::StringRef initial,
              llvm::StringRef help, Setter setter);
  /// Declares the next word without a dash as required.
  void positional(llvm::StringRef value, std::string &target, llvm::StringRef help);
  /// Declares it as optional; must follow the required ones.
  void optional(llvm::StringRef value, std::string &target, llvm::StringRef help);
  /// Appends all undeclared options, with their values, unchanged to `target`; `about` describes
  /// them in --help.
  void passOn(std::vector<std::string> &target, llvm::StringRef about);
  /// Sets a paragraph for the end of --help.
  void epilogue(llvm::StringRef text) { ending = text.str(); }

  /// Parses. Returns the exit code if nothing is left to do: 0 after --help, 1 after an error; else
  /// nothing.
  std::optional<int> parse(Arguments arguments);
  void printHelp(llvm::raw_ostream &os) const;

private:
  struct Option {
    std::string name, value, initial, help, group;
    bool takesValue;
    Setter set;
    bool repeats = false;
    std::string spelled() const { return (name.size() == 1 ? "-" : "--") + name; }
  };
  struct Positional {
    std::string value, help;
    std::string *target;
    bool required = true;
  };
  const Option *find(llvm::StringRef name) const;
  std::string unknown(llvm::StringRef word) const;
  void add(llvm::StringRef name, llvm::StringRef value, llvm::StringRef initial,
           llvm::StringRef help, bool takesValue, Setter setter);

  std::string command, usage, description, currentGroup = "Options", ending, passOnAbout;
  std::vector<Option> options;
  std::vector<Positional> positionals;
  std::vector<std::string> *passOnTarget = nullptr;
};

/// Shows the current activity on a terminal, replacing the previous one; empty: clears it.
void showProgress(llvm::StringRef what);

} // namespace partita::tool

#endif // PARTITA_TOOLS_OPTIONS_H
