#!/usr/bin/env python3
"""Writes Inputs/pytorch.json: where PyTorch's optimizers bring the first parameters of Inputs/trajectories.py in 100
steps of double and of single precision. Run in the virtual environment (tools/python/make_venv)."""

import json
import os
import sys

import torch

inputs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Inputs")
sys.path.insert(0, inputs)
import trajectories

result = {"torch": torch.__version__, "steps": 100}
for name, (_, optimizer, hyper) in trajectories.CONFIGURATIONS.items():
    if not optimizer:
        continue
    result[name] = {}
    for kind in ("float64", "float32"):
        parameter = torch.nn.Parameter(torch.from_numpy(trajectories.start().astype(kind)))
        steps = getattr(torch.optim, optimizer)([parameter], lr=trajectories.RATE, **hyper)
        for gradient in trajectories.gradients(100):
            parameter.grad = torch.from_numpy(gradient.astype(kind))
            steps.step()
        result[name][kind] = [float(x) for x in parameter.detach()[:64]]
with open(os.path.join(inputs, "pytorch.json"), "w") as file:
    json.dump(result, file, indent=0)
    file.write("\n")
