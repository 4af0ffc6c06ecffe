"""One thread's path through a kernel's machine code: the instructions it executes, and how often.

Integers, predicates and floats are computed as on sm_90, so that loops run as often as the launch's arguments and the
thread's position require. A load returns what the thread itself has stored, else what `memory` (or `shared`) returns, else 0. Other
threads do not exist: a shuffle returns the thread's own value, a vote its own predicate, and barriers do not wait. So
data-dependent branches take only one side.
"""

import functools
import re

import sass
from sass_floats import COMPARE, Floats, signed

MASK = 0xffffffff
PARAMETERS = 0x210  # in constant bank 0, after the block's and the grid's dimensions
SPECIAL = {"SR_TID.X": ("thread", 0), "SR_TID.Y": ("thread", 1), "SR_TID.Z": ("thread", 2), "SR_CTAID.X": ("block", 0),
           "SR_CTAID.Y": ("block", 1), "SR_CTAID.Z": ("block", 2)}
PASSES = {"BAR", "BSSY", "BSYNC", "BREAK", "NOP", "WARPSYNC", "DEPBAR", "LDGDEPBAR", "MEMBAR", "FENCE", "WARPGROUP", "ENDCOLLECTIVE",
          "ERRBAR", "CCTL", "YIELD", "WARPGROUPSET", "UCGABAR_ARV", "PREFETCH"}
MOST_STEPS = 3_000_000


def bitwise(table, a, b, c, mask=MASK):
    result = 0
    for case in range(8):
        if table >> case & 1:
            result |= (a if case & 4 else ~a) & (b if case & 2 else ~b) & (c if case & 1 else ~c)
    return result & mask


def split_operands(text):
    """Splits at commas, none of which are inside brackets."""
    return [each.strip() for each in text.split(",")] if text.strip() else []


class Instruction:
    """Parses `@!P0 IADD3.X R4, R5, UR6, RZ, P1, !PT`."""

    def __init__(self, text):
        guard = re.match(r"@(!?)(U?P\w+)\s+", text)
        self.text, self.guard = text, (guard[2], guard[1] == "!") if guard else None
        self.name, _, rest = sass.without_guard(text).partition(" ")
        self.base, *self.modifiers = self.name.split(".")
        self.operands = split_operands(rest.replace(".reuse", ""))
        self.uniform = self.base.startswith("U")
        self.kind = self.base[1:] if self.uniform else self.base

    def has(self, modifier):
        return modifier in self.modifiers


@functools.lru_cache(None)
def registers_of(name, count):
    """Returns R4, R5, ... for a wide value; RZ has any width."""
    match = re.fullmatch(r"(U?R)(\d+)", name)
    return tuple(f"{match[1]}{int(match[2]) + number}" if match else name for number in range(count))


@functools.lru_cache(None)
def terms_of(address):
    return tuple(re.findall(r"-?[^+\-]+", address))


@functools.lru_cache(None)
def last_brackets(operand):
    return re.search(r"\[([^\[\]]*)\]$", operand)[1]


def words(instruction):
    """Returns the number of words of a memory access."""
    return 4 if instruction.has("128") else 2 if instruction.has("64") else 1


@functools.lru_cache(None)
def is_predicate(name):
    return re.fullmatch(r"!?U?P[\dT]", name) is not None


