#!/usr/bin/env python3
"""Reads a page with Prometheus' own Python client and compares it with what it was made of.

usage: prometheus_oracle.py PAGE NUMBERS. NUMBERS is JSON: each metric's name and its value in
hexadecimal. Every gauge has one sample, and its help text is the metric's name. Exit status 1 and
a line for what differs.
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
    if family.type != "gauge" or len(family.samples) != 1:
        sys.exit(f"{family.name} is a {family.type} of {len(family.samples)} samples")
    sample = family.samples[0]
    if sample.name != family.name or not sample.name.startswith("tessera_") or sample.labels:
        sys.exit(f"the sample {sample} of {family.name}")
    found[family.documentation] = float(sample.value)
if len(found) != len(families):
    sys.exit("two gauges have the same help text")
if {name: repr(value) for name, value in found.items()} != {
        name: repr(value) for name, value in wanted.items()}:  # a NaN has one spelling
    sys.exit(f"found {found}, expected {wanted}")
