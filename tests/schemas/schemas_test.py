#!/usr/bin/env python3
"""usage: schemas_test.py SOURCE_FOLDER HDPSIM

Every shipped study, cluster, profile and line of samples is what its schema says, and so are a plan and a result that the program writes.
The schemas of studies, clusters, validation sets and profiles are what the declarations of their keys say, that of a
result what those of its figures say (sim/results/run_figures.h; `scripts/dev keys` writes them); every key that the reader
of another file asks for stands in that file's schema. A wrong key is refused. Exit code 77 (skipped) without the
validator.
"""

import copy
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"NOT RUN: {missing} (Debian: apt-get install python3-jsonschema python3-yaml)", file=sys.stderr)
    sys.exit(77)

source = pathlib.Path(sys.argv[1])
hdpsim = sys.argv[2]
failures = []

SCHEMAS = {path.name: json.loads(path.read_text()) for path in sorted((source / "configs/schemas").glob("*.json"))}

BASE = "https://hdpsim.invalid/schemas/"  # they name each other by their files' names

# Who reads what: the sources whose keys must stand in the schema.
READERS = {
    "plan.schema.json": ["sim/plan/plan_file.cpp"],
    "samples.schema.json": ["calib/measure/sample_file.cpp", "calib/measure/impl/subject_reader.cpp"],
}
# map.require("key"), map.optional_in<double>("key", ...), text(map, "key").
ASKS = re.compile(r'(?:\.|->)(?:find|require|required|required_in|optional|optional_in)(?:<[^()]*>)?\("([a-z0-9_]+)"'
                  r'|\b\w+(?:<[^()]*>)?\((?:map|reader|sides|tile|range|fields|node|\w*_?reader_?), "([a-z0-9_]+)"')


