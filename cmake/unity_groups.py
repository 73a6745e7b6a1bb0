#!/usr/bin/env python3
"""Which sources of a target can be compiled as one file without meaning anything else.

Sources that are included one after the other see each other's local names (what is declared in
unnamed namespaces, `static` at namespace scope, macros) and each other's headers. Two sources share
a group only where every name keeps the meaning that it has alone: neither calls a local function of
the other nor says another of its local names, and no header of one declares a local name of the
other.

usage: unity_groups.py [--most 8] SOURCE...
Prints one group a line, sources separated by semicolons, in the order given.
"""
import argparse
import dataclasses
import functools
import pathlib
import re

STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'')
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
# A name that stands alone: no member, nothing qualified.
SAID = re.compile(r"(?<![\w.])(?<!->)(?<!::)([A-Za-z_]\w*)(\s*[(<])?")
MACRO = re.compile(r"\s*#\s*define\s+(\w+)")
TYPE = re.compile(r"(?:template\s*<.*>\s*)?(?:enum class|enum|struct|class|union|concept)\s+"
                  r"(\w+)")
ALIAS = re.compile(r"using\s+(\w+)\s*=")
FUNCTION = re.compile(r"[A-Za-z_][\w:<>,*&\s\[\]]*?[\s*&>](\w+)\(")
VALUE = re.compile(r"[A-Za-z_][\w:<>,*&\s\[\]()]*?[\s*&>](?!const\b)(\w+)\s*(?:=|\{|\[|;)")
TEST = re.compile(r"(?:TYPED_)?TEST(?:_F|_P)?\(")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
ROOT = pathlib.Path(__file__).resolve().parent.parent
STARTS_NOTHING = ("return", "public:", "private:", "protected:", "default:", "case ", "namespace",
                  "extern")


@dataclasses.dataclass
class Names:
    """What a source, or a group of them, declares for itself and what it uses."""

    functions: set
    others: set
    called: set
    said: set
    offered: set  # by the repository's headers that it includes

    def clash(self, other: "Names") -> bool:
        for one, two in ((self, other), (other, self)):
            if one.functions & (two.called | two.functions | two.others) or one.others & two.said:
                return True
            if (one.functions | one.others) & (two.offered - one.offered):
                return True
        return False

    def add(self, other: "Names") -> None:
        for field in dataclasses.fields(self):
            getattr(self, field.name).update(getattr(other, field.name))


def declared(text: str, everywhere: bool) -> tuple:
    """Names of functions, and of anything else, that are declared at the first column, where the
    code style has namespace scope: in unnamed namespaces (which end with a comment that says so)
    and behind words that make a name local; everywhere: in named namespaces, too."""
    functions, others, unnamed = set(), set(), 0
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if macro := MACRO.match(line):
            others.add(macro[1])
        if re.match(r"namespace\s*\{", line):
            unnamed += 1
        elif re.match(r"\}\s*// namespace$", line):
            unnamed -= 1
        if not re.match(r"[A-Za-z_]", line) or line.startswith(STARTS_NOTHING) or TEST.match(line):
            continue
        local = unnamed > 0 or line.startswith(("static ", "const ", "constexpr ", "using "))
        if not everywhere and not local:
            continue
        whole = " ".join(part.split("//")[0].strip() for part in lines[index:index + 3])
        if match := ALIAS.match(whole) or TYPE.match(whole):
            others.add(match[1])
        elif (match := FUNCTION.match(whole)) and "=" not in whole[:match.end()]:
            functions.add(match[1])
        elif not line.startswith("using ") and (match := VALUE.match(whole)):
            others.add(match[1])
    return functions, others


@functools.cache
def header(path: pathlib.Path) -> tuple:
    """Names that a header declares, and the repository's headers that it includes."""
    text = path.read_text()
    functions, others = declared(text, everywhere=True)
    return functions | others, [ROOT / name for name in INCLUDE.findall(text)]


def names_of(source: str) -> Names:
    path = pathlib.Path(source)
    text = path.read_text()
    functions, others = declared(text, everywhere=False)
    names = Names(functions, others, set(), set(), set())
    for match in SAID.finditer(STRING.sub('""', COMMENT.sub("", text))):
        names.said.add(match[1])
        if match[2]:
            names.called.add(match[1])
    included = INCLUDE.findall(text)
    waiting = [ROOT / name for name in included] + [path.parent / name for name in included]
    seen = set()
    while waiting:
        next_header = waiting.pop()
        if next_header not in seen and next_header.is_file():
            seen.add(next_header)
            more, inner = header(next_header)
            names.offered |= more
            waiting += inner
    return names


def groups_of(sources: list, most: int) -> list:
    """The sources in groups of at most so many, each source in the first group that it fits."""
    groups = []  # of (sources, their names)
    for source in sources:
        names = names_of(source)
        for members, held in groups:
            if len(members) < most and not held.clash(names):
                members.append(source)
                held.add(names)
                break
        else:
            groups.append(([source], names))
    return [members for members, _ in groups]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=8, help="sources in a group")
    parser.add_argument("sources", nargs="+")
    arguments = parser.parse_args()
    for members in groups_of(arguments.sources, arguments.most):
        print(";".join(members))


if __name__ == "__main__":
    main()
