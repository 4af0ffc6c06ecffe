"""Are the parameters of two compiled programs placed alike? usage: same_plan.py DIR DIR"""
import json
import sys

here, there = ({p["name"]: p["placement"] for p in json.load(open(f"{folder}/manifest.json"))["parameters"]}
               for folder in sys.argv[1:3])
different = [name for name in here if here[name] != there.get(name)] + [name for name in there if name not in here]
for name in different:
    print(f"{name}: {here.get(name)} here, {there.get(name)} there")
if different:
    sys.exit(1)
print(f"{len(here)} parameters, placed alike")
