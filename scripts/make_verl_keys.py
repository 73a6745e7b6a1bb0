#!/usr/bin/env python3
"""Lists the configuration keys of an installed verl as planner/interop/verl_keys.inc.

usage: make_verl_keys.py FOLDER > planner/interop/verl_keys.inc
  FOLDER  verl/trainer/config of the wheel, with the flattened _generated_*.yaml
Each line is {"key", engines, free}: engines 1 = FSDP, 2 = Megatron, 3 = both; free = a map that
takes any key below.
"""
import sys

import yaml


def leaves(node, path):
    if isinstance(node, dict) and node:
        for key, value in node.items():
            if str(key) != "_target_":
                yield from leaves(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, isinstance(node, dict)


def main():
    folder = sys.argv[1]
    keys, free = {}, {}
    for bit, name in ((1, "_generated_ppo_trainer.yaml"), (2, "_generated_ppo_megatron_trainer.yaml")):
        with open(f"{folder}/{name}", encoding="utf-8") as file:
            for key, is_map in leaves(yaml.safe_load(file), ""):
                keys[key] = keys.get(key, 0) | bit
                free[key] = free.get(key, False) or is_map
    for key in sorted(keys):
        print(f'{{"{key}", {keys[key]}, {"true" if free[key] else "false"}}},')


if __name__ == "__main__":
    main()
