// The commands of scoring processes: Python files as verl calls them, unit tests, and the sandbox.
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/enum_names.h"
#include "executor/rewards/reward_workers.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Where answers go, before anything prints: the output that others write to becomes the error
/// output.
constexpr const char* kAnswersFirst = R"py(
import asyncio, importlib.util, inspect, json, math, os, sys, traceback
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
folder = None

def own_place(error):
    """File and line of the last frame that is of a file in the folder of the reward."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__)
           if not frame.filename.startswith("<") and os.path.dirname(os.path.abspath(frame.filename)) == folder]
    return (own[-1].filename, own[-1].lineno) if own else None
)py";

/// `function` and `options` of a file; the arguments are the file, the function's name and the
/// options. A file that cannot be loaded, and a function that cannot be called, is refused with the
/// line that is at fault: of the file, or of another one in its folder.
constexpr const char* kFunctionOfFile = R"py(
import importlib.machinery
file, name, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
folder = os.path.dirname(os.path.abspath(file))
sys.path.insert(0, folder)

def refuse(where, line, why):
    print(json.dumps({"refused": why, "file": where, "line": line}), file=answers, flush=True)
    os._exit(1)

def load():
    loader = importlib.machinery.SourceFileLoader("reward_file", file)
    spec = importlib.util.spec_from_file_location("reward_file", file, loader=loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["reward_file"] = module
    try:
        loader.exec_module(module)
    except SyntaxError as error:
        refuse(error.filename or file, error.lineno or 0, f"{type(error).__name__}: {error.msg}")
    except BaseException as error:
        where, line = own_place(error) or (file, 0)
        refuse(where, line, f"{type(error).__name__}: {error}".removesuffix(": "))
    return module

def function_of(module):
    found = getattr(module, name, None)
    if found is None:
        others = [f"{other} in line {value.__code__.co_firstlineno}" for other, value in vars(module).items()
                  if inspect.isfunction(value) and value.__module__ == "reward_file"]
        refuse(file, 0, f"no function {name}" + (": it has " + ", ".join(others[:5]) if others else ""))
    code = getattr(inspect.unwrap(found), "__code__", None)
    where, line = (code.co_filename, code.co_firstlineno) if code else (file, 0)
    if not callable(found):
        refuse(file, 0, f"{name}, which is no function but {type(found).__name__}")
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return found
    try:
        signature.bind(data_source="", solution_str="", ground_truth="", extra_info={}, **options)
    except TypeError as error:
        refuse(where, line, f"{name}{signature}: {error}")
    return found

function = function_of(load())
)py";

/// `function` and `options` that run unit tests: the code of a response in an interpreter of its
/// own, which is given the inputs and never the outputs that are expected. Where the code ends it
/// or takes too long, the next test begins another.
constexpr const char* kUnitTests = R"py(
import math, subprocess
options = json.loads(sys.argv[1])
MODULES = ("string re datetime collections heapq bisect copy math random statistics itertools functools "
           "operator io sys json builtins typing").split()
# verl's order: the builtins come back over pow, compile and their kin, the modules over everything.
PRELUDE = "".join(f"from {name} import *\n" for name in MODULES) + "".join(
    f"import {name}\n" for name in MODULES) + "sys.setrecursionlimit(600000)\n"
RUNNER = """
import io, json, os, signal, sys
job = json.load(sys.stdin)
said = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
def late(*_):
    raise TimeoutError("late")