class Thread(Floats):
    def __init__(self, code, constants, place, memory=None, shared=None):
        """code: {address: Instruction} in order; constants: bank 0, as bytes; place: {"thread": (x, y, z), "block": (x, y,
        z)}."""
        self.code, self.constants, self.place = code, constants, place
        self.memory = {"global": memory, "shared": shared}
        self.registers, self.predicates = {"RZ": 0, "URZ": 0, "SRZ": 0}, {}
        self.stored = {}

    # Operands.

    def predicate(self, name):
        value = name.endswith("PT") or self.predicates.get(name.lstrip("!"), False)
        return value != name.startswith("!")

    def raw(self, name):
        """Returns 32 bits, ignoring a sign."""
        if (value := self.registers.get(name)) is not None:
            return value
        if re.fullmatch(r"U?R\d+", name):
            return 0
        if match := re.fullmatch(r"c\[0x(\w+)\]\[(.*)\]", name):
            return self.constant(int(match[1], 16), self.address(match[2]), 4)
        return int(name, 0) & MASK

    def integer(self, name, complement=None):
        """complement: the list to which the carry of -x = ~x + 1 is added; if None, the carry is in the result."""
        if name[0] == "~":
            return ~self.raw(name[1:]) & MASK
        if name[0] == "-" and not name[1:2].isdigit():
            value = self.raw(name[1:].strip("|"))
            if complement is not None:
                complement.append(1)
                return ~value & MASK
            return -value & MASK
        if name[0] == "|":
            return abs(signed(self.raw(name.strip("|")))) & MASK
        return self.raw(name)

    def pair(self, name):
        """Returns 64 bits: a register and the next one."""
        low, high = (self.registers.get(each, 0) for each in registers_of(name.removesuffix(".64"), 2))
        return low | high << 32

    def put(self, name, value):
        if name not in ("RZ", "URZ"):
            self.registers[name] = value & MASK

    def put_wide(self, name, value, words=2):
        for word, each in enumerate(registers_of(name, words)):
            self.put(each, value >> 32 * word)

    def put_predicate(self, name, value):
        if not name.endswith("PT"):
            self.predicates[name] = bool(value)

    def address(self, text):
        """Evaluates R8.64+UR4+0x10, where .64 marks a 64-bit register."""
        total = 0
        for term in terms_of(text):
            is_number = term.lstrip("-")[0].isdigit()
            total += int(term, 0) if is_number else self.pair(term) if term.endswith(".64") else self.integer(term)
        return total

    def constant(self, bank, at, size):
        data = self.constants[at:at + size] if bank == 0 else b""
        return int.from_bytes(data, "little")

    # Execution.

    def run(self, visit):
        """Calls visit(instruction) for each that is executed."""
        addresses = list(self.code)
        following = dict(zip(addresses, addresses[1:]))
        at = addresses[0]
        for _ in range(MOST_STEPS):
            instruction = self.code[at]
            visit(instruction)
            guard = instruction.guard
            if guard and self.predicate(guard[0]) == guard[1]:
                at = following[at]
                continue
            target = self.step(instruction)
            if target == "exit":
                return
            at = following[at] if target is None else target
        raise sass.Problem(f"a thread that does not end within {MOST_STEPS} instructions")

    def step(self, i):
        if i.kind in PASSES or i.base in PASSES:
            return None
        if i.kind == "EXIT":
            return "exit"
        if i.kind in ("BRA", "CALL"):
            if i.has("DIV") or not all(self.predicate(each) for each in i.operands[:-1] if is_predicate(each)):
                return None
            return int(i.operands[-1], 16)
        if i.kind == "RET":
            return self.raw(i.operands[0].split()[0])
        handler = getattr(self, "do_" + i.kind.lower(), None) or getattr(self, "do_" + i.base.lower(), None)
        if handler is None:
            raise sass.Problem(f"'{i.text}': sass_thread.py does not know what {i.base} does")
        handler(i, *i.operands)
        return None

    # Integers.

    def sum(self, i, destination, terms, predicates_out, carries):
        extra = []
        total = sum(self.integer(each, extra) for each in terms) + sum(carries) + (0 if i.has("X") else len(extra))
        self.put(destination, total)
        for number, name in enumerate(predicates_out, 1):
            self.put_predicate(name, total >> 32 >= number)

    def do_iadd3(self, i, destination, *rest):
        out = []
        rest = list(rest)
        while is_predicate(rest[0]):
            out.append(rest.pop(0))
        self.sum(i, destination, rest[:3], out, [self.predicate(each) for each in rest[3:]])

    def do_viadd(self, i, destination, a, b):
        self.put(destination, self.integer(a) + self.integer(b))

    def do_iabs(self, i, destination, a):
        self.put(destination, abs(signed(self.raw(a))))

    def do_popc(self, i, destination, a):
        self.put(destination, bin(self.integer(a)).count("1"))

    def do_imad(self, i, destination, *rest):
        rest = list(rest)
        out = rest.pop(0) if is_predicate(rest[0]) else None
        a, b = self.integer(rest[0]), self.integer(rest[1])
        wide, high = i.has("WIDE"), i.has("HI")
        if not i.has("U32") and (wide or high):
            a, b = signed(a), signed(b)
        if wide or high:
            c = self.pair(rest[2]) if re.match(r"U?R", rest[2]) else self.raw(rest[2])
        else:
            c = self.integer(rest[2])
        total = a * b + c + sum(self.predicate(each) for each in rest[3:])
        if wide:
            self.put_wide(destination, total)
        else:
            self.put(destination, total >> 32 if high else total)
        if out:
            self.put_predicate(out, total >> 64)

    def do_lea(self, i, destination, *rest):
        rest = list(rest)
        out = rest.pop(0) if is_predicate(rest[0]) else None
        carry = self.predicate(rest.pop()) if is_predicate(rest[-1]) else 0
        shift, low, base = self.raw(rest[-1]), self.integer(rest[0]), self.integer(rest[1])
        if i.has("HI"):
            over = self.integer(rest[2]) if len(rest) == 4 else MASK if low >> 31 else 0
            total = ((over << 32 | low) << shift >> 32 & MASK) + base + carry
        else:
            total = (low << shift & MASK) + base
        self.put(destination, total)
        if out:
            self.put_predicate(out, total >> 32)

    def do_shf(self, i, destination, a, n, c):
        low, high, shift = self.integer(a), self.integer(c), self.integer(n)
        both = high << 32 | low
        shift = shift % 32 if i.has("W") else min(shift, 64 if "64" in i.name else 32)
        if i.has("L"):
            shifted = both << shift
            self.put(destination, shifted >> 32 if i.has("HI") else shifted)
        else:
            shifted = (signed(both, 64) if "S" in i.name.split(".R.")[1] else both) >> shift
            self.put(destination, shifted >> 32 if i.has("HI") else shifted)

    def do_lop3(self, i, *rest):
        rest = list(rest)
        out = rest.pop(0) if is_predicate(rest[0]) else None
        destination, a, b, c, table = rest[:5]
        result = bitwise(int(table, 16), *(self.integer(each) for each in (a, b, c)))
        self.put(destination, result)
        if out:
            self.put_predicate(out, result)

    def do_plop3(self, i, out, other, a, b, c, table, more):
        bits = [MASK if self.predicate(each) else 0 for each in (a, b, c)]
        self.put_predicate(out, bitwise(int(table, 16), *bits))
        self.put_predicate(other, bitwise(int(more, 16), *bits))

    def do_prmt(self, i, destination, a, selector, b):
        bytes_ = (self.integer(b) << 32 | self.integer(a)).to_bytes(8, "little")
        result = 0
        for byte in range(4):
            choice = self.integer(selector) >> 4 * byte & 15
            value = bytes_[choice & 7]
            result |= (0xff * (value >> 7) if choice & 8 else value) << 8 * byte
        self.put(destination, result)

    def do_isetp(self, i, out, other, a, b, with_, before=None):
        compare = next(each for each in i.modifiers if each in COMPARE)
        values = [self.integer(each) for each in (a, b)]
        if not i.has("U32") or i.has("EX") and not i.has("U32"):
            values = [signed(each) for each in values]
        result = COMPARE[compare](*values)
        if i.has("EX"):
            equal, low = values[0] == values[1], self.predicate(before)
            result = {"EQ": equal and low, "NE": not equal or low}.get(compare, (result and not equal) or (equal and low))
        self.combine(i, out, other, result, with_)

    def combine(self, i, out, other, result, with_):
        with_ = self.predicate(with_)
        join = (lambda x: x or with_) if i.has("OR") else (lambda x: x and with_)
        self.put_predicate(other, join(not result))
        self.put_predicate(out, join(result))

    def do_sel(self, i, destination, a, b, p):
        self.put(destination, self.integer(a if self.predicate(p) else b))

    def do_vimnmx(self, i, destination, a, b, p):
        self.minimum_or_maximum(i, destination, self.integer(a), self.integer(b), p)

    def do_viaddmnmx(self, i, destination, a, b, c, p):
        self.minimum_or_maximum(i, destination, (self.integer(a) + self.integer(b)) & MASK, self.integer(c), p)

    def minimum_or_maximum(self, i, destination, a, b, p):
        key = (lambda x: x) if i.has("U32") else signed
        self.put(destination, (min if self.predicate(p) else max)(a, b, key=key))

    # Moves.

    def do_mov(self, i, destination, a, *_):
        self.put(destination, self.integer(a))

    do_r2ur = do_mov

    def do_s2r(self, i, destination, name):
        if name in SPECIAL:
            kind, axis = SPECIAL[name]
            self.put(destination, self.place[kind][axis])
        elif name == "SR_LANEID":
            self.put(destination, self.place["thread"][0] % 32)
        else:
            self.put(destination, 0)

    do_s2ur = do_s2r

    def do_cs2r(self, i, destination, _):
        self.put_wide(destination, 0, 1 if i.has("32") else 2)

    def do_p2r(self, i, destination, _, a, mask):
        bits = sum(self.predicate(f"P{number}") << number for number in range(7))
        self.put(destination, self.integer(a) | bits & int(mask, 16))

    def do_r2p(self, i, _, a, mask):
        for number in range(7):
            if int(mask, 16) >> number & 1:
                self.predicates[f"P{number}"] = bool(self.integer(a) >> number & 1)

    def do_shfl(self, i, out, destination, a, *_):
        self.put_predicate(out, True)
        self.put(destination, self.integer(a))

    def do_vote(self, i, *operands):
        *destinations, p = operands
        for name in destinations:
            if is_predicate(name):
                self.put_predicate(name, self.predicate(p))
            else:
                self.put(name, int(self.predicate(p)) << self.place["thread"][0] % 32)

    do_voteu = do_vote

    # Memory.

    def do_ldc(self, i, destination, place):
        bank, at = re.fullmatch(r"c\[0x(\w+)\]\[(.*)\]", place).groups()
        size = 8 if i.has("64") else 1 if i.has("U8") else 4
        self.put_wide(destination, self.constant(int(bank, 16), self.address(at), size), max(1, size // 4))

    def load(self, i, destination, operand, space):
        at = self.address(last_brackets(operand))
        for word, name in enumerate(registers_of(destination, words(i))):
            place = (space, at + 4 * word)
            others = self.memory.get(space)
            self.put(name, self.stored[place] if place in self.stored else others(place[1]) if others else 0)

    def store(self, i, operand, source, space):
        at = self.address(last_brackets(operand))
        for word, name in enumerate(registers_of(source, words(i))):
            self.stored[space, at + 4 * word] = self.raw(name)

    def do_ldg(self, i, destination, operand, *_):
        self.load(i, destination, operand, "global")

    def do_lds(self, i, destination, operand, *_):
        self.load(i, destination, operand, "shared")

    def do_ldl(self, i, destination, operand, *_):
        self.load(i, destination, operand, "local")

    def do_stg(self, i, operand, source, *_):
        self.store(i, operand, source, "global")

    def do_sts(self, i, operand, source, *_):
        self.store(i, operand, source, "shared")

    def do_stl(self, i, operand, source, *_):
        self.store(i, operand, source, "local")

    def do_ldgsts(self, i, *_):
        pass

    do_hgmma = do_red = do_redg = do_stsm = do_ldgsts

    def do_syncs(self, i, *operands):
        """A bulk copy has always arrived."""
        if i.has("PHASECHK"):
            self.put_predicate(operands[0], True)

    def do_atomg(self, i, *operands):
        for name in operands[:2]:
            if is_predicate(name):
                self.put_predicate(name, True)
            elif re.fullmatch(r"R\w+", name):
                self.put(name, 0)

    do_atoms = do_atomg
