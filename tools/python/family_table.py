"""Formats the results of try_families.py in Markdown: a table per version, a row per family, a column per way; then the
reasons. Two tables have a place in docs/families.md: the default ways, and dynamo's opsets, which fewer families try."""

import collections
import datetime
import json
import os
import re
import sys

WAYS = ["torchscript", "torchscript_folded", "dynamo", "dynamo_unoptimized"]
OPSETS = ["dynamo_18", "dynamo_newest"]
MODEL = r"^[\w.]+\.onnx:\s*"
SHORT = {"torchscript": "TorchScript, unfolded", "torchscript_folded": "TorchScript", "dynamo": "dynamo",
         "dynamo_unoptimized": "dynamo, unoptimized", "dynamo_18": "dynamo, opset 18",
         "dynamo_newest": "dynamo, newest opset"}


def readable(reason):
    """Returns a message without folder names."""
    return re.sub(r"/[^\s'\"]*/", "", reason)[:1000]


def alike(reason):
    """Returns the part that messages of one cause share: everything except the names of files and nodes."""
    return re.sub(r"'[^' ]*'|\d+(\.\d+)?(e-?\d+)?", "'...'", re.sub(MODEL, "", reason))


def summary(results):
    count = collections.Counter(result["outcome"] for result in results.values())
    return ", ".join(f"{number} {outcome}" for outcome, number in count.most_common())


def versions(cache, labels):
    """Returns {label: "torch N, Transformers N"}, from the exports in the cache."""
    found = {}
    for label in labels:
        for folder, _, names in os.walk(os.path.join(cache, label)):
            if "case.json" in names:
                with open(os.path.join(folder, "case.json")) as file:
                    case = json.load(file)
                found[label] = f"PyTorch {case['torch']}, Transformers {case['transformers']}"
                break
    return found


def place_of(ways):
    """Returns what the markers around the table of these ways are called."""
    return "tried opsets" if set(ways) <= set(OPSETS) else "tried families"


def table(results, made_by):
    """Returns the tables; reasons are numbered in the order in which they first appear. The few columns of opsets form one
    table with both versions."""
    families = list(dict.fromkeys(family for family, _, _ in results))
    columns = list(dict.fromkeys((label, way) for _, label, way in results))
    reasons, numbers = [], {}

    def cell(result):
        outcome, reason = result["outcome"], result["reason"]
        text = f"**{outcome}**" if outcome in ("different", "warned") else outcome
        text += ", eager" * result.get("eager", False)
        if not reason:
            return text
        two = "one rank equal, two: " * (outcome == "refused" and "one rank is equal" in result["done"])
        key = outcome, two, alike(reason)
        if key not in numbers:
            numbers[key] = len(reasons) + 1
            reasons.append(two + re.sub(MODEL, "", reason))
        return f"{text} ({numbers[key]})"

    def rows(titles, columns):
        yield "| family | " + " | ".join(titles) + " |"
        yield "|---" * (1 + len(columns)) + "|"
        for family in families:
            yield f"| {family} | " + " | ".join(cell(results[family, label, way]) for label, way in columns) + " |"
        yield ""

    lines = [f"Tried on {datetime.date.today().isoformat()}: {summary(results)}.", ""]
    if place_of(way for _, way in columns) == "tried opsets":
        lines += [*(f"- **{label}**: {text}" for label, text in made_by.items()), ""]
        lines += rows([f"{label}: {SHORT[way]}" for label, way in columns], columns)
    else:
        for label, text in made_by.items():
            lines += [f"**{label}**: {text}", ""]
            own = [column for column in columns if column[0] == label]
            lines += rows([SHORT[way] for _, way in own], own)
    lines += [f"{number}. `{reason.replace('`', chr(39))}`" for number, reason in enumerate(reasons, 1)]
    return "\n".join(lines) + "\n"


def replace(path, results, made_by):
    place = place_of(way for _, _, way in results)
    begin, end = f"<!-- {place} -->\n", f"<!-- /{place} -->"
    with open(path) as file:
        page = file.read()
    if begin not in page or end not in page:
        sys.exit(f"{path}: has no place between {begin.strip()} and {end}")
    page = page[:page.index(begin) + len(begin)] + table(results, made_by) + page[page.index(end):]
    with open(path, "w") as file:
        file.write(page)
