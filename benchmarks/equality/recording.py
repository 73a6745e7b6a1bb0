"""Requests to a program of Tessera: run, kept in a folder, compared.

A recording is a folder: about.json says where everything lay, and every request has a folder of its
own under requests/, in which it ran and which holds what it wrote beside its `command`, `exit`,
`stdout` and `stderr`. Two recordings are compared byte for byte, apart from the places of the trees
and of the recording, the time of creation and the version of the program.
"""

import concurrent.futures
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time

TREE = pathlib.Path(__file__).resolve().parents[2]  # the tree of this script
TIMEOUT_S = 600


@dataclasses.dataclass(frozen=True)
class Request:
    """One call of `tessera`; `name` is its folder, and unique.

    A word may name what an earlier request wrote, as ../NAME/FILE. `inputs` are files (name, text)
    that lie in the folder beforehand. Of what it writes only `compared` (globs) counts, and its
    printed text only with `output`.
    """

    name: str
    words: tuple[str, ...]
    inputs: tuple[tuple[str, str], ...] = ()
    compared: tuple[str, ...] = ("**/*",)
    output: bool = True

    def needs(self):
        """Names of the requests whose files this one reads."""
        return {match for word in self.words for match in re.findall(r"\.\./([^/]+)/", word)}


def chosen(requests, only, skip):
    """Those whose name `only` matches and `skip` does not, with all that they need, in order."""
    by_name = {request.name: request for request in requests}
    if len(by_name) != len(requests):
        raise ValueError("two requests have one name")
    wanted = set()
    waiting = [name for name in by_name
               if re.search(only, name) and not (skip and re.search(skip, name))]
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting.extend(by_name[name].needs())
    return [request for request in requests if request.name in wanted]


# --- Running --------------------------------------------------------------------------------------


def tree_of(program):
    """The source tree that the program was built in: the nearest folder above it with configs."""
    for folder in pathlib.Path(program).resolve().parents:
        if (folder / "configs" / "models").is_dir():
            return folder
    return TREE


def environment():
    """The caller's, without what would lead the program to presets of another tree."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("TESSERA_")}
    return variables | {"LC_ALL": "C", "OMP_NUM_THREADS": "1"}


def run(program, request, folder):
    """Runs the request in its folder; seconds that it took."""
    folder.mkdir(parents=True)
    for name, text in request.inputs:
        (folder / name).write_text(text)
    begin = time.monotonic()
    try:
        done = subprocess.run([program, *request.words], cwd=folder, env=environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S)
        code, out, err = str(done.returncode), done.stdout, done.stderr
    except subprocess.TimeoutExpired as late:
        code, out, err = f"none after {TIMEOUT_S} s", late.stdout or b"", late.stderr or b""
    (folder / "command").write_text(json.dumps(list(request.words), indent=0) + "\n")
    (folder / "exit").write_text(code + "\n")
    (folder / "stdout").write_bytes(out)
    (folder / "stderr").write_bytes(err)
    return time.monotonic() - begin


def record(program, requests, folder, jobs=1, progress=lambda done, name: None):
    """Runs all requests, each after those it needs; seconds by name."""
    program = str(pathlib.Path(program).resolve())
    folder = folder.resolve()
    (folder / "requests").mkdir(parents=True)
    version = subprocess.run([program, "--version"], env=environment(), capture_output=True,
                             text=True, check=True).stdout.strip()
    about = {"program": program, "version": version, "folder": str(folder),
             "trees": sorted({str(tree_of(program)), str(TREE)})}
    (folder / "about.json").write_text(json.dumps(about, indent=2) + "\n")
    started, seconds = {}, {}

    def one(request):
        for name in request.needs():
            started[name].result()  # submitted before, so never waited for in vain
        seconds[request.name] = run(program, request, folder / "requests" / request.name)
        progress(len(seconds), request.name)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for request in requests:
            started[request.name] = pool.submit(one, request)
        for future in started.values():
            future.result()
    return seconds


# --- Comparing ------------------------------------------------------------------------------------

# What a clock measured; and the state of torch's own generators, which nothing seeds or draws from.
MEASURED = re.compile(r"^timing_|^perf/(?!total_num_tokens)|^plan/error_pct$|^comm/.*_s$"
                      r"|^reshard/(seconds|gbps|.*_s|generators_digest)$")


def without_times(line):
    """A line of metrics.jsonl without what is MEASURED."""
    step = json.loads(line)
    step["data"] = {key: value for key, value in step["data"].items() if not MEASURED.search(key)}
    return json.dumps(step, sort_keys=True)


def neutral(text, about):
    """The text without places, time of creation and version of the program."""
    text = text.replace(about["folder"], "<recording>")
    for tree in sorted(about["trees"], key=len, reverse=True):
        text = text.replace(tree, "<tree>")
    text = text.replace(about["version"], "<version>")
    return re.sub(r'"(created|tessera_version)": *"[^"]*"', r'"\1": "<any>"', text)


def lines_of(file, about):
    """What of a file is compared."""
    content = file.read_bytes()
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return [f"{len(content)} bytes with SHA-256 {hashlib.sha256(content).hexdigest()}"]
    if file.name == "metrics.jsonl":
        return [without_times(line) for line in text.splitlines()]
    return neutral(text, about).split("\n")


def compared_files(folder, request):
    """Names relative to the folder of a request, of the files that count."""
    names = {"command", "exit"} | ({"stdout", "stderr"} if request.output else set())
    written = {str(file.relative_to(folder)) for pattern in request.compared
               for file in folder.glob(pattern) if file.is_file()}
    return names | (written - {"stdout", "stderr"})


def around(line, column):
    """The part of a line in which something differs."""
    begin = max(0, column - 60)
    return ("..." if begin else "") + line[begin:column + 100]


def first_difference(before, after):
    """Words on where two lists of lines part; empty where they are the same."""
    if before == after:
        return ""
    for number in range(max(len(before), len(after))):
        old = before[number] if number < len(before) else None
        new = after[number] if number < len(after) else None
        if old == new:
            continue
        if old is None or new is None:
            return (f"line {number + 1}: only {'after' if old is None else 'before'}: "
                    + around(new if old is None else old, 0))
        pairs = enumerate(zip(old, new))
        column = next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))
        return f"line {number + 1}\n    - {around(old, column)}\n    + {around(new, column)}"
    return ""


def difference(request, before, after):
    """Words on the first file of a request that two recordings hold differently, or empty."""
    folders = [root / "requests" / request.name for root in (before, after)]
    missing = [str(folder) for folder in folders if not (folder / "exit").is_file()]
    if missing:
        return "not recorded in " + " and ".join(missing)
    abouts = [json.loads((root / "about.json").read_text()) for root in (before, after)]
    names = [compared_files(folder, request) for folder in folders]
    first = ["command", "exit", "stderr", "stdout"]
    for name in sorted(names[0] | names[1], key=lambda name: (first + [name]).index(name)):
        for side in (0, 1):
            if name not in names[side]:
                return f"{name}: only {('after', 'before')[side]}"
        files = [folder / name for folder in folders]
        if os.access(files[0], os.X_OK) != os.access(files[1], os.X_OK):
            return f"{name}: only one is executable"
        words = first_difference(*map(lines_of, files, abouts))
        if words:
            return f"{name}, {words}"
    return ""