class Loader(yaml.SafeLoader):
    """YAML as the program reads it: a date is a text, and 9e-05 a number."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}

Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"),
                             list("-+0123456789"))


def with_text_keys(value):
    """Keys of maps are texts, whatever they look like: `speed: {17: 0.8}`."""
    if isinstance(value, dict):
        return {str(key): with_text_keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [with_text_keys(item) for item in value]
    return value


def load(path):
    return with_text_keys(yaml.load(path.read_text(), Loader))


def validator(name):
    kind = jsonschema.validators.validator_for(SCHEMAS[name])
    kind.check_schema(SCHEMAS[name])
    resolver = jsonschema.RefResolver(BASE + name, SCHEMAS[name], store={BASE + each: SCHEMAS[each] for each in SCHEMAS})
    return kind(SCHEMAS[name], resolver=resolver)


def check(name, what, document):
    for error in validator(name).iter_errors(document):
        failures.append(f"{what}: {'.'.join(str(part) for part in error.absolute_path)}: {error.message[:300]}")


def keys_of(schema):
    """All property names anywhere in a schema."""
    keys = set()
    if isinstance(schema, dict):
        properties = schema.get("properties")
        if isinstance(properties, dict):
            keys.update(properties)
        for value in schema.values():
            keys |= keys_of(value)
    elif isinstance(schema, list):
        for value in schema:
            keys |= keys_of(value)
    return keys


def asked_for(place):
    files = sorted(place.rglob("*.cpp")) + sorted(place.rglob("*.h")) if place.is_dir() else [place]
    for file in files:
        for number, line in enumerate(file.read_text().splitlines(), 1):
            for found in ASKS.finditer(line):
                yield file, number, next(key for key in found.groups() if key)


def run(*arguments, folder):
    done = subprocess.run([hdpsim, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        failures.append(f"hdpsim {' '.join(arguments)}: {done.stderr}")


def check_shipped_files():
    count = 0
    for name, folders in {"study.schema.json": ["configs/studies"], "profile.schema.json": ["calib/profiles"],
                          "cluster.schema.json": ["configs/clusters", "configs/clusters/examples"],
                          "validation.schema.json": ["configs/validation"],
                          "tasks.schema.json": ["configs/tasks"]}.items():
        for folder in folders:
            for path in sorted((source / folder).glob("*.yaml")):
                check(name, str(path.relative_to(source)), load(path))
                count += 1
    for number, line in enumerate((source / "calib/traces/example.samples.jsonl").read_text().splitlines(), 1):
        check("samples.schema.json", f"example.samples.jsonl:{number}", json.loads(line))
    if count < 20:
        failures.append(f"only {count} shipped files were found")


def check_written_files():
    with tempfile.TemporaryDirectory() as folder:
        study = str(source / "configs/studies/tiny.yaml")
        run("study", study, "--set", "data.steps=1", "--out", "out", folder=folder)
        run("study", study, "--set", "data.steps=1", "--set", "uncertainty={samples: 20}", "--set",
            "failures={node_mtbf: 1 years, checkpoint: 60 s}", "--out", "asked", folder=folder)
        (pathlib.Path(folder) / "lengths.csv").write_text("length\n300\n20000\n9000\n200000\n")
        run("study", study, "--set", "data.steps=1", "--set", f"data.lengths={{file: {folder}/lengths.csv}}", "--out",
            "trace", folder=folder)
        run("study", study, "--set", "plans=[static, megatron-dp-balanced: {micro_batches_divided_by: 65536}]", "--set",
            "sweep={}", "--out", "refused", folder=folder)
        run("plan", study, "--plan", "hdp-balance", "--out", "plan.json", folder=folder)
        if failures:
            return
        out = pathlib.Path(folder)
        check("result.schema.json", "result.json", json.loads((out / "out/result.json").read_text()))
        check("result.schema.json", "result.json with what was asked for",
              json.loads((out / "asked/result.json").read_text()))
        refused = json.loads((out / "refused/result.json").read_text())
        check("result.schema.json", "result.json with a refused plan", refused)
        del refused["runs"][1]["refusal"]
        if validator("result.schema.json").is_valid(refused):
            failures.append("a run without figures is accepted where it was not refused")
        check("result.schema.json", "result.json of a trace", json.loads((out / "trace/result.json").read_text()))
        check("study.schema.json", "resolved study.yaml with what was asked for", load(out / "asked/study.yaml"))
        check("plan.schema.json", "plan.json", json.loads((out / "plan.json").read_text()))
        check("study.schema.json", "resolved study.yaml", load(out / "out/study.yaml"))


def check_keys():
    for name, places in READERS.items():
        keys = keys_of(SCHEMAS[name])
        found = 0
        for place in places:
            for file, number, key in asked_for(source / place):
                found += 1
                if key not in keys:
                    failures.append(f"{file.relative_to(source)}:{number}: '{key}' is not in configs/schemas/{name}")
        if found < 5:
            failures.append(f"{name}: only {found} keys were found in {', '.join(places)}")


def check_declarations():
    printed = {f"{name}.schema.json": ["keys", "--of", name] for name in ("study", "cluster", "validation", "profile",
                                                                             "prices", "tasks")}
    printed["result.schema.json"] = ["columns"]
    for name, command in printed.items():
        declared = subprocess.run([hdpsim, *command, "--format", "schema"], capture_output=True, text=True, check=True)
        if (source / "configs/schemas" / name).read_text() != declared.stdout:
            failures.append(f"{name} is not as the declarations say: run scripts/dev keys")


def check_that_mistakes_are_refused():
    study = load(source / "configs/studies/tiny.yaml")
    for change in ({"grian": "exact"}, {"grain": "coarse"}, {"data": {**study["data"], "context": "64 Ki tokens"}},
                   {"plans": [{"static": {"degree": 8}}]}, {"cluster": {"preset": "h100-rail", "gpu": 8}}):
        wrong = {**copy.deepcopy(study), **change}
        if validator("study.schema.json").is_valid(wrong):
            failures.append(f"a study with {change} is accepted")
    gemm = {"family": "gemm", "m": 1, "n": 2, "k": 3}
    for line in ({"subject": {**gemm, "m": 0}, "median_s": 1}, {"subject": gemm, "median_s": 0}, {"subject": gemm},
                 {"subject": gemm, "median_s": 1, "mean_s": 1}, {"subject": {**gemm, "family": "gemn"}, "median_s": 1},
                 {"schema": "hdpsim.samples/1", "device": "CPU"}):
        if validator("samples.schema.json").is_valid(line):
            failures.append(f"the line of samples {line} is accepted")


check_shipped_files()
check_written_files()
check_keys()
check_declarations()
check_that_mistakes_are_refused()
for failure in failures:
    print(f"FAILED: {failure}", file=sys.stderr)
if failures:
    sys.exit(1)
print("schemas, shipped files and readers agree")
