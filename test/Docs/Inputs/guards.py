#!/usr/bin/env python3
"""guards.py [--fix] SOURCE: every header's include guard is its path, without what each path of its folder has. Prints the number of
headers, or a line per wrong guard and exits with 1; --fix makes them right, for example after headers have moved."""
import pathlib
import re
import sys

# What a path begins with, longest first, and what a guard has instead.
BEGINNINGS = [("runtime/include/partita_rt/", "PARTITA_RT_"), ("runtime/", "PARTITA_RT_"), ("include/partita/", "PARTITA_"),
              ("tools/partita/", "PARTITA_TOOLS_"), ("tools/partita-", "PARTITA_TOOLS_"), ("tools/", "PARTITA_TOOLS_"),
              ("lib/", "PARTITA_LIB_"), ("dialects/", "PARTITA_DIALECTS_")]
GUARD = re.compile(r"^#ifndef (\w+)\n#define \1\n(.*)^#endif // \1\n\Z", re.M | re.S)

fixes = sys.argv[1] == "--fix"
root = pathlib.Path(sys.argv[-1])
headers = [path for top in sorted({begin.partition("/")[0] for begin, _ in BEGINNINGS}) for path in sorted((root / top).rglob("*"))
           if path.suffix in (".h", ".cuh")]
wrong, seen = [], {}
for path in headers:
    name, text = str(path.relative_to(root)), path.read_text()
    begin, instead = next(row for row in BEGINNINGS if name.startswith(row[0]))
    guard = instead + re.sub(r"\W", "_", name[len(begin):]).upper()
    if guard in seen:
        wrong.append(f"{name} and {seen[guard]} would both have the guard {guard}; rename one")
    seen[guard] = name
    found = GUARD.search(text)
    if not found:
        wrong.append(f"{name}: does not begin with an include guard, '#ifndef {guard}', and end with '#endif // {guard}'")
    elif found[1] != guard and fixes:
        path.write_text(re.sub(rf"\b{found[1]}\b", guard, text))
    elif found[1] != guard:
        wrong.append(f"{name}: its guard is {found[1]}, by its path it would be {guard}; test/Docs/Inputs/guards.py --fix . changes it")
print(*wrong, sep="\n", end="\n" if wrong else "")
print(len(headers), "headers")
sys.exit(1 if wrong else 0)
