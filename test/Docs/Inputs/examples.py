"""Compares the example in every pass's description with the first function of the pass's test.

    examples.py ROOT [PASS...]    all passes of ROOT/include/partita/*/Passes.td, or those named

What precedes `// becomes` must be in the first function of test/*/PASS.mlir, or before that function; what follows must be in what
the test's first command prints for it. Lines are found in order, with others between them. SSA names may differ, one for one; `...`
stands for any part of a line, and types at its end may be left out. `// becomes, with OPTION=VALUE` names an option of the command.
An op that the example shows before and not after must be gone, unless its last line is `...`. With `// error: TEXT` the test is
test/*/PASS-errors.mlir, and the command fails with that message. Every other pass counts what it changed: one of its statistics is
above zero after its example.

The description begins with `Phase: NAME.`, the phase under which partita-opt --help lists the pass. grep finds the pass's flag in
ROOT/lib/Phases/Phases.cpp: it is not broken over two string literals.
"""

import collections
import json
import pathlib
import re
import shlex
import subprocess
import sys

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|%[\w$.-]+|-?\d+\.\d*(?:[eE][-+]?\d+)?|-?\d+(?![\w])|->|\.\.\.|[@#!]?[A-Za-z_][\w$.]*|\d+x(?=[\w?])|\S')
OP = re.compile(r"^(?:%[^=]*= )?([a-z]\w*\.\w+)")
Pass = collections.namedtuple("Pass", "flag folder description")


def passes(root):
    """As TableGen reads them."""
    includes = [str(root / "include"), str(root), subprocess.run(["llvm-config-22", "--includedir"], capture_output=True, text=True).stdout.strip()]
    for table in sorted((root / "include/partita").glob("*/Passes.td")):
        done = subprocess.run(["llvm-tblgen", "--dump-json", str(table)] + [f"-I{path}" for path in includes], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        records = json.loads(done.stdout)
        for name in records["!instanceof"]["PassBase"]:
            yield Pass(records[name]["argument"], table.parent.name, records[name]["description"])


def phases():
    """The phase of each pass, by partita-opt --help; names of several are separated by commas."""
    where, phase = {}, None
    for line in subprocess.run(["partita-opt", "--help"], capture_output=True, text=True).stdout.splitlines():
        if found := re.match(r"--partita-([\w-]+): ", line):
            phase = found[1]
        elif line.startswith("OVERVIEW: "):
            break
        elif phase and (found := re.match(r"    --([\w-]+) ", line)):
            where.setdefault(found[1], []).append(phase)
    return {name: ", ".join(names) for name, names in where.items()}


def example(text):
    """The lines before and behind `becomes`, and what the comment there says; None without an example."""
    block = re.search(r"```mlir\n(.*?)```", text, re.DOTALL)
    if not block:
        return None
    before, note, after = re.split(r"^ *// becomes(.*)\n", block[1] + "\n// becomes\n", maxsplit=1, flags=re.MULTILINE)
    return before, note, re.sub(r"// becomes\n$", "", after)


def without_comment(line):
    return re.sub(r'^((?:[^"/]|"(?:[^"\\]|\\.)*"|/(?!/))*)//.*$', r"\1", line).strip()


def first_function(path):
    """The test's text up to the end of its first function, with aliases replaced, and the braces closed that are open there."""
    depth, inside, lines, aliases = 0, None, [], {}
    for line in path.read_text().splitlines():
        line = without_comment(line)
        for alias, meaning in aliases.items():
            line = re.sub(re.escape(alias) + r"(?![\w.$])", lambda _: meaning, line)
        if (found := re.match(r"([!#]\w+) = (.*)", line)) and not found[2].startswith("loc("):
            aliases[found[1]] = found[2]
            continue
        if not line:
            continue
        if inside is None and line.startswith("func.func"):
            inside = depth
        lines.append(line)
        plain = re.sub(r'"(?:[^"\\]|\\.)*"', "", line)
        depth += plain.count("{") - plain.count("}")
        if inside is not None and depth == inside:
            break
    return "\n".join(lines + ["}"] * depth) + "\n"


def command(path):
    """The first command of the test without what reads its output."""
    text = re.search(r"RUN: (.*)", path.read_text().replace("\\\n// RUN:", ""))[1]
    words = []
    for word in shlex.split(re.split(r" [|>] | && | -o ", text)[0].replace("%s", "-")):
        if word != "not" and not word.startswith("--verify-diagnostics"):
            words.append(word)
    return words + ["--mlir-print-local-scope", "--pass-statistics"]


def run(path, text):
    """What the command prints for the text, the passes that counted something, and the messages if it failed."""
    done = subprocess.run(command(path), input=text, capture_output=True, text=True)
    counted = set(re.findall(r"^([a-z0-9-]+): [1-9]\d* .*\)$", done.stderr, re.MULTILINE))
    return done.stdout, counted, done.stderr if done.returncode else ""


def number(token):
    """A number's value to the precision of float32."""
    try:
        return f"{float(token):.6g}"
    except ValueError:
        return token


def tokens(line):
    """Numbers lose types and spelling, and the results of `%a:2 =` get names of their own."""
    line = re.sub(r"\b(\d[\d.Ee+-]*) : (i64|i32|index|f32|f64)\b", r"\1", without_comment(line))
    results, equals, rest = line.partition(" = ") if line.startswith("%") else ("", "", line)
    results = re.sub(r"%([\w$.-]+):(\d+)", lambda found: ", ".join(f"%{found[1]}.result.{i}" for i in range(int(found[2]))), results)
    return [number(token) for token in TOKEN.findall(re.sub(r"%([\w$.-]+)#(\d+)", r"%\1.result.\2", results + equals + rest))]


def defined(line):
    """The places of the names that a line defines: its results, and the arguments of its region or function."""
    if line[:2] == ["}", "backward"]:
        return {at for at, token in enumerate(line) if token[0] == "%"}
    results = line.index("=") if line[0][0] == "%" and "=" in line else 0
    mark = ":" if line[0].endswith("func") else "="
    return {at for at, token in enumerate(line) if token[0] == "%" and (at < results or line[at + 1:at + 2] == [mark])}


def match(shown, real, names, at=0, to=0):
    """Are the tokens the same but for names, `...` and types at the end? Returns the names, or None."""
    while at < len(shown):
        if shown[at] == "...":
            for skip in range(to, len(real) + 1):
                found = match(shown, real, names, at + 1, skip)
                if found is not None:
                    return found
            return None
        if to == len(real):
            return None
        if shown[at][0] == "%" and real[to][0] == "%":
            if at in defined(shown):
                names = {name: meaning for name, meaning in names.items() if meaning != real[to]}
                names[shown[at]] = real[to]
            elif shown[at] not in names and real[to] not in names.values():
                names = {**names, shown[at]: real[to]}
            elif names.get(shown[at]) != real[to]:
                return None
        elif shown[at] != real[to]:
            return None
        at, to = at + 1, to + 1
    return names if to == len(real) or shown[-1:] == ["..."] or real[to] in (":", "{", "->", "loc", "attributes") else None


def find(shown, real):
    """The first line of the example that the program has not, or nothing."""
    shown = [line for line in map(without_comment, shown.splitlines()) if line not in ("", "...")]
    bares = [tokens(bare(line)) for line in real.splitlines()]
    real = [tokens(line) for line in real.splitlines()]
    furthest = 0

    def search(index, begin, names):
        nonlocal furthest
        furthest = max(furthest, index)
        if index == len(shown):
            return True
        line = tokens(shown[index])
        for at in range(begin, len(real)):
            found = match(line, real[at], names)
            if found is None:
                found = match(line, bares[at], names)
            if found is not None and search(index + 1, at + 1, found):
                return True
        return False

    return None if search(0, 0, {}) else shown[furthest]


PROVENANCE = re.compile(r'(, )?(train\.name = "[^"]*"|train\.layer = #train\.layer<[^>]*>|train\.backward|'
                        r'train\.argument_names = \[[^\]]*\]|par\.causes = \[(?:[^\]]|\](?=>))*\])')


def bare(line):
    """The line without what every op says of where it comes from: examples are about the pass."""
    return PROVENANCE.sub("", line).replace("{, ", "{").replace(" {}", "")


def ops(text):
    return {found[1] for found in map(OP.match, map(without_comment, text.splitlines())) if found}


def check(root, one, phase, lists):
    """What is wrong with the pass's description, or nothing; `lists` is the text of the phases' lists."""
    if not re.search(rf'["(]{one.flag}["{{)]', lists):
        return "is no word of lib/Phases/Phases.cpp"
    if not one.description.strip().startswith(f"Phase: {phase}.\n"):
        return f"its description does not begin with 'Phase: {phase}.'"
    parts = example(one.description)
    if parts is None:
        return "has no example"
    before, note, after = parts
    error = re.search(r"// error: (.*)", before)
    name = one.flag + ("-errors.mlir" if error else ".mlir")
    test = next(iter(root.glob(f"test/*/{name}")), None)
    if test is None:
        return f"has no test/*/{name}"
    source = first_function(test)
    if (missing := find(before, source)) is not None:
        return f"the first function of {test.relative_to(root)} lacks\n    {missing}"
    output, counted, problem = run(test, source)
    if error:
        return None if error[1] in problem else f"the first command of {test.relative_to(root)} does not fail with\n    {error[1]}\nbut:\n{problem}"
    if problem:
        return f"the first command of {test.relative_to(root)} fails on the first function alone:\n{problem}"
    if (missing := find(after, output)) is not None:
        return f"{' '.join(command(test))} on the first function does not print\n    {missing}\nbut\n{output}"
    for option in re.findall(r"[\w-]+=[\w-]+", note):
        if not any(option in word for word in command(test)):
            return f"{option} is no option of the first command of {test.relative_to(root)}"
    if after and after.split()[-1] != "..." and (left := (ops(before) - ops(after)) & ops(output)):
        return f"the first function of {test.relative_to(root)} keeps {', '.join(sorted(left))}"
    return None if one.flag in counted else "counts nothing of what it changes in its example; give it a statistic"


def main():
    root = pathlib.Path(sys.argv[1])
    wrong, count, phase_of = [], 0, phases()
    lists = (root / "lib/Phases/Phases.cpp").read_text()
    for one in passes(root):
        if len(sys.argv) > 2 and one.flag not in sys.argv[2:]:
            continue
        count += 1
        if problem := check(root, one, phase_of.get(one.flag, "none"), lists):
            wrong.append(f"{one.flag}: {problem}")
    if wrong:
        sys.exit("\n".join(wrong) + f"\n{len(wrong)} of {count} descriptions are wrong")
    print(f"{count} examples are the first functions of the passes' tests, and each names its phase")


if __name__ == "__main__":
    main()
