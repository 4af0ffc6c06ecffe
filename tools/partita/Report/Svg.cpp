//===- Svg.cpp - elements of pictures -------------------------------------------------------------===//

#include "tools/partita/Report/Svg.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace partita::tool;

SvgPage::SvgPage(raw_ostream &os, int width, int height) : os(os) {
  os << formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
                "height=\"{1}\" font-family=\"sans-serif\" font-size=\"12\">\n",
                width, height)
     << formatv("<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n", width, height);
}

/// Escapes one line of the page. XML cannot represent most control characters, the code points
/// U+FFFE and U+FFFF, or invalid UTF-8.
static std::string printableUtf8(StringRef words) {
  constexpr size_t most = 150;
  std::string result = json::fixUTF8(words.take_front(most));
  for (char &c : result)
    if (static_cast<unsigned char>(c) < 32 || c == 127)
      c = '.';
  for (StringRef refused : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})
    for (size_t at; (at = result.find(refused.str())) != std::string::npos;)
      result.replace(at, refused.size(), ".");
  return result + (words.size() > most ? "..." : "");
}

void SvgPage::text(double x, double y, StringRef anchor, StringRef words, StringRef more) {
  os << formatv("<text x=\"{0:f1}\" y=\"{1:f1}\" text-anchor=\"{2}\"{3}>", x, y, anchor, more);
  printHTMLEscaped(printableUtf8(words), os);
  os << "</text>\n";
}

void SvgPage::line(double x0, double y0, double x1, double y1, StringRef style) {
  os << formatv("<line x1=\"{0:f1}\" y1=\"{1:f1}\" x2=\"{2:f1}\" y2=\"{3:f1}\" {4}/>\n", x0, y0, x1,
                y1, style);
}
