"""Checks whether the compiler's warnings explain why a program trains differently than PyTorch. In the first step both
compute the same loss, so a tensor gets a wrong update there only if the program mistakes it, or what it was computed from,
for something else. (After the second step every tensor may be wrong.) try_families.py compares the parameters after one step
with those of the program of the same model's unfolded export."""

import re

import numpy

DECIDING = r"--(?:trainable|freeze|tie) '[^']+'"  # named by a warning about a guess
STRING = r'"(?:[^"\\]|\\.)*"'  # as MLIR prints it


def text_of(string):
    """Returns the text of a string with escapes: \\22 and \\\\."""
    data = re.sub(rb"\\(?:([0-9A-Fa-f]{2})|(.))", lambda found: bytes([int(found[1], 16)]) if found[1] else found[2],
                  string.strip('"').encode())
    return data.decode(errors="replace")


def noted_tensors(module):
    """Returns the tensors of all notes that name an option (`train.notes` in the text of an imported module)."""
    notes = re.findall(rf"#train.note<text = ({STRING}), tensors = \[((?:{STRING}(?:, )?)*)\]", module)
    return {text_of(name) for text, tensors in notes if re.search(DECIDING, text_of(text))
            for name in re.findall(STRING, tensors)}


def names_of_parameters(module):
    """Maps each parameter's name to all names that a note may use for it: its tensors in the file, and what they come from.
    """
    names = {}
    for symbol, rest in re.findall(rf"^ *train\.parameter @({STRING}|[\w.$-]+)(.*)", module, re.M):
        own = re.search(rf"train\.name = ({STRING})", rest)
        name = text_of(own[1] if own else symbol)
        names[name] = {name, *map(text_of, re.findall(rf"\b(?:name|origin) = ({STRING})", rest))}
    return names


def is_off(found, expected, tolerance):
    return not numpy.abs(found - expected).max(initial=0) <= tolerance * max(numpy.abs(expected).max(initial=0), 0.1)


def holds_elements(found, others, tolerance):
    """Are all elements those of some of the other tensors, in any order? This holds for a transposed, sliced or joined
    parameter."""
    pool = numpy.sort(numpy.concatenate([other.ravel() for other in others] or [numpy.empty(0)]))
    if pool.size == 0:
        return False
    at = numpy.searchsorted(pool, found.ravel())
    nearest = numpy.minimum(numpy.abs(pool[at.clip(0, pool.size - 1)] - found.ravel()),
                            numpy.abs(pool[(at - 1).clip(0)] - found.ravel()))
    return bool((nearest <= tolerance * max(numpy.abs(found).max(initial=0), 0.1)).all())


def unexplained(parameters, unfolded, module, tolerance):
    """Returns why no warning explains the difference, or "". Takes the parameters after one step, of the program and of that
    of the unfolded export, and the imported module, whose notes must name each parameter that differs, and at least one."""
    absent = [value for name, value in unfolded.items() if name not in parameters or value.shape != parameters[name].shape]
    noted, names = noted_tensors(module), names_of_parameters(module)

    def differs(name, value):
        other = unfolded.get(name)
        if other is not None and other.shape == value.shape:
            return is_off(value, other, tolerance)
        return not holds_elements(value, absent, tolerance)

    wrong = [name for name, value in parameters.items() if differs(name, value)]
    unnoted = [name for name in wrong if not names.get(name, {name}) & noted]
    if unnoted:
        return f"no warning is about {unnoted[0]!r}, which differs after one step"
    return "" if wrong else "no tensor differs after one step, so no warning explains it"
