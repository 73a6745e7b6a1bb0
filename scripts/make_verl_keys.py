#!/usr/bin/env python3
"""Lists the configuration keys of an installed verl as planner/interop/verl/verl_keys.inc.

usage: make_verl_keys.py FOLDER > planner/interop/verl/verl_keys.inc
       make_verl_keys.py FOLDER VERSION=FOLDER... > planner/interop/verl/verl_former_keys.inc
       make_verl_keys.py FOLDER --inherited > planner/advice/inherited_keys.inc
       make_verl_keys.py FOLDER --other > tests/planner/interop/fixtures/verl_other_values.txt
  FOLDER  verl/trainer/config of the wheel, with the flattened _generated_*.yaml
Each line is {"key", engines, free}: engines is the sum of 1 = FSDP, 2 = Megatron, 4 = VeOmni and
8 = torchtitan; free = a map that takes any key below. With earlier versions, oldest first:
{"key", "last version that has it"}. --inherited: {"key", "default", engines} of the keys whose default
is another key's value, and of those others; profilers are left out. --other: "engines key=value" of each
switch and number, with another value than its default.
"""
import json
import os
import re
import sys

import yaml


def leaves(node, path):
    if isinstance(node, dict) and node:
        for key, value in node.items():
            if str(key) != "_target_":
                yield from leaves(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, isinstance(node, dict)


def trees_of(folder):
    for bit, engine in ((1, ""), (2, "megatron_"), (4, "veomni_"), (8, "torchtitan_")):
        path = f"{folder}/_generated_ppo_{engine}trainer.yaml"
        if not os.path.exists(path):  # of an earlier version, which has no such engine
            continue
        with open(path, encoding="utf-8") as file:
            yield bit, yaml.safe_load(file)


def keys_of(folder):
    keys, free = {}, {}
    for bit, tree in trees_of(folder):
        for key, is_map in leaves(tree, ""):
            keys[key] = keys.get(key, 0) | bit
            free[key] = free.get(key, False) or is_map
    return keys, free


def value_at(tree, key):
    for part in key.split("."):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree


def source_of(key, value):
    """The one key that a value refers to; None where it is no such reference."""
    reference = re.fullmatch(r"\$\{(?:oc\.select: *)?(\.?[\w.]+)(?:,[^$]*)?\}", str(value))
    if reference is None or "profiler" in key:
        return None
    name = reference.group(1)
    return key.rsplit(".", 1)[0] + name if name.startswith(".") else name


def inherited(folder):
    rows = {}
    for bit, tree in trees_of(folder):
        for key, _ in leaves(tree, ""):
            source = source_of(key, value_at(tree, key))
            if source is None:
                continue
            for each in (key, source):
                value = value_at(tree, each)
                if not isinstance(value, (dict, list)):
                    text = value if isinstance(value, str) else json.dumps(value)
                    rows[each, text] = rows.get((each, text), 0) | bit
    return rows


def other_than(value):
    if isinstance(value, bool):
        return str(not value)
    return value * 2 or 3 if isinstance(value, int) else value / 2 or 0.3


def others(folder):
    rows = {}
    for bit, tree in trees_of(folder):
        for key, _ in leaves(tree, ""):
            value = value_at(tree, key)
            if isinstance(value, (bool, int, float)):
                row = f"{key}={other_than(value)}"
                rows[row] = rows.get(row, 0) | bit
    return rows


def main():
    if sys.argv[2:] == ["--other"]:
        for row, bits in sorted(others(sys.argv[1]).items()):
            print(bits, row)
        return
    if sys.argv[2:] == ["--inherited"]:
        for (key, text), bits in sorted(inherited(sys.argv[1]).items()):
            print(f'{{"{key}", {json.dumps(text)}, {bits}}},')
        return
    keys, free = keys_of(sys.argv[1])
    if len(sys.argv) == 2:
        for key in sorted(keys):
            print(f'{{"{key}", {keys[key]}, {"true" if free[key] else "false"}}},')
        return
    maps = tuple(key + "." for key in keys if free[key])
    former = {}
    for argument in sys.argv[2:]:
        version, folder = argument.split("=", 1)
        for key in keys_of(folder)[0]:
            if key not in keys and not key.startswith(maps):
                former[key] = version
    for key in sorted(former):
        print(f'{{"{key}", "{former[key]}"}},')


if __name__ == "__main__":
    main()
