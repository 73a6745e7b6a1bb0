#!/usr/bin/env python3
"""Holds the window's translations to its sources.

usage: translation_check.py GUI_FOLDER TRANSLATION.ts

Every text of the sources (Words::tr, QT_TRANSLATE_NOOP) has a finished translation, and so have the
advice, the sources and the published ranges of the shipped rules (configs/rules). Nothing else has one,
but for literals of the planner and the simulator, which the window says by gui/translations/said.h. Source
and translation agree in their placeholders (%1), HTML tags, mnemonics (&), line ends and file patterns. No
literal of several words is shown without a translation. Prints what is wrong, one fault a line, and the
number of texts when nothing is.
"""
import json
import re
import sys
import xml.etree.ElementTree
from pathlib import Path

# Not shown in the window, or words of files and programs that other programs or the command line
# print: usage is in English everywhere, and faults of input are said by gui/translations/said.h.
NOT_SHOWN_FILES = {
    "document/file_kind.cc", "document/plan_answer.cc", "document/plan_query.cc",
    "document/project.cc", "document/question_json.cc", "main.cc", "pages/arguments.cc", "report/style.cc",
    "samples/sample.cc", "samples/sample_reader.cc", "topology/node_topology.cc"}
NOT_SHOWN = {
    "Pareto front of GPUs and step",  # columns of CSV
    "in the order of the phases",     # static_assert
    "the window",                     # who signals, in a run's file
    "no span",                        # compared with what is said
    "# What is not here is the plan's, or has its default (docs/inputs/run.md).\n"
    "version: 1\ndata:\n  train_files: ",  # of a run file
    ", learned from 1 run",           # the name of a calibration in its file
    "the plan",                       # of a Problem
    "on-light middle", "on-dark middle", "name end", "tick end", "tick middle",  # classes of CSS
    "line dashed", "<!DOCTYPE html>"}
WORDS = re.compile(r"[A-Za-z]{2,} [a-z]{2,}")
TRANSLATED = re.compile(r"(Words::tr\(\s*|QT_TRANSLATE_NOOP\(\s*\"Words\",\s*)$")
ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


def literals(text):
    """(start, value) of each string literal, adjacent ones as one; comments left out."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]*)\((?P<raw>.*?)\)(?P=d)"'
                       r"|'(?:\\.|[^'\\\n])'|\"(?P<s>(?:\\.|[^\"\\\n])*)\"", re.S)
    found = []
    last_end = -1
    for match in token.finditer(text):
        if match["raw"] is not None:
            value = match["raw"]
        elif match["s"] is not None:
            value = re.sub(r"\\(.)", lambda m: ESCAPES.get(m[1], m[0]), match["s"])
        else:
            continue
        if found and not text[last_end:match.start()].strip():
            found[-1] = (found[-1][0], found[-1][1] + value)
        else:
            found.append((match.start(), value))
        last_end = match.end()
    return found


def texts_of(folder, faults):
    """The texts that are translated, each with a place where it stands."""
    texts = {}
    for file in sorted(folder.rglob("*")):
        if file.suffix not in (".cc", ".h"):
            continue
        source = file.read_text(encoding="utf-8")
        name = file.relative_to(folder).as_posix()
        for start, value in literals(source):
            line = source.count("\n", 0, start) + 1
            begin = source.rfind("\n", 0, start) + 1
            if TRANSLATED.search(source, max(0, start - 200), start):
                texts.setdefault(value, f"{name}:{line}")
            elif (WORDS.search(value) and name not in NOT_SHOWN_FILES and value not in NOT_SHOWN
                  and not source.startswith("#include", begin) and "<span style" not in value
                  and "static_assert" not in source[begin:start]):
                faults.append(f"{name}:{line}: without translation: {value!r}")
    return texts


def texts_of_rules(root):
    """What the shipped rules say in prose, each with its file."""
    texts = {}
    for file in sorted((root / "configs" / "rules").glob("*.json")):
        for rule in json.loads(file.read_text(encoding="utf-8"))["rules"]:
            for key in ("advice", "source", "published"):
                if re.search("[A-Za-z]{2}", rule[key]):
                    texts.setdefault(rule[key], f"{file.name}: {rule['name']}")
    return texts


def said_elsewhere(root):
    """The literals of what the window calls (planner, simulator, cost models) and of its own readers."""
    said = set()
    for name in NOT_SHOWN_FILES:
        said.update(value for _, value in literals((root / "gui" / name).read_text(encoding="utf-8")))
    for folder in ("planner", "simulator", "cost_models"):
        for file in (root / folder).rglob("*"):
            if file.suffix in (".cc", ".h"):
                said.update(value for _, value in literals(file.read_text(encoding="utf-8")))
    return said


def form_of(text):
    """What source and translation must have in common."""
    return {"placeholders": sorted(re.findall(r"%\d", text)),
            "tags": sorted(re.findall(r"</?[a-z]+>|&nbsp;", text)),
            "mnemonics": len(re.findall(r"&(?!nbsp;|#)\w", text)),
            "line ends": text.count("\n"),
            "patterns": re.findall(r"\*\.\w+", text)}


def main():
    folder, file = Path(sys.argv[1]), Path(sys.argv[2])
    faults = []
    texts = texts_of(folder, faults) | texts_of_rules(folder.parent)
    elsewhere = said_elsewhere(folder.parent)
    translated = {}
    for message in xml.etree.ElementTree.parse(file).getroot().iter("message"):
        source, translation = message.findtext("source"), message.find("translation")
        if translation.get("type") is not None or not (translation.text or ""):
            faults.append(f"{file.name}: not finished: {source!r}")
        if source in translated:
            faults.append(f"{file.name}: twice: {source!r}")
        translated[source] = translation.text or ""
    for text, place in texts.items():
        if text not in translated:
            faults.append(f"{place}: no translation of {text!r}")
    for source, text in translated.items():
        if source not in texts and source not in elsewhere:
            faults.append(f"{file.name}: no source has {source!r}")
        ours, theirs = form_of(source), form_of(text)
        for what, wanted in ours.items():
            if theirs[what] != wanted:
                faults.append(f"{file.name}: {what} of {source!r} and {text!r} differ")
    print("\n".join(faults) if faults else f"{len(texts)} texts")
    return 1 if faults or not texts else 0


if __name__ == "__main__":
    sys.exit(main())
