//===- Svg.h - elements of pictures -------------------------------------------------*- C++ -*-===//

#ifndef PARTITA_TOOLS_REPORT_SVG_H
#define PARTITA_TOOLS_REPORT_SVG_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace partita::tool {

/// A white page in pixels; elements are written in the order of calls.
class SvgPage {
public:
  SvgPage(llvm::raw_ostream &os, int width, int height);
  ~SvgPage() { os << "</svg>\n"; }
  SvgPage(const SvgPage &) = delete;
  SvgPage &operator=(const SvgPage &) = delete;

  /// `anchor`: start, middle or end; `more`: further attributes, preceded by a space.
  void text(double x, double y, llvm::StringRef anchor, llvm::StringRef words,
            llvm::StringRef more = "");
  void line(double x0, double y0, double x1, double y1, llvm::StringRef style);

protected:
  llvm::raw_ostream &os;
};

} // namespace partita::tool

#endif // PARTITA_TOOLS_REPORT_SVG_H
