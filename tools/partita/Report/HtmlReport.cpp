//===- HtmlReport.cpp - a program and its run as one page -------------------------------------===//
//
// Names come from model files and command lines: everything except our own numbers goes through
// printHTMLEscaped. The page's policy forbids it to load anything.
//
//===------------------------------------------------------------------------------------------===//

#include "tools/partita/Report/HtmlReport.h"
#include "partita/Analysis/Collectives.h"
#include "partita/Memory/Ledger.h"
#include "tools/partita/Program.h"
#include "tools/partita/Report/Curves.h"
#include "tools/partita/Report/ExplainText.h"
#include "tools/partita/Report/FlopsText.h"
#include "tools/partita/Report/MemoryPicture.h"
#include "tools/partita/Report/StagesText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <map>

using namespace llvm;
using namespace partita;
using namespace partita::tool;

static constexpr StringLiteral kStyle = R"(
body { font: 14px sans-serif; max-width: 1020px; margin: 2em auto; padding: 0 1em; color: #222; }
h1 { font-size: 22px; } h2 { font-size: 17px; margin-top: 2em; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; } td, th { padding: 2px 14px 2px 0; text-align: left; }
td.number { text-align: right; } pre { overflow-x: auto; font-size: 12px; }
svg { max-width: 100%; height: auto; font: 12px sans-serif; }
.box { display: inline-block; width: 12px; height: 12px; margin-right: 6px; }
#under { position: fixed; right: 1em; bottom: 1em; background: #fffbe6; border: 1px solid #ccc;
  padding: 4px 8px; white-space: pre; display: none; }
)";

/// Shows the point under the mouse: the curve's nearest step.
static constexpr StringLiteral kScript = R"(
'use strict';
const under = document.getElementById('under');
let curves = 0;
for (const svg of document.querySelectorAll('svg.curves')) {
  const lines = [...svg.querySelectorAll('path[data-points]')].map(path => ({
    name: path.dataset.name,
    points: path.dataset.points.split(' ').map(point => point.split(',').map(Number))}));
  curves += lines.length;
  svg.addEventListener('mousemove', event => {
    const place = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const step = (place.x - Number(svg.dataset.left)) / Number(svg.dataset.perStep) + Number(svg.dataset.first);
    under.textContent = lines.map(line => {
      const [at, value] = line.points.reduce((a, b) => Math.abs(a[0] - step) <= Math.abs(b[0] - step) ? a : b);
      return line.name + ': ' + value + ' at step ' + at;
    }).join('\n');
    under.style.display = 'block';
  });
  svg.addEventListener('mouseleave', () => { under.style.display = 'none'; });
}
document.body.dataset.curves = String(curves);
)";

namespace {

class Page {
public:
  Page(raw_ostream &os, const json::Object &manifest, std::vector<analysis::Collective> collectives,
       const RunLog *run)
      : os(os), manifest(manifest), run(run), collectives(std::move(collectives)) {}

  void write() {
    std::string title = describeProgram(manifest);
    os << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>";
    escaped(title);
    os << "</title>\n<style>" << kStyle << "</style>\n</head>\n<body>\n<h1>";
    escaped(title);
    os << "</h1>\n";
    summary();
    if (run) {
      curves();
      times();
    }
    memory();
    work();
    exchanged();
    plan();
    os << "<div id=\"under\"></div>\n<script>" << kScript << "</script>\n</body>\n</html>\n";
  }

private:
  void escaped(StringRef text) { printHTMLEscaped(json::fixUTF8(printable(text)), os); }
  /// Prints text of several lines verbatim.
  void preformatted(StringRef text) {
    os << "<pre>";
    printHTMLEscaped(json::fixUTF8(text.trim('\n')), os);
    os << "</pre>\n";
  }
  void section(StringRef id, StringRef title) {
    os << formatv("<h2 id=\"{0}\">{1}</h2>\n", id, title);
  }
  void row(StringRef name, StringRef value) {
    os << "<tr><td>";
    escaped(name);
    os << "</td><td>";
    escaped(value);
    os << "</td></tr>\n";
  }

  void summary() {
    os << "<table id=\"summary\">\n";
    row("model", manifest.getString("model").value_or("unknown"));
    row("objective", manifest.getString("objective").value_or("unknown"));
    row("memory", describeMemory(manifest));
    if (run && !run->rows.empty()) {
      row("steps", grouped(int64_t(run->rows.size())) + ", up to step " +
                       grouped(int64_t(run->rows.back()[0].value_or(0))));
      row("loss", formatv("{0:f4} -> {1:f4}", run->rows.front()[1].value_or(0),
                          run->rows.back()[1].value_or(0))
                      .str());
    }
    os << "</table>\n";
  }

