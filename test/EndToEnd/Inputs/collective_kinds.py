"""collective_kinds.py COLLECTIVES.H: the kinds that programs issue, "all_reduce, ...", from the rows of the runtime's table.

The runtime issues the other kinds by itself."""
import re
import sys

with open(sys.argv[1]) as file:
    text = file.read()
kinds = re.search(r"enum class CollectiveKind[^{]*{([^}]*)}", text)[1].split(",")
rows = re.findall(r'{\s*CollectiveKind::(\w+),\s*"\w+",\s*"(\w+)",[^}]*?/\*inPrograms=\*/(true|false)', text)
if [kind for kind, _, _ in rows] != [kind.strip() for kind in kinds]:
    sys.exit(f"{sys.argv[1]}: found the rows {rows} for the kinds {kinds}")
print(", ".join(name for _, name, in_programs in rows if in_programs == "true"))
