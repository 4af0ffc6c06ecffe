"""Initial parameter values of `--init seed:N`, in numpy: the same numbers, bit for bit, as
runtime/include/partita_rt/init.h, which states the algorithm.

    normal(seed, name, shape, std)      std x standard normal, float32
    gpt2_parameter(seed, name, shape)   what the compiler chooses for a GPT-2: normal(0.02) for
                                        matrices, ones for LayerNorm weights, zeros for biases
"""

import numpy

_CHUNK = 1 << 20  # elements at a time, to limit memory


def mix(x):
    """Returns splitmix64 of an array of uint64 (wrapping arithmetic)."""
    x = x + numpy.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return x ^ (x >> numpy.uint64(31))


def key(seed, name):
    """Returns mix(mix(seed) ^ fnv1a64(name)), as an array of one uint64."""
    fnv = 0xCBF29CE484222325
    for byte in name.encode():
        fnv = (fnv ^ byte) * 0x100000001B3 % (1 << 64)
    return mix(mix(numpy.array([seed], numpy.uint64)) ^ numpy.array([fnv], numpy.uint64))


def normal(seed, name, shape, std=0.02):
    """Element i is (the sum of twelve 16-bit uniforms - 12 * 32767.5) / 65536 * std."""
    count = int(numpy.prod(shape, dtype=numpy.int64))
    values = numpy.empty(count, numpy.float32)
    first = key(seed, name)
    for start in range(0, count, _CHUNK):
        stop = min(start + _CHUNK, count)
        index = numpy.arange(start, stop, dtype=numpy.uint64) * numpy.uint64(3)
        total = numpy.zeros(stop - start, numpy.int64)
        for j in range(3):
            bits = mix(first + index + numpy.uint64(j))
            for shift in (0, 16, 32, 48):
                total += ((bits >> numpy.uint64(shift)) & numpy.uint64(0xFFFF)).astype(numpy.int64)
        values[start:stop] = (total - 393210) / 65536.0 * std
    return values.reshape(shape)


def gpt2_parameter(seed, name, shape):
    """Decides by name, as numpy has no graph to look at; the compiler decides by the parameter's
    use."""
    if name.endswith(".bias"):
        return numpy.zeros(shape, numpy.float32)
    if ".ln_" in name:
        return numpy.ones(shape, numpy.float32)
    return normal(seed, name, shape)
