#!/usr/bin/env python3
"""Prints, as a Markdown table, what ONNX files hold: nodes, opset, parameters, operators.

    onnx_histogram.py FILE.onnx...

Needs the environment of make_venv.
"""

import collections
import os
import sys

import onnx


def main():
    print("| file | bytes | opset | nodes | float tensors | operators |\n|---|---|---|---|---|---|")
    for path in sys.argv[1:]:
        model = onnx.load(path, load_external_data=False)
        counts = collections.Counter(node.op_type for node in model.graph.node).most_common()
        weights = [t for t in model.graph.initializer
                   if t.data_type == onnx.TensorProto.FLOAT and len(t.dims) >= 1]
        print(f"| {os.path.basename(path)} | {os.path.getsize(path)} | "
              f"{model.opset_import[0].version} | {len(model.graph.node)} | {len(weights)} | "
              f"{', '.join(f'{name} {count}' for name, count in counts)} |")


if __name__ == "__main__":
    main()
