// JSON with Hjson's extensions, and texts that are not configurations.

#include "TestConfig.h"

using namespace partita::config;
using namespace partita::config::test;

static std::string asJson(llvm::StringRef text) {
  std::string said;
  llvm::raw_string_ostream os(said);
  std::unique_ptr<Document> document = Document::parse("c.json", text, os);
  return document ? document->root().toJson() : said;
}

/// Returns the first line of a message.
static std::string firstLine(llvm::StringRef text) {
  return llvm::StringRef(asJson(text)).split('\n').first.str();
}

TEST(Document, Json) {
  EXPECT_EQ(
      asJson(R"({"a": {"b": [1, 2.5, -3e2, 1e-8]}, "c": "x\n\u00e9\ud83d\ude00\"", "d": null})"),
      "{\"a\": {\"b\": [1, 2.5, -300, 1e-08]}, \"c\": \"x\\n\u00e9\U0001F600\\\"\", \"d\": null}");
  EXPECT_EQ(asJson("{}"), "{}");
  EXPECT_EQ(asJson("\xEF\xBB\xBF{\"a\": true}\r\n"), "{\"a\": true}");
}

TEST(Document, Liberties) {
  EXPECT_EQ(asJson("{ # one\n a: 1 // two\n 'b': /* three */ true,\n c: cpu\n d: [1\n 2,],\n}"),
            "{\"a\": 1, \"b\": true, \"c\": \"cpu\", \"d\": [1, 2]}");
  EXPECT_EQ(asJson("a: 1\n\"b\": 2"), "{\"a\": 1, \"b\": 2}"); // no braces
  EXPECT_EQ(asJson("a: '''\nx\n y'''"), "{\"a\": \"x\\n y\"}");
  EXPECT_EQ(asJson("{a: {b: 1}\n c: 2}"), "{\"a\": {\"b\": 1}, \"c\": 2}");
  EXPECT_EQ(asJson("{}"), "{}");
}

TEST(Document, Errors) {
  EXPECT_EQ(firstLine("{\"a\": 1 \"b\": 2}"),
            "c.json:1:9: error: expected a comma, a new line or '}'");
  EXPECT_EQ(firstLine("{\"a\": 1"), "c.json:1:1: error: this block is not closed");
  EXPECT_EQ(firstLine("{\"a\": [1, 2}"), "c.json:1:12: error: expected a comma, a new line or ']'");
  EXPECT_EQ(firstLine("{\"a\": 1,, \"b\": 2}"),
            "c.json:1:9: error: two commas without a value between them");
  EXPECT_EQ(firstLine("{\"a\" 1}"), "c.json:1:6: error: expected ':' after the key 'a'");
  EXPECT_EQ(firstLine("{\"a\": }"), "c.json:1:7: error: expected a value, found '}'");
  EXPECT_EQ(
      firstLine("{\"a\": tru, \"b\": 1}"),
      "c.json:1:7: error: expected a value: a number, true, false, null, a list, a block or a "
      "string in quotes, found 'tru'");
  EXPECT_EQ(firstLine("{\"a\": 01}"), "c.json:1:7: error: '01' is not a number");
  EXPECT_EQ(firstLine("{\"a\": 1e}"), "c.json:1:7: error: '1e' is not a number");
  EXPECT_EQ(firstLine("{\"a\": 1e999}"), "c.json:1:7: error: '1e999' is not a number");
  EXPECT_EQ(firstLine("{\"a\": \"x\n\"}"),
            "c.json:1:7: error: this string has no closing quote on its line");
  EXPECT_EQ(firstLine("{\"a\": \"\\q\"}"), "c.json:1:8: error: this is not a JSON escape");
  EXPECT_EQ(firstLine("{\"a\": \"\\ud800\"}"), "c.json:1:8: error: this escape is not a character");
  EXPECT_EQ(firstLine("{\"a\": 1} x"),
            "c.json:1:10: error: expected the end of the file after the closing brace");
  EXPECT_EQ(firstLine("[1]"),
            "c.json:1:1: error: a configuration is a block { ... } of keys and values");
  EXPECT_EQ(
      firstLine("null\n"),
      "c.json:1:1: error: a configuration is a block { ... } of keys and values, found 'null'");
  EXPECT_EQ(firstLine("{\"a\": '''x}"), "c.json:1:7: error: this string has no closing '''");
  EXPECT_EQ(firstLine("{\n  \"a\": \"\xff\"}"), "c.json:2:9: error: this byte is not UTF-8");
  EXPECT_EQ(firstLine("{\"a\": 1, /* never closed"), "c.json:1:1: error: this block is not closed");
}

TEST(Document, Duplicates) {
  EXPECT_EQ(asJson("{\n  \"a\": 1,\n  \"b\": {\"c\": 1, \"c\": 2}\n}"),
            "c.json:3:17: error: the key 'c' is given twice\n  \"b\": {\"c\": 1, \"c\": 2}\n"
            "                ^\nc.json:3:9: note: it stands here already\n"
            "  \"b\": {\"c\": 1, \"c\": 2}\n        ^\n");
}

TEST(Document, LongLinesAndControlCharacters) {
  std::string text =
      "{\"a\": \"" + std::string(5000, 'x') + "\", \"\x1b[31m\": 1, \"\x1b[31m\": 2}";
  std::string said = asJson(text);
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
  EXPECT_NE(said.find("'\\x1B[31m' is given twice"), std::string::npos) << said;
  EXPECT_LT(said.size(), 600u);
}

TEST(Document, Deep) {
  std::string blocks, lists;
  for (int i = 0; i < 200000; ++i) {
    blocks += "{a:";
    lists += "[";
  }
  EXPECT_NE(firstLine(blocks).find("blocks are nested deeper than 64"), std::string::npos);
  EXPECT_NE(firstLine("{a: " + lists).find("lists are nested deeper than 64"), std::string::npos);
}

TEST(Document, Numbers) {
  EXPECT_EQ(numberText(0.1), "0.1");
  EXPECT_EQ(numberText(3e-5), "3e-05");
  EXPECT_EQ(numberText(2e8), "200000000");
  EXPECT_EQ(numberText(1.0 / 3), "0.3333333333333333");
}
