#!/usr/bin/env python3
"""Reads a page with Prometheus' own Python client and compares it with what it was made of.

usage: prometheus_oracle.py PAGE NUMBERS. NUMBERS is JSON: each metric's name and its value in
hexadecimal. A gauge of one sample has the metric's name as its help text; samples of several have
it as their label, but for the step's own. Exit status 1 and a line for what differs.
"""
import json
import sys

from prometheus_client.parser import text_string_to_metric_families

with open(sys.argv[1], newline="") as page:
    families = list(text_string_to_metric_families(page.read()))
with open(sys.argv[2]) as numbers:
    wanted = {name: float.fromhex(value) for name, value in json.load(numbers).items()}

found = {}
for family in families:
    if family.type != "gauge" or not family.samples:
        sys.exit(f"{family.name} is a {family.type} of {len(family.samples)} samples")
    for sample in family.samples:
        several = len(family.samples) > 1
        own = family.name == "tessera_step" and not sample.labels
        labelled = {"metric"} if several and not own else set()
        if sample.name != family.name or not sample.name.startswith("tessera_") or set(sample.labels) != labelled:
            sys.exit(f"the sample {sample} of {family.name}")
        words = family.documentation.split(", ")[0] if several else family.documentation
        name = sample.labels["metric"] if labelled else words
        if name in found:
            sys.exit(f"{name} twice")
        found[name] = float(sample.value)
if len({family.name for family in families}) != len(families):
    sys.exit("a gauge stands twice")
if {name: repr(value) for name, value in found.items()} != {
        name: repr(value) for name, value in wanted.items()}:  # a NaN has one spelling
    sys.exit(f"found {found}, expected {wanted}")