signal.signal(signal.SIGALRM, late)
for text in job["inputs"]:
    result = {}
    try:
        signal.setitimer(signal.ITIMER_REAL, job["timeout"])
        sys.stdin, sys.stdout = io.StringIO(text), io.StringIO()
        space = {"__name__": "__main__"}
        name = job["name"]
        try:
            exec(compile(job["code"], "response", "exec"), space)
            if job["kind"] == "assert":
                exec(compile(text, "test", "exec"), space)
        except SystemExit:
            if job["kind"] != "input":
                raise
        if job["kind"] == "call":
            owner = space["Solution"]() if "class Solution" in job["code"] else None
            call = getattr(owner, name) if owner is not None else space[name]
            result["value"] = call(*[json.loads(line) for line in text.split(chr(10))])
            json.dumps(result)
        else:
            result["output"] = sys.stdout.getvalue()[:1000000]
    except BaseException as error:
        result = {"error": type(error).__name__}
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(json.dumps(result), file=said, flush=True)
"""

def results_of(code, kind, name, inputs, timeout):
    results = []
    while len(results) < len(inputs):
        left = inputs[len(results):]
        job = {"code": PRELUDE + code, "kind": kind, "name": name, "inputs": left, "timeout": timeout}
        with subprocess.Popen([sys.executable, "-I", "-c", RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True, start_new_session=True) as process:
            try:
                output, _ = process.communicate(json.dumps(job), timeout=(timeout + 1) * len(left))
            except subprocess.TimeoutExpired as expired:
                output = expired.stdout or ""
                if isinstance(output, bytes):
                    output = output.decode("utf-8", "replace")
            finally:
                try:
                    os.killpg(process.pid, 9)
                except ProcessLookupError:
                    pass
        for line in output.splitlines()[:len(left)]:
            try:
                results.append(json.loads(line))
            except ValueError:
                break
        if len(results) < len(inputs):
            results.append({"error": "the process ended"})
    return results

def close(a, b):
    try:
        return math.isclose(float(a), float(b), rel_tol=1e-5, abs_tol=1e-8) and not (a.isdigit() and b.isdigit())
    except ValueError:
        return False

def same_text(output, expected):
    mine, right = ([line.split() for line in text.splitlines() if line.strip()] for text in (output, expected))
    return len(mine) == len(right) and all(
        len(a) == len(b) and all(x == y or close(x, y) for x, y in zip(a, b)) for a, b in zip(mine, right))

def joined(text):
    return "\n".join(text) if isinstance(text, list) else str(text)

def passed(kind, result, expected):
    if "error" in result:
        return False
    if kind == "assert":
        return True
    if kind == "input":
        return same_text(result["output"], joined(expected))
    right = json.loads(expected) if isinstance(expected, str) else expected
    value = result["value"]
    return value == right or (isinstance(right, list) and len(right) > 0 and value == right[0])

def function(data_source, solution_str, ground_truth, extra_info, tests=10, test_timeout_s=2):
    code = solution_str.split("```python")[-1].split("```")[0]
    cases = json.loads(ground_truth) if isinstance(ground_truth, str) else ground_truth
    if "assert_case" in cases:
        kind, inputs = "assert", [joined(case) for case in cases["assert_case"]]
        expected = inputs
    else:
        kind = "input" if cases.get("fn_name") is None else "call"
        inputs, expected = [joined(text) for text in cases["inputs"]], cases["outputs"]
    inputs, expected = inputs[:tests], expected[:tests]
    results = results_of(code, kind, cases.get("fn_name"), inputs, test_timeout_s)
    right = [passed(kind, result, truth) for result, truth in zip(results, expected)]
    return sum(right) / len(right) if right else 1.0
)py";

/// Answers requests with `function`. A score or an accuracy that is not finite is none, and has
/// the name that JSON writers give it.
constexpr const char* kAnswerLoop = R"py(
def utf8(text):
    return text.encode("utf-8", "replace").decode()

def number_of(value):
    """Of Python, numpy or torch; None is none."""
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None

def put_extras(result, said):
    """verl's "acc" and "pred", and every other number."""
    more = said["more"] = {}
    for key, value in result.items():
        number = number_of(value)
        if number is None or not isinstance(key, str):
            continue
        if not math.isfinite(number):
            if key != "score":
                said["left_out"] = utf8(f"{key}: found {json.dumps(number)}, expected a finite number: left out")
        elif key == "acc":
            said["acc"] = number
        else:
            more[utf8(key)] = number
    if result.get("pred") is not None:
        said["pred"] = utf8(str(result["pred"]))

def score_of(request, said):
    result = function(**request, **options)
    if inspect.iscoroutine(result):
        result = asyncio.run(result)
    if isinstance(result, dict):
        put_extras(result, said)
        result = result["score"]
    else:
        said["plain_number"] = True
        if isinstance(result, (list, tuple)):
            result = result[0]
    if isinstance(result, (str, bytes)):
        raise TypeError(f"a score is a number, not the text {result!r}")
    return float(result)

