"""Formats the results of try_families.py in Markdown: a table per version, a row per family, a column per way; then the
reasons."""

import collections
import datetime
import json
import os
import re
import sys

BEGIN, END = "<!-- tried families -->\n", "<!-- /tried families -->"
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


def table(results, made_by):
    """Returns the tables; reasons are numbered in the order in which they first appear."""
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

    lines = [f"Tried on {datetime.date.today().isoformat()}: {summary(results)}.", ""]
    for label, text in made_by.items():
        lines += [f"**{label}**: {text}", ""]
        ways = [way for of, way in columns if of == label]
        lines += ["| family | " + " | ".join(SHORT[way] for way in ways) + " |", "|---" * (1 + len(ways)) + "|"]
        lines += [f"| {family} | " + " | ".join(cell(results[family, label, way]) for way in ways) + " |"
                  for family in families]
        lines.append("")
    lines += [f"{number}. `{reason.replace('`', chr(39))}`" for number, reason in enumerate(reasons, 1)]
    return "\n".join(lines) + "\n"


def replace(path, results, made_by):
    with open(path) as file:
        page = file.read()
    if BEGIN not in page or END not in page:
        sys.exit(f"{path}: has no place between {BEGIN.strip()} and {END}")
    page = page[:page.index(BEGIN) + len(BEGIN)] + table(results, made_by) + page[page.index(END):]
    with open(path, "w") as file:
        file.write(page)
