"""Which file of the runtime may include which.

    check_includes.py RUNTIME

Folders of RUNTIME/cuda include one way, by the line of its README.md that says so; RUNTIME/include, which programs
see, includes itself alone; and all of them what is in RUNTIME, so nothing of the tests. Ends with the number of files,
or with 1 and a line per include that goes the wrong way.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
SOURCES = {".h", ".cuh", ".cpp", ".cu"}


def read_order(readme):
    """The groups of folders, topmost first: **Includes go one way**: `a/` > `b/` `c/` > ..."""
    line = re.search(r"^\*\*Includes go one way\*\*: ([^:]*):", readme.read_text(), re.M)
    if not line:
        sys.exit(f"{readme}: no line '**Includes go one way**: ...'")
    return [re.findall(r"`(\w+)/`", group) for group in line[1].split(">")]


def check_folders(cuda, order):
    """(file, include, why) of what includes upwards, or sideways."""
    height = {name: -place for place, group in enumerate(order) for name in group}
    for path, included in includes_of(cuda):
        own = path.relative_to(cuda).parts[0]
        part = re.match(r"cuda/(\w+)/", included)
        if len(path.relative_to(cuda).parts) < 2:  # cuda.h, everyone's
            if part:
                yield path, included, "what stands beside the folders includes none of them"
        elif own not in height:
            yield path, included, f"{own}/ is not in README.md's order of folders"
        elif part and part[1] != own and height.get(part[1], 0) >= height[own]:
            yield path, included, f"{part[1]}/ is not below {own}/"


def check_found(folder, places, why):
    """(file, include, why) of what is neither beside the file nor in one of the places."""
    for path, included in includes_of(folder):
        if not any((place / included).exists() for place in (path.parent, *places)):
            yield path, included, why


def includes_of(folder):
    for path in sorted(folder.rglob("*")):
        if path.suffix in SOURCES:
            for included in INCLUDE.findall(path.read_text()):
                yield path, included


runtime = pathlib.Path(sys.argv[1])
public = runtime / "include"
wrong = [*check_folders(runtime / "cuda", read_order(runtime / "cuda/README.md")),
         *check_found(public, [public], "it is no public header")]
for part in ("common", "cpu", "cuda"):
    wrong += check_found(runtime / part, [runtime, public], "it is no header of the runtime")
for path, included, why in wrong:
    print(f"{path.relative_to(runtime)} includes {included}: {why}")
print(len({path for path, _ in includes_of(runtime)}), "files that include others")
sys.exit(1 if wrong else 0)