def raised(error):
    kind = type(error).__name__
    said = {"error": utf8(f"{kind}: {error}".removesuffix(": "))[:1000], "kind": kind}
    place = own_place(error)
    if place:
        where = f"{os.path.basename(place[0])}:{place[1]}: "
        error.__traceback__ = error.__traceback__.tb_next.tb_next  # from score_of on
        said = {"error": where + said["error"], "kind": where + kind,
                "traceback": utf8("".join(traceback.format_exception(error)).rstrip())[-8000:]}
    return said

def answer(said):
    print(json.dumps(said), file=answers, flush=True)
answer({"ready": True})
for line in sys.stdin:
    request = json.loads(line)
    said = {"id": request.pop("id")}
    try:
        score = score_of(request, said)
        if math.isfinite(score):
            said["score"] = score
        else:
            said = {"id": said["id"], "error": f"found {json.dumps(score)}, expected a finite number"}
    except Exception as error:
        said = {"id": said["id"], **raised(error)}
    answer(said)
)py";

constexpr auto kSandboxes = enum_names<Sandbox>({{Sandbox::automatic, "automatic"},
                                                 {Sandbox::bubblewrap, "bubblewrap"},
                                                 {Sandbox::none, "none"}});

/// The first line that a command writes within ten seconds, or nothing.
std::string first_line_of(const std::vector<std::string>& words) {
  WorkerProcess process;
  std::string line;
  if (!process.start({.words = words}).empty()) return line;
  const auto end = WorkerProcess::Clock::now() + std::chrono::seconds(10);
  while (!process.take_line(line) && WorkerProcess::Clock::now() < end) {
    pollfd output{.fd = process.output(), .events = POLLIN, .revents = 0};
    ::poll(&output, 1, 100);
    if (!process.receive() && process.waiting() == 0) break;
  }
  return line;
}

/// bwrap and its options: the file systems read-only with an empty /tmp (the working directory
/// stays visible), processes and the network of its own.
std::vector<std::string> bubblewrap_words() {
  const std::string here = fs::current_path().string();
  return {"bwrap",
          "--ro-bind",
          "/",
          "/",
          "--dev",
          "/dev",
          "--proc",
          "/proc",
          "--tmpfs",
          "/tmp",
          "--ro-bind",
          here,
          here,
          "--chdir",
          here,
          "--unshare-net",
          "--unshare-pid",
          "--unshare-ipc",
          "--die-with-parent",
          "--new-session"};
}

}  // namespace

std::string_view name_of(Sandbox sandbox) { return kSandboxes[sandbox]; }

std::vector<std::string> python_reward(const std::string& python, const fs::path& file,
                                       const std::string& function, const std::string& kwargs) {
  return {python,
          "-c",
          std::string(kAnswersFirst) + kFunctionOfFile + kAnswerLoop,
          fs::absolute(file).string(),
          function,
          kwargs};
}

std::vector<std::string> unit_test_reward(const std::string& python, const std::string& kwargs) {
  return {python, "-c", std::string(kAnswersFirst) + kUnitTests + kAnswerLoop, kwargs};
}

std::optional<std::vector<std::string>> in_sandbox(std::vector<std::string> words, Sandbox sandbox,
                                                   bool& boxed, Problems& problems,
                                                   const std::string& run_file) {
  boxed = false;
  if (sandbox == Sandbox::none) return words;
  std::vector<std::string> box = bubblewrap_words();
  for (const std::string& word : words) {  // files below /tmp, which is empty inside
    std::error_code error;
    if (!word.starts_with("/tmp/") || !fs::exists(word, error)) continue;
    const fs::path folder = fs::path(word).parent_path();  // with what stands beside them
    const std::string shown = folder == "/tmp" ? word : folder.string();
    box.insert(box.end(), {"--ro-bind", shown, shown});
  }
  std::vector<std::string> probe = box;
  probe.insert(probe.end(), {"/bin/sh", "-c", "echo works"});
  boxed = first_line_of(probe) == "works";
  if (!boxed && sandbox == Sandbox::bubblewrap) {
    problems.push_back({.file = run_file,
                        .place = "reward.workers.sandbox",
                        .found = "bubblewrap, which cannot be used here",
                        .expected = "bwrap in the PATH and user namespaces, or sandbox: none",
                        .hint = "apt install bubblewrap"});
    return std::nullopt;
  }
  if (!boxed) return words;
  box.insert(box.end(), words.begin(), words.end());
  return box;
}

}  // namespace tessera
