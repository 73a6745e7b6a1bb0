#!/usr/bin/env python3
"""What verl 0.9.1's own configuration is with lists of overrides.

usage: composed_oracle.py FILE
  FILE  JSON: a list of lists of Hydra's overrides

Prints a JSON list: of each, every key and the value that it resolves to.
"""
import json
import sys

from hydra import compose, initialize_config_module
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException


def leaves(node, path):
    for name in node:
        key = f"{path}.{name}" if path else str(name)
        try:
            value = node[name]
        except OmegaConfBaseException:  # missing, or a reference to what only a run knows
            continue
        if isinstance(value, DictConfig):
            yield from leaves(value, key)
        else:
            yield key, OmegaConf.to_container(value) if isinstance(value, ListConfig) else value


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cases = json.load(file)
    with initialize_config_module("verl.trainer.config", version_base=None):
        composed = [dict(leaves(compose("ppo_trainer", overrides=case), "")) for case in cases]
    print(json.dumps(composed))


if __name__ == "__main__":
    main()
