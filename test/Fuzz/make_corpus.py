"""Writes the seed corpus of import_fuzzer: every model of the importer's tests, one of every node test
that ./check runs, and the exported Transformers of test/Data, as far as a file has at most LARGEST bytes.

usage: make_corpus.py FOLDER LARGEST
"""
import glob
import os
import re
import shutil
import sys
import zipfile

here = os.path.dirname(os.path.abspath(__file__))
tests = os.path.join(here, "..", "Import")
sys.path.insert(0, tests)
import onnx_writer

folder, largest = sys.argv[1], int(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(folder)
for test in sorted(os.listdir(tests)):
    if not test.endswith(".test"):
        continue
    parts = re.split(r"^//--- (\S+)\n", open(os.path.join(tests, test)).read(), flags=re.M)
    for name, text in zip(parts[1::2], parts[2::2]):
        case = os.path.join(folder, "case")
        os.makedirs(case)
        scope = {key: getattr(onnx_writer, key) for key in dir(onnx_writer)}
        model = os.path.join(case, "model.onnx")
        scope.update(output=model, folder=case, os=os)
        exec(compile(text, test + ":" + name, "exec"), scope)
        if os.path.isfile(model) and os.path.getsize(model) <= largest:
            os.rename(model, os.path.join(folder, f"{test[:-5]}-{name}"))
        shutil.rmtree(case)
with zipfile.ZipFile(os.path.join(tests, "Nodes", "models.zip")) as models:
    models.extractall(folder)
for model in glob.glob(os.path.join(here, "..", "Data", "**", "*.onnx"), recursive=True):
    if os.path.getsize(model) <= largest:
        shutil.copy(model, folder)
