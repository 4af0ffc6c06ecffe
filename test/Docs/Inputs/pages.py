"""Checks what the documentation says.

    pages.py ir PAGE IR...        the fenced mlir blocks of a page are the functions of these modules, with the operands'
                                  types left out
    pages.py commands PAGE...     prints the lines of the pages' sh blocks that call partita, as they stand, after a line that names the
                                  page; a command in another kind of block is an error
    pages.py shown LOG PAGE...    the pages' text blocks, in order, are in what their commands printed (the log of a run of `commands`)
    pages.py script PAGE          prints all lines of the page's sh blocks
    pages.py links ROOT           every relative link of every page leads to a file, and its anchor to a heading
    pages.py options ROOT HELP... every option in the output of these help commands, and of `partita COMMAND --help`, is on a page
    pages.py lines PAGE MOST      a page has at most so many lines
    pages.py site FOLDER          every relative link of every HTML page below leads to a file
"""

import os
import re
import subprocess
import sys

MARK = "=== "  # in a log, in front of the page whose commands follow


def blocks(path, language):
    with open(path) as file:
        return re.findall(rf"^```{language}\n(.*?)^```$", file.read(), re.DOTALL | re.MULTILINE)


def short(line):
    line = re.sub(r"#par\.place<((?:[^<>]|<[^<>]*>)*)>", r"\1", line.strip())
    line = re.sub(r" \{par\.causes = \[.*\]\} :", " :", line)
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


def print_commands(*pages):
    for page in pages:
        with open(page) as file:
            if found := re.search(r"^    partita .*", file.read(), re.MULTILINE):
                sys.exit(f"{page}: not in a block of sh, so that no test runs it: {found[0].strip()}")
        print(f"echo '{MARK}{page}'")
        for block in blocks(page, "sh"):
            for line in block.replace("\\\n", "").splitlines():
                if line.startswith("partita "):
                    print(line)


def steady(line):
    """Without the numbers that differ from run to run, and with the first digits of those that differ from machine to machine."""
    line = re.sub(r"[\d,]+ tokens/s +[\d.]+ s left", "N tokens/s  N s left", line)
    line = re.sub(r"overlapped \d+ %: [\d,]+ bytes of sums made between kernels, [\d,]+ in waits",
                  "overlapped N %: N bytes of sums made between kernels, N in waits", line)
    return re.sub(r"(loss \d+\.\d\d)\d+", r"\1", line).rstrip()


def is_shown(shown, printed):
    """Does a printed line look like one of a page, in which `...` stands for any text?"""
    return re.fullmatch(".*".join(map(re.escape, steady(shown).split("..."))), steady(printed)) is not None


def find_block(block, log, start):
    """The line behind the block's last one in the log, or the first line of the block that is not there. A line `...` stands for others."""
    failed = block[0]
    for first in range(start, len(log)):
        at, skips = first, False
        for line in block:
            if line.strip() == "...":
                skips = True
                continue
            while skips and at < len(log) and not is_shown(line, log[at]):
                at += 1
            if at == len(log) or not is_shown(line, log[at]):
                failed = line if line != block[0] else failed
                break
            at, skips = at + 1, False
        else:
            return at, None
    return start, failed


def check_shown(log_path, *pages):
    with open(log_path) as file:
        parts = re.split(rf"^{MARK}(.*)\n", file.read(), flags=re.MULTILINE)
    logs = {page: text.splitlines() for page, text in zip(parts[1::2], parts[2::2])}
    count = 0
    for page in pages:
        at = 0
        for block in blocks(page, "text"):
            at, failed = find_block(block.splitlines(), logs[page], at)
            if failed is not None:
                sys.exit(f"{page}: its commands do not print\n{block}at the line\n{failed}")
            count += 1
    print(f"{count} blocks are what the commands print")


def print_script(page):
    print("".join(blocks(page, "sh")), end="")


def pages_below(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "build"))]
        yield from (os.path.join(folder, name) for name in files if name.endswith(".md"))


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


def anchors(path):
    """GitHub's: lower case, punctuation dropped, blanks as hyphens."""
    with open(path) as file:
        headings = re.findall(r"^#+ (.*)$", file.read(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_links(root):
    pages, links, broken = sorted(pages_below(root)), 0, []
    for page in pages:
        with open(page) as file:
            targets = re.findall(r"\]\(([^)\s]+)\)", without_code(file.read()))
        for target in targets:
            if re.match(r"[a-z]+:", target):
                continue
            links += 1
            path, _, anchor = target.partition("#")
            path = os.path.join(os.path.dirname(page), path) if path else page
            if not os.path.exists(path):
                broken.append(f"{page}: {target} leads nowhere")
            elif anchor and anchor not in anchors(path):
                broken.append(f"{page}: {target}: no such heading")
    if broken:
        sys.exit("\n".join(broken))
    print(f"{links} links of {len(pages)} pages")


def printed(command):
    return subprocess.run(command, shell=True, capture_output=True, text=True, check=True).stdout


def check_options(root, *helps):
    """Each option begins a line of its command's help. The pages are README.md and those below docs."""
    commands = re.findall(r"^  ([a-z]+) ", printed("partita --help").split("Commands:")[1], re.MULTILINE)
    pages = [os.path.join(root, "README.md"), *pages_below(os.path.join(root, "docs"))]
    known = set()
    for page in pages:
        with open(page) as file:
            known.update(re.findall(r"--[a-z][a-z0-9-]*", file.read()))
    count, missing = 0, []
    for command in [f"partita {name} --help" for name in commands] + list(helps):
        options = set(re.findall(r"^ +(?:-\w, )?(--[a-z][a-z0-9-]*)", printed(command), re.MULTILINE))
        count += len(options)
        missing += [f"{option} of '{command}' is on no page" for option in sorted(options - known)]
    if missing:
        sys.exit("\n".join(missing))
    print(f"{count} options of {len(commands)} commands are on {len(pages)} pages")


def check_lines(page, most):
    with open(page) as file:
        lines = len(file.readlines())
    if lines > int(most):
        sys.exit(f"{page} has {lines} lines, more than {most}")


def check_site(root):
    links, broken = 0, []
    for folder, _, files in os.walk(root):
        for name in (name for name in files if name.endswith(".html")):
            with open(os.path.join(folder, name)) as file:
                targets = re.findall(r'(?:href|src)="([^"#?]+)', file.read())
            for target in targets:
                if not re.match(r"[a-z]+:|/", target):
                    links += 1
                    if not os.path.exists(os.path.join(folder, target)):
                        broken.append(f"{os.path.join(folder, name)}: {target} leads nowhere")
    if broken:
        sys.exit("\n".join(broken))
    print(f"{links} links")


MODES = {"ir": check_ir, "commands": print_commands, "shown": check_shown, "script": print_script, "links": check_links, "options": check_options, "lines": check_lines, "site": check_site}
MODES[sys.argv[1]](*sys.argv[2:])
