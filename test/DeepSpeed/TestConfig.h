// Configurations as text, resolved against a mesh, a model and a command line.

#ifndef PARTITA_TEST_CONFIG_H
#define PARTITA_TEST_CONFIG_H

#include "partita/DeepSpeed/Resolve.h"
#include "gtest/gtest.h"

namespace partita::config::test {

/// The result of one configuration: `said` is all that was printed.
struct Outcome {
  bool ok = false;
  std::string said;
  Resolution resolution;

  /// Returns a plan or run option's value, "" if it is not set.
  std::string plan(llvm::StringRef option) const { return find(resolution.plan, option); }
  std::string run(llvm::StringRef option) const { return find(resolution.run, option); }
  const Entry *entry(llvm::StringRef path) const {
    for (const Entry &entry : resolution.entries)
      if (entry.key->path == path)
        return &entry;
    return nullptr;
  }
  std::string value(llvm::StringRef path) const { return entry(path) ? entry(path)->value : ""; }
  std::string from(llvm::StringRef path) const { return entry(path) ? entry(path)->from : ""; }
  std::string idle(llvm::StringRef path) const { return entry(path) ? entry(path)->idle : ""; }

private:
  static std::string find(const std::vector<Setting> &settings, llvm::StringRef option) {
    for (const Setting &setting : settings)
      if (setting.option == option)
        return setting.value;
    return "";
  }
};

inline Facts factsOf(std::vector<std::pair<std::string, int64_t>> mesh = {}) {
  Facts facts;
  facts.mesh = std::move(mesh);
  return facts;
}

/// A model with a batch that --dim binds, and vectors of 8 elements.
inline Facts withModel(Facts facts) {
  facts.model = ModelFacts{"model.onnx", std::nullopt, {"batch"}, "ids.0", 8};
  return facts;
}

inline Outcome resolveText(llvm::StringRef text, const Facts &facts = Facts()) {
  Outcome outcome;
  llvm::raw_string_ostream os(outcome.said);
  std::unique_ptr<Document> document = Document::parse("c.json", text, os);
  outcome.ok = document && resolve(*document, facts, outcome.resolution);
  return outcome;
}

/// Expects a single error, at "line:column", whose text contains `part`.
inline void expectError(const Outcome &outcome, llvm::StringRef place, llvm::StringRef part) {
  EXPECT_FALSE(outcome.ok);
  EXPECT_TRUE(llvm::StringRef(outcome.said).starts_with(("c.json:" + place + ": error: ").str()))
      << outcome.said;
  EXPECT_TRUE(llvm::StringRef(outcome.said).contains(part)) << outcome.said;
  EXPECT_EQ(llvm::StringRef(outcome.said).count("error:"), 1u) << outcome.said;
}

} // namespace partita::config::test

#endif // PARTITA_TEST_CONFIG_H
