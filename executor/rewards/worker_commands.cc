// The commands of scoring processes: Python files as verl calls them, and the sandbox.
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/rewards/reward_workers.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Answers requests with a function of a file. Python's -c program; its arguments are the file, the
/// function and the keyword arguments.
constexpr const char* kPythonProgram = R"py(
import asyncio, importlib.util, inspect, json, os, sys
answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
file, name, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
spec = importlib.util.spec_from_file_location("reward_file", file)
module = importlib.util.module_from_spec(spec)
sys.modules["reward_file"] = module
spec.loader.exec_module(module)
function = getattr(module, name)
def answer(said):
    print(json.dumps(said), file=answers, flush=True)
answer({"ready": True})
for line in sys.stdin:
    request = json.loads(line)
    said = {"id": request.pop("id")}
    try:
        result = function(**request, **options)
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        if isinstance(result, dict):
            result = result["score"]
        elif not isinstance(result, (int, float)) and hasattr(result, "__getitem__"):
            result = result[0]
        said["score"] = float(result)
    except Exception as error:
        said = {"id": said["id"], "error": f"{type(error).__name__}: {error}"}
    answer(said)
)py";

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

std::string_view name_of(Sandbox sandbox) {
  switch (sandbox) {
    case Sandbox::automatic:
      return "automatic";
    case Sandbox::bubblewrap:
      return "bubblewrap";
    case Sandbox::none:
      return "none";
  }
  return "";
}

std::vector<std::string> python_reward(const std::string& python, const fs::path& file,
                                       const std::string& function, const std::string& kwargs) {
  return {python, "-c", kPythonProgram, fs::absolute(file).string(), function, kwargs};
}

std::optional<std::vector<std::string>> in_sandbox(std::vector<std::string> words, Sandbox sandbox,
                                                   bool& boxed, Problems& problems) {
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
    problems.push_back({.file = "run.yaml",
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
