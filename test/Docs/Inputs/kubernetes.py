"""Checks a Kubernetes manifest by the published schema of its kind.

kubernetes.py check MANIFEST SCHEMA               prints what is wrong; exit status 1 if anything is
kubernetes.py reduce CRD MANIFEST SOURCE > SCHEMA   keeps what the manifest needs of a CustomResourceDefinition; SOURCE says where that is from

A cluster drops fields that the schema does not have; here they are errors."""
import json
import sys

import jsonschema
import yaml


def reduced(schema, values):
    """Keeps the fields of an object that one of these values has, without their descriptions."""
    kept = {key: value for key, value in schema.items() if key not in ("description", "properties", "items", "additionalProperties")}
    if "properties" in schema:
        objects = [value for value in values if isinstance(value, dict)]
        kept["properties"] = {name: reduced(its, [value[name] for value in objects if name in value])
                              for name, its in schema["properties"].items() if any(name in value for value in objects)}
        kept["additionalProperties"] = False
    if isinstance(schema.get("additionalProperties"), dict):
        kept["additionalProperties"] = reduced(schema["additionalProperties"],
                                               [each for value in values if isinstance(value, dict) for each in value.values()])
    if "items" in schema:
        kept["items"] = reduced(schema["items"], [each for value in values if isinstance(value, list) for each in value])
    return kept


def definition_of(crd, manifest):
    """Returns the schema of the manifest's kind and version."""
    with open(crd) as file:
        for document in yaml.safe_load_all(file):
            if document and document["kind"] == "CustomResourceDefinition" and document["spec"]["names"]["kind"] == manifest["kind"]:
                for version in document["spec"]["versions"]:
                    if f"{document['spec']['group']}/{version['name']}" == manifest["apiVersion"]:
                        return version["schema"]["openAPIV3Schema"]
    raise SystemExit(f"{crd} has no {manifest['kind']} of {manifest['apiVersion']}")


def reduce(crd, path, source):
    with open(path) as file:
        manifest = yaml.safe_load(file)
    schema = reduced(definition_of(crd, manifest), [manifest])
    for name in ("apiVersion", "kind"):
        schema["properties"][name] = {"const": manifest[name]}
    schema["properties"]["metadata"] = {"type": "object", "required": ["name"]}
    print(json.dumps({"$comment": source, **schema}, indent=1, sort_keys=True))


def check(path, schema):
    with open(path) as file:
        manifest = yaml.safe_load(file)
    with open(schema) as file:
        validator = jsonschema.Draft7Validator(json.load(file))
    problems = sorted(f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(manifest))
    for problem in problems:
        print(f"{path}: {problem}")
    if any("dditional properties" in problem for problem in problems):
        print("a field that the full schema has: reduce that again")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit({"check": check, "reduce": reduce}[sys.argv[1]](*sys.argv[2:]))
