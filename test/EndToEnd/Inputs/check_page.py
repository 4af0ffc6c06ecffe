"""check_page.py PAGE.html LOG.csv [--none SECTION]...: what a headless browser makes of a report's page. It runs
its script to the end without an error on the console, loads nothing, and shows every section; curves have as many
points as the log has numbers."""

import argparse
import csv
import html.parser
import pathlib
import re
import subprocess
import sys
import tempfile

parser = argparse.ArgumentParser()
parser.add_argument("page", type=pathlib.Path)
parser.add_argument("log")
parser.add_argument("--none", action="append", default=[], help="a section that has a sentence in place of a picture")
options = parser.parse_args()


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(str(each) for each in what))


class Page(html.parser.HTMLParser):
    """Sections by the ids of their headings: elements [(name, attributes)] and text."""

    def __init__(self):
        super().__init__()
        self.sections = {"": ([], [])}
        self.at, self.body = "", {}

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "body":
            self.body = attributes
        if tag == "h2":
            self.at = attributes["id"]
            check(self.at not in self.sections, "two sections", self.at)
            self.sections[self.at] = ([], [])
        self.sections[self.at][0].append((tag, attributes))
        for name, value in attributes.items():
            check(name not in ("src", "href") and "url(" not in (value or ""), "the page loads", value)

    def handle_data(self, data):
        self.sections[self.at][1].append(data)


# Texts that leave their picture, or that two ticks share, as far as fonts go.
LOOK = """<script>
const wrong = [];
for (const svg of document.querySelectorAll('svg')) {
  const area = svg.viewBox.baseVal, labels = new Set();
  for (const text of svg.querySelectorAll('text')) {
    const box = text.getBBox();
    if (box.x < area.x || box.y < area.y || box.x + box.width > area.x + area.width || box.y + box.height > area.y + area.height)
      wrong.push(text.textContent + ' is cut off');
    if (svg.matches('.curves') && labels.has(text.textContent))
      wrong.push(text.textContent + ' is there twice');
    if (text.getAttribute('text-anchor') == 'end')
      labels.add(text.textContent);
  }
}
document.body.dataset.wrong = wrong.join('; ');
</script>"""
with tempfile.TemporaryDirectory() as home:
    looked = pathlib.Path(home, "page.html")
    looked.write_text(options.page.read_text().replace("</body>", LOOK + "</body>"))
    run = subprocess.run(
        ["chromium-headless-shell", "--no-sandbox", "--disable-gpu", f"--user-data-dir={home}/browser",
         "--enable-logging=stderr", "--dump-dom", looked.as_uri()],
        capture_output=True, text=True, timeout=120)
check(run.returncode == 0, "the browser failed:", run.stderr[-2000:])
said = [line for line in run.stderr.splitlines() if "CONSOLE" in line]
check(not said, "on the console:", said)
page = Page()
page.feed(run.stdout)

rows = list(csv.DictReader(open(options.log)))
curves = {}
for name, (elements, text) in page.sections.items():
    pictures = [attributes for tag, attributes in elements if tag == "svg"]
    words = "".join(text)
    print(f"{name or 'top'}: {len(pictures)} pictures, {len(words)} letters")
    if name in ("loss", "scale", "rate", "speed", "time", "memory"):
        check(bool(pictures) == (name not in options.none), name, "has", len(pictures), "pictures:", words[:200])
    elif name:
        check(len(words) > 40, name, "says", words)
    for tag, attributes in elements:
        if tag == "path" and "data-points" in attributes:
            curves[attributes["data-name"]] = attributes["data-points"].split()
            check(re.fullmatch(r"M[-0-9.HL ]+", attributes["d"]), attributes["d"][:100])
            check("NaN" not in attributes["d"] and "inf" not in attributes["d"], attributes["d"][:100])
expected = ["loss", "scale", "rate", "speed", "time", "memory", "work", "collectives", "plan"]
check(list(page.sections)[1:] == expected, list(page.sections))
check(page.body.get("data-wrong") == "", page.body.get("data-wrong", "the page was not looked at"))
check(page.body.get("data-curves") == str(len(curves)), "the script found", page.body, "of", len(curves))
for curve, column in {"training loss": "loss", "validation loss": "validation_loss", "learning rate": "learning_rate",
                      "loss scale": "loss_scale", "tokens per second": "tokens_per_second"}.items():
    cells = [(float(row["step"]), float(row[column])) for row in rows if row.get(column)]
    points = [tuple(float(number) for number in point.split(",")) for point in curves.get(curve, [])]
    check(len(points) == len(cells), curve, "has", len(points), "points of", len(cells))
    for (step, value), (x, y) in zip(cells, points):
        check(step == x and abs(value - y) <= 1e-5 * abs(value), curve, step, value, x, y)
print(f"{len(curves)} curves agree with {len(rows)} steps")
