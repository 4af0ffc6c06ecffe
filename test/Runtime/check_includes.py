"""Checks the includes between folders of the runtime.

check_includes.py RUNTIME

Folders include in one direction, given by lines of RUNTIME/README.md, one per folder of folders; files beside the
folders include none of them. An included file is beside the including one, in RUNTIME or in RUNTIME/include; public
headers include only each other. Prints the number of files, or exits with 1 and a line per include in the wrong
direction.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
SOURCES = {".h", ".cuh", ".cpp", ".cu"}


def read_orders(readme):
    """Returns (folder, groups of its folders, topmost first) for each line `**In `cuda/`**: `launch/` > `gpu/`
    `ranks/` > ...`; the runtime's own line is **Includes go one way**."""
    lines = re.findall(r"^- \*\*(Includes go one way|In `\w+/`)\*\*: ([^;.]*)[;.]", readme.read_text(), re.M)
    if not lines or lines[0][0].startswith("In `"):
        sys.exit(f"{readme}: no line '- **Includes go one way**: ...'")
    for title, text in lines:
        folder = re.search(r"`(\w+)/`", title)
        yield folder[1] if folder else ".", [re.findall(r"`(\w+)/`", group) for group in text.split(">")]


def includes_of(folder):
    """Returns (path, its includes) for a folder's files, including those in subfolders."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in SOURCES:
            for included in INCLUDE.findall(path.read_text()):
                yield path, included


class Runtime:
    def __init__(self, root):
        self.root, self.public = root, root / "include"

    def find(self, path, included):
        """Returns the file, relative to the runtime, or None. Public headers find only public ones."""
        public = self.public in path.parents
        for place in (path.parent, self.public) if public else (path.parent, self.root, self.public):
            file = (place / included).resolve()
            if file.exists() and (self.public if public else self.root) in file.parents:
                return file.relative_to(self.root)
        return None

    def check_found(self):
        for path, included in includes_of(self.root):
            if not self.find(path, included):
                kind = "public header" if self.public in path.parents else "header of the runtime"
                yield path, included, f"it is no {kind}"

    def check_folders(self, name, order):
        """Returns includes that go upwards, or sideways, among the folders of one."""
        folder = self.root / name
        height = {part: -place for place, group in enumerate(order) for part in group}
        for path, included in includes_of(folder):
            own = path.relative_to(folder).parts[:-1]
            if own and own[0] not in height:
                yield path, included, f"{own[0]}/ is not in README.md's order of folders"
                continue
            file = self.find(path, included)
            if not file or folder not in (self.root / file).parents:
                continue
            part = (self.root / file).relative_to(folder).parts[:-1]
            if part and not own:
                yield path, included, "what stands beside the folders includes none of them"
            elif part and part[0] != own[0] and height.get(part[0], 0) >= height[own[0]]:
                yield path, included, f"{part[0]}/ is not below {own[0]}/"


runtime = Runtime(pathlib.Path(sys.argv[1]).resolve())
wrong = list(runtime.check_found())
for name, order in read_orders(runtime.root / "README.md"):
    wrong += runtime.check_folders(name, order)
for path, included, why in wrong:
    print(f"{path.relative_to(runtime.root)} includes {included}: {why}")
print(len({path for path, _ in includes_of(runtime.root)}), "files that include others")
sys.exit(1 if wrong else 0)
