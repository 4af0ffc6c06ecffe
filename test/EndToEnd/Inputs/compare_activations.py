"""compare_activations.py RANKS TOLERANCE ONE.txt MANY.txt: activations at the peak, of two reports of memory.

Those of one of RANKS ranks are that part of one rank's, up to the relative tolerance."""
import re
import sys

ranks, tolerance = int(sys.argv[1]), float(sys.argv[2])
one, many = (int(re.search(r"activations +([\d,]+)", open(path).read()).group(1).replace(",", "")) for path in sys.argv[3:])
off = many * ranks / one - 1
assert abs(off) <= tolerance, f"{many:,} bytes of activations are {off:+.2%} off a {ranks}th of {one:,}"
