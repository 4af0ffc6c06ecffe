"""inference.py make DATA | check DATA RESULTS | constant RESULTS: see inference.test."""
import sys

import numpy

from tensor_files import read_tensors, write_tensors  # noqa: E402

what, *paths = sys.argv[1:]
if what == "make":  # six samples, of which a batch has four
    write_tensors(paths[0], {"x": numpy.arange(18.0).reshape(6, 3) / 7, "k": numpy.array([2, -1, 3])})
elif what == "check":
    data, results = (read_tensors(path)[0] for path in paths)
    x = data["x"][:4]
    numpy.testing.assert_array_equal(results["same"], x.astype(numpy.float32))
    numpy.testing.assert_allclose(results["scaled"], x * data["k"], rtol=1e-6)
else:
    numpy.testing.assert_array_equal(read_tensors(paths[0])[0]["ones"], numpy.ones((2, 3)))