  /// Returns a column over the steps: its finite values (`positive`: also with a logarithm).
  Curve curveOf(StringRef column, StringRef name, StringRef color, bool positive = false) const {
    Curve curve{name.str(), color.str(), {}};
    for (auto [row, cell] : zip(run->rows, run->column(column)))
      if (cell && std::isfinite(*cell) && (!positive || *cell > 0))
        curve.points.push_back({row[0].value_or(0), *cell});
    return curve;
  }

  void curves() {
    section("loss", "Loss");
    if (!drawCurves(os, {curveOf("loss", "training loss", "#1f5fa8"),
                         curveOf("validation_loss", "validation loss", "#d1662b")}))
      os << "<p>The log has no step.</p>\n";
    section("scale", "Loss scale");
    Curve scale = curveOf("loss_scale", "loss scale", "#7a3e9d", /*positive=*/true);
    scale.steps = true;
    if (!drawCurves(os, {scale}, /*doubling=*/true))
      os << "<p>The loss was not scaled.</p>\n";
    section("rate", "Learning rate");
    drawCurves(os, {curveOf("learning_rate", "learning rate", "#2b8a3e")});
    drawCurves(os, {curveOf("beta1", "beta1", "#7a3e9d")}); // if the schedule sets it
    section("speed", "Speed");
    drawCurves(os,
               {curveOf("tokens_per_second", (unitOf(manifest) + " per second").str(), "#1f5fa8")});
    drawCurves(os, {curveOf("model_flops_per_second", "model FLOP/s", "#d1662b")});
  }

  void times() {
    static constexpr std::pair<StringLiteral, StringLiteral> kKinds[] = {
        {"data", "#888888"},   {"forward", "#1f5fa8"},     {"backward", "#d1662b"},
        {"update", "#2b8a3e"}, {"collectives", "#b02a37"}, {"transfers", "#7a3e9d"}};
    section("time", "Time by kind of work");
    std::vector<Share> shares;
    size_t steps = 0;
    for (auto [kind, color] : kKinds) {
      double sum = 0;
      size_t counted = 0;
      for (std::optional<double> cell : run->column((kind + "_seconds").str()))
        if (cell && std::isfinite(*cell))
          sum += *cell, ++counted;
      steps = std::max(steps, counted);
      shares.push_back({kind.str(), color.str(), counted ? 1e3 * sum / double(counted) : 0});
    }
    if (!steps) {
      os << "<p>The run measured none; <code>partita run --breakdown</code> does.</p>\n";
      return;
    }
    os << "<p>Of a step on rank 0, on average.</p>\n";
    drawShares(os, shares, "ms");
  }

  void memory() {
    section("memory", "Memory over the step");
    const json::Object *object = manifest.getObject("memory");
    std::optional<memory::Ledger> ledger =
        object ? memory::Ledger::fromJson(*object) : std::nullopt;
    if (ledger)
      drawMemory(os, *ledger, describeProgram(manifest));
    else
      os << "<p>The program has no ledger of memory op by op.</p>\n";
  }

  void work() {
    section("work", "Work by layer");
    const json::Array *noted = manifest.getArray("work");
    std::vector<LayerWork> work = noted ? workFromJson(*noted) : std::vector<LayerWork>();
    const json::Object *plan = manifest.getObject("plan");
    if (work.empty()) {
      os << "<p>The program does not say what its layers compute.</p>\n";
      return;
    }
    std::string text;
    raw_string_ostream stream(text);
    printFlops(stream, work, collectives, !plan || plan->getString("objective") != "none");
    preformatted(text);
  }

  void exchanged() {
    section("collectives", "Collectives");
    if (collectives.empty()) {
      os << (manifest.getArray("stages")
                 ? "<p>No collectives.</p>\n"
                 : "<p>No collectives: one rank, or nothing to communicate.</p>\n");
      return;
    }
    std::string text;
    raw_string_ostream stream(text);
    std::string function = analysis::Census::mainFunction(collectives);
    for (const auto &ofStage : analysis::byStage(collectives)) {
      if (ofStage.front().stage >= 0)
        stream << "\nStage " << ofStage.front().stage << '\n';
      explainCollectives(stream, ofStage, function, layerRangesOf(manifest, ofStage.front().stage),
                         /*all=*/false);
    }
    preformatted(text);
  }

  void plan() {
    section("plan", "Plan");
    os << "<table>\n";
    std::map<StringRef, StringRef> options; // by name; options that were not given are left out
    if (const json::Object *plan = manifest.getObject("plan"))
      for (const auto &[name, value] : *plan)
        if (StringRef text = value.getAsString().value_or(""); !text.empty())
          options.try_emplace(name, text);
    for (auto [name, value] : options)
      row(name, value);
    os << "</table>\n";
  }

  raw_ostream &os;
  const json::Object &manifest;
  const RunLog *run;
  std::vector<analysis::Collective> collectives;
};

} // namespace

void partita::tool::writeHtmlReport(raw_ostream &os, const json::Object &manifest,
                                    std::vector<analysis::Collective> collectives,
                                    const RunLog *run) {
  Page(os, manifest, std::move(collectives), run).write();
}
