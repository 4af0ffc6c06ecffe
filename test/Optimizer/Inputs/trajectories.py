"""Gradients, learning rate and hyperparameters of the optimizers' trajectories: what kernels.py runs and
make_pytorch.py had PyTorch run."""

import numpy

ELEMENTS = 1024
RATE = 1e-3
FREEZE = 300  # the last step that may update the variance of 1-bit Adam, 1-bit LAMB and 0/1 Adam

# The plan's options and the hyperparameters of PyTorch's class.
CONFIGURATIONS = {
    "adamw": ("--optimizer adamw --weight-decay 0.1 --betas 0.9,0.95", "AdamW", dict(betas=(0.9, 0.95), weight_decay=0.1)),
    "adam": ("--optimizer adam --weight-decay 0.01 --eps 1e-6", "Adam", dict(eps=1e-6, weight_decay=0.01)),
    "adam_plain": ("--optimizer adam --no-bias-correction", None, {}),
    "sgd": ("--optimizer sgd --weight-decay 0.01", "SGD", dict(weight_decay=0.01)),
    "momentum": ("--optimizer sgd --momentum 0.9 --weight-decay 0.01", "SGD", dict(momentum=0.9, weight_decay=0.01)),
    "nesterov": ("--optimizer sgd --momentum 0.8 --nesterov", "SGD", dict(momentum=0.8, nesterov=True)),
    "lion": ("--optimizer lion --weight-decay 0.1", None, {}),
    "lamb": ("--optimizer lamb --weight-decay 0.1 --lamb-bounds 0.1,0.5", None, {}),
    "adagrad": ("--optimizer adagrad --weight-decay 0.01", "Adagrad", dict(weight_decay=0.01)),
    "onebit_adam": (f"--optimizer onebit-adam --freeze-step {FREEZE} --weight-decay 0.1", None, {}),
    "onebit_lamb": (f"--optimizer onebit-lamb --freeze-step {FREEZE} --weight-decay 0.1 --lamb-bounds 0.1,0.5", None, {}),
    "zero_one_adam": (f"--optimizer zero-one-adam --var-freeze-step {FREEZE} --weight-decay 0.1 --bias-correction", None, {}),
}


def start():
    return numpy.random.RandomState(7).standard_normal(ELEMENTS).astype(numpy.float32)


def gradients(steps):
    """Of very different sizes, with a zero among them, as those of a model are."""
    random = numpy.random.RandomState(11)
    sizes = 10.0 ** random.uniform(-5, 1, ELEMENTS)
    sizes[3] = 0
    for _ in range(steps):
        yield (sizes * (0.3 + random.standard_normal(ELEMENTS))).astype(numpy.float32)
