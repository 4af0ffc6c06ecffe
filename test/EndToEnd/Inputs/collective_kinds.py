"""collective_kinds.py COLLECTIVES.H: the kinds that programs issue, "all_reduce, ...", from the rows of the runtime's table.

These rows have a conjugate; the others are the runtime's own."""
import re
import sys

with open(sys.argv[1]) as file:
    text = file.read()
kinds = re.search(r"enum class CollectiveKind[^{]*{([^}]*)}", text)[1].split(",")
rows = re.findall(r'{\s*CollectiveKind::(\w+),\s*"\w+",\s*"(\w+)",\s*"\w+",\s*(CollectiveKind::\w+|{})', text)
if [kind for kind, _, _ in rows] != [kind.strip() for kind in kinds]:
    sys.exit(f"{sys.argv[1]}: found the rows {rows} for the kinds {kinds}")
print(", ".join(name for _, name, conjugate in rows if conjugate != "{}"))
