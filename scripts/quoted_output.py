#!/usr/bin/env python3
"""Holds what pages quote of commands' output against what the commands print.

usage: quoted_output.py [--program PATH] [--write] [PAGE...]
  --program  the tessera to ask; default build/dev/cli/tessera
  --write    put what is printed now into the pages, instead of failing
  PAGE       default: README.md, docs/models.md, docs/commands/*.md and
             docs/tutorials/*.md

A fenced block of `tessera` commands is run where all of its commands plan (plan, list, explain,
simulate, reshard, sweep, export, import) and read presets, examples, what commands before them wrote, or a
block of YAML that the page calls `NAME.yaml`. The fenced block below it, with one line of text
between them at most, must hold lines of the output, in order. "..." stands for what is left out, of
a line or of lines. Paths are those of the repository's root. Ends with code 1 where a line differs,
with --write where a page is left as it is: one of its commands fails and prints other lines than
the page quotes. Ends with code 69 where the program is missing.
"""
import argparse
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLANNING = {"plan", "list", "explain", "simulate", "reshard", "sweep", "export", "import"}
READ = {"--model", "--critic", "--reward", "--cluster", "--workload", "--calibration"}
WRITTEN = {"-o", "--output"}
CUT = "..."
NUMBER = r"[-+]?\d[\d.]*"


def blocks(lines):
    """(first, end, language) of what is fenced, as indices of lines."""
    start = None
    for i, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = i
        else:
            yield start + 1, i, lines[start][3:]
            start = None


def commands_of(text):
    """The words of every command of a shell text."""
    joined = text.replace("\\\n", " ").replace("&&", "\n")
    return [shlex.split(line) for line in joined.splitlines() if line.strip()]


def can_run(text, folder):
    """Whether all commands plan, and every file that they read is there."""
    known = {path.stem if path.is_file() else path.name
             for path in (ROOT / "configs").glob("*/*")}
    for words in commands_of(text):
        if len(words) < 2 or words[0] != "tessera" or words[1] not in PLANNING:
            return False
        read = [value for option, value in zip(words, words[1:]) if option in READ]
        if words[1] in {"explain", "simulate", "sweep", "export", "import"}:
            read.append(words[2])
        if not all(name in known or (folder / name).exists() for name in read):
            return False
        known |= {value for option, value in zip(words, words[1:]) if option in WRITTEN}
    return True


def output_of(text, program, folder):
    """(code that the commands end with, the first that is not 0; what they print, errors first, with
    paths as from the repository's root)."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("TESSERA_")}
    own["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-ec", text], cwd=folder, env=own,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    return done.returncode, (done.stderr + done.stdout).replace(f"{ROOT}/", "").splitlines()


def agrees(quoted, printed):
    parts = [re.escape(part) for part in quoted.split(CUT)]
    return re.fullmatch(".*".join(parts), printed.rstrip()) is not None


def differing(quoted, printed):
    """Indices of quoted lines that the output does not have behind those before."""
    at, wrong = 0, []
    for i, line in enumerate(quoted):
        if line.strip() == CUT:
            continue
        found = next((j for j in range(at, len(printed)) if agrees(line, printed[j])), None)
        if found is None:
            wrong.append(i)
        else:
            at = found + 1
    return wrong


def cut_like(quoted, line):
    """`line`, cut where the quoted one is: at the same words, else behind as many commas."""
    if CUT not in quoted:
        return line.rstrip()
    parts = re.split(rf"(\.\.\.|{NUMBER})", quoted)
    words = [".*?" if part == CUT else f"({NUMBER})" if re.fullmatch(NUMBER, part)
             else re.escape(part) for part in parts]
    same = re.fullmatch("".join(words), line.rstrip())
    if same:
        numbers = iter(same.groups())
        return "".join(next(numbers) if re.fullmatch(NUMBER, part) else part for part in parts)
    parts = re.split("(?<=, )", line)
    kept = len(re.split("(?<=, )", quoted)) - 1
    return "".join(parts[:kept]) + CUT if kept < len(parts) else line.rstrip()


def remade(quoted, printed):
    """The quoted lines with what is printed in the place of each. Lines that are new are put in
    between two that stay, but where the block says that it leaves lines out ("...")."""
    bare = [re.sub(NUMBER, "#", line) for line in printed]
    whole = not any(line.strip() == CUT for line in quoted)
    made, at = [], 0
    for line in quoted:
        if line.strip() == CUT:
            made.append(line)
            continue
        pattern = re.sub(NUMBER, "#", line)
        ends = [text[:len(pattern)] if line.endswith(CUT) else text for text in bare[at:]]
        scores = [difflib.SequenceMatcher(None, pattern, text).ratio() for text in ends]
        best = max(range(len(scores)), key=lambda j: (scores[j], -j), default=None)
        if best is None or scores[best] < 0.6:
            continue
        if whole and made:
            made += [text.rstrip() for text in printed[at:at + best]]
        made.append(cut_like(line, printed[at + best]))
        at += best + 1
    return made


def check(page, program, write):
    """(lines compared, messages on those that differ, messages on commands for which the page is left
    as it is); writes the page anew where asked."""
    lines = page.read_text().splitlines()
    compared, messages, failed, replaced = 0, [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "examples").symlink_to(ROOT / "examples")
        fenced = list(blocks(lines))
        for (start, end, language), below in zip(fenced, fenced[1:] + [None]):
            text = "\n".join(lines[start:end])
            called = re.search(r"`([\w.-]+\.yaml)`", " ".join(lines[max(0, start - 3):start - 1]))
            if language == "yaml" and called:
                (folder / called[1]).write_text(text + "\n")
            if language or not text.startswith("tessera ") or not can_run(text, folder):
                continue
            code, printed = output_of(text, program, folder)
            between = lines[end + 1:below[0] - 1] if below else []
            if below is None or below[2] or sum(line.strip() != "" for line in between) > 1:
                continue
            quoted = lines[below[0]:below[1]]
            compared += sum(line.strip() != CUT for line in quoted)
            wrong = differing(quoted, printed)
            for i in wrong:
                messages.append(f"{page}:{below[0] + i + 1}: not printed by `{text}`:\n  {quoted[i]}")
            if wrong and code != 0:
                failed.append(f"{page}:{start + 1}: left as it is, `{text}` ends with code {code}: "
                              + (printed[0] if printed else "nothing printed"))
            replaced.append((below[0], below[1], remade(quoted, printed)))
    if write and messages and not failed:
        for start, end, made in reversed(replaced):
            lines[start:end] = made
        page.write_text("\n".join(lines) + "\n")
    return compared, messages, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", type=pathlib.Path,
                        default=ROOT / "build/dev/cli/tessera")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    program = options.program.resolve()
    if not (program.is_file() and os.access(program, os.X_OK)):
        print(f"{program}: no program; expected one that `cmake --preset dev && cmake --build "
              "--preset dev --target tessera` builds, or --program PATH", file=sys.stderr)
        return 69
    pages = options.pages or [ROOT / "README.md", ROOT / "docs/models.md",
                              *sorted((ROOT / "docs/commands").glob("*.md")),
                              *sorted((ROOT / "docs/tutorials").glob("*.md"))]
    compared, messages, failed = 0, [], []
    for page in pages:
        count, wrong, left = check(page, program, options.write)
        compared += count
        messages += wrong
        failed += left
    print(f"{compared} quoted lines, {len(messages)} differ")
    for message in messages + failed:
        print(message)
    return 1 if (failed if options.write else messages) else 0


if __name__ == "__main__":
    sys.exit(main())
