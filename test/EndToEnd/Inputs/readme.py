# readme.py ir README IR...: the fenced mlir blocks of the README are the functions of these modules, with the
# operands' types left out.
# readme.py commands README: prints the lines of its sh blocks that call partita, as they stand.
import re
import sys


def blocks(path, language):
    with open(path) as file:
        return re.findall(rf"^```{language}\n(.*?)^```$", file.read(), re.DOTALL | re.MULTILINE)


def short(line):
    line = re.sub(r"#par\.place<((?:[^<>]|<[^<>]*>)*)>", r"\1", line.strip())
    line = re.sub(r" attributes \{.*\} \{$", " {", re.sub(r" \{train\.batch = 0 : i64\}", "", line))
    if line.startswith("func.func"):
        return line.replace("func.func", "func")
    head, colon, types = line.partition(" : ")
    if not colon or head.startswith(("train.minimize", "train.update")):
        return "  " + head
    if head.startswith("%") and "tx.constant" in head:
        types = types.split(" : ")[-1]
    return f"  {head} : {types.split(' -> ')[-1]}"


def function(path):
    with open(path) as file:
        lines = file.read().splitlines()
    start = next(i for i, line in enumerate(lines) if "func.func" in line)
    end = next(i for i in range(start, len(lines)) if lines[i].strip() == "return")
    return [short(line) for line in lines[start:end]] + ["}"]


def check_ir(readme, *modules):
    shown = blocks(readme, "mlir")
    assert len(shown) == len(modules), f"{len(shown)} mlir blocks, {len(modules)} modules"
    for block, path in zip(shown, modules):
        expected = "\n".join(function(path)) + "\n"
        if block != expected:
            sys.exit(f"the README shows\n{block}\nbut {path} has\n{expected}")
    print(f"{len(shown)} blocks are what the passes print")


def print_commands(readme):
    for block in blocks(readme, "sh"):
        for line in block.replace("\\\n", "").splitlines():
            if line.startswith("partita "):
                print(line)


{"ir": check_ir, "commands": print_commands}[sys.argv[1]](*sys.argv[2:])
