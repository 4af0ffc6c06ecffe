"""Executes instructions on floats and doubles for sass_thread.Thread: rounded to nearest, whatever rounding they request."""

import math
import operator
import re
import struct

import sass

COMPARE = {"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge, "EQ": operator.eq, "NE": operator.ne}


def as_float(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def float_bits(value):
    try:
        return struct.unpack("<I", struct.pack("<f", value))[0]
    except OverflowError:
        return 0x7f800000 if value > 0 else 0xff800000


def as_double(bits):
    return struct.unpack("<d", struct.pack("<Q", bits))[0]


def double_bits(value):
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def quotient(a, b):
    if b == 0:
        return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a)
    return a / b


def guarded(function, x, otherwise):
    try:
        return function(x)
    except (ValueError, OverflowError, ZeroDivisionError):
        return otherwise


FUNCTIONS = {"RCP": lambda x: quotient(1.0, x), "RSQ": lambda x: quotient(1.0, guarded(math.sqrt, x, math.nan)),
             "SQRT": lambda x: guarded(math.sqrt, x, math.nan), "EX2": lambda x: guarded(lambda y: 2.0 ** y, x, math.inf),
             "LG2": lambda x: guarded(math.log2, x, -math.inf), "TANH": math.tanh}


def signed(value, bits=32):
    return value - (1 << bits) if value >> (bits - 1) else value


def number(name, places, read):
    """Returns an operand: the value that `read` finds, or a literal; possibly negated, or its absolute value."""
    sign, name = (-1.0, name[1:]) if name[0] == "-" else (1.0, name.lstrip("+"))
    absolute, name = name[0] == "|", name.strip("|")
    written = {"INF": math.inf, "QNAN": math.nan}
    value = read(name) if re.match(places, name) else written[name] if name in written else float(name)
    return sign * (abs(value) if absolute else value)


class Floats:
    def real(self, name):
        """Returns a float, from a register or a literal."""
        return number(name, r"(U?R|c\[|U?RZ)", lambda place: as_float(self.raw(place)))

    def double(self, name):
        return number(name, r"U?R", lambda place: as_double(self.pair(place)))

    def do_fadd(self, i, destination, a, b):
        self.put(destination, float_bits(self.real(a) + self.real(b)))

    def do_fmul(self, i, destination, a, b):
        self.put(destination, float_bits(self.real(a) * self.real(b)))

    def do_ffma(self, i, destination, a, b, c):
        self.put(destination, float_bits(self.real(a) * self.real(b) + self.real(c)))

    def do_fmnmx(self, i, destination, a, b, p):
        self.put(destination, float_bits((min if self.predicate(p) else max)(self.real(a), self.real(b))))

    def do_fsel(self, i, destination, a, b, p):
        self.put(destination, float_bits(self.real(a if self.predicate(p) else b)))

    def compare_reals(self, i, a, b):
        unordered = math.isnan(a) or math.isnan(b)
        for each in i.modifiers:
            if each in COMPARE:
                return not unordered and COMPARE[each](a, b)
            if each[:-1] in COMPARE and each.endswith("U"):
                return unordered or COMPARE[each[:-1]](a, b)
            if each in ("NAN", "NUM"):
                return unordered == (each == "NAN")
        raise sass.Problem(f"'{i.text}': sass_thread.py does not know this comparison")

    def do_fsetp(self, i, out, other, a, b, with_):
        self.combine(i, out, other, self.compare_reals(i, self.real(a), self.real(b)), with_)

    def do_fset(self, i, destination, a, b, with_):
        self.put(destination, float_bits(float(self.compare_reals(i, self.real(a), self.real(b)) and self.predicate(with_))))

    def do_fchk(self, i, out, a, b):
        self.put_predicate(out, False)

    def do_mufu(self, i, destination, a):
        if i.modifiers[0].endswith("64H"):
            value = FUNCTIONS[i.modifiers[0][:3]](as_double(self.raw(a) << 32))
            return self.put(destination, double_bits(value) >> 32)
        return self.put(destination, float_bits(FUNCTIONS[i.modifiers[0]](self.real(a))))

    def do_hfma2(self, i, destination, *rest):
        high, low = (struct.unpack("<H", struct.pack("<e", float(each.strip().lstrip("+").lower())))[0] for each in rest[-2:])
        self.put(destination, high << 16 | low)

    def do_hadd2(self, i, destination, a, b):
        name, _, half = b.partition(".")
        bits = self.raw(name) >> (16 if half.startswith("H1") else 0) & 0xffff
        self.put(destination, float_bits(struct.unpack("<e", struct.pack("<H", bits))[0]))

    def do_f2fp(self, i, destination, a, b, merged=None):
        if merged:  # two numbers of 8 bits beside others: their values decide nothing
            return self.put(destination, 0)
        halves = [float_bits(self.real(each)) >> 16 for each in (a, b)]
        self.put(destination, halves[0] << 16 | halves[1])

    def do_f2f(self, i, destination, a):
        to, of = [each for each in i.modifiers if each in ("BF16", "F16", "F32", "F64")]
        value = self.double(a) if of == "F64" else self.real(a)
        if to == "F64":
            self.put_wide(destination, double_bits(value))
        else:
            self.put(destination, float_bits(value) >> (16 if to in ("BF16", "F16") else 0))

    def do_i2f(self, i, destination, a):
        wide = i.has("S64") or i.has("U64")
        value = self.pair(a) if wide else self.integer(a)
        if not (i.has("U32") or i.has("U64")):
            value = signed(value, 64 if wide else 32)
        if i.has("F64"):
            self.put_wide(destination, double_bits(float(value)))
        else:
            self.put(destination, float_bits(float(value)))

    do_i2fp = do_i2f

    def do_f2i(self, i, destination, a):
        value = self.double(a) if i.has("F64") else self.real(a)
        value = 0 if math.isnan(value) else int(max(min(value, 2.0 ** 63), -2.0 ** 63))
        self.put_wide(destination, value, 2 if i.has("S64") or i.has("U64") else 1)

    def do_dadd(self, i, destination, a, b):
        self.put_wide(destination, double_bits(self.double(a) + self.double(b)))

    def do_dmul(self, i, destination, a, b):
        self.put_wide(destination, double_bits(self.double(a) * self.double(b)))

    def do_dfma(self, i, destination, a, b, c):
        self.put_wide(destination, double_bits(self.double(a) * self.double(b) + self.double(c)))

    def do_dsetp(self, i, out, other, a, b, with_):
        a, b = self.double(a), self.double(b)
        if i.has("MAX") or i.has("MIN"):  # which of the two it is
            self.put_predicate(other, False)
            return self.put_predicate(out, a > b if i.has("MAX") else a < b)
        return self.combine(i, out, other, self.compare_reals(i, a, b), with_)
