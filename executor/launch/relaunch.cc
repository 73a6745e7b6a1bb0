#include "executor/launch/relaunch.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cost_models/documents/problem.h"
#include "executor/launch/launch_environment.h"

namespace tessera {

bool launched() {
  Problems problems;
  return read_launch_environment(process_environment(), problems).launcher != Launcher::none;
}

std::vector<std::string> on_device(const std::vector<std::string>& words, bool gpu) {
  std::vector<std::string> made;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--device") {
      ++i;  // and its value
    } else if (!words[i].starts_with("--device=")) {
      made.push_back(words[i]);
    }
  }
  made.insert(made.end(), {"--device", gpu ? "cuda" : "cpu"});
  return made;
}

bool get_gpus(std::string_view device, int ranks, int gpus) {
  if (device == "cuda" && gpus < ranks) {
    throw Error(ExitCode::missing,
                std::to_string(ranks) + " ranks want a GPU each (--device cuda), and " +
                    std::to_string(gpus) + " are visible (nvidia-smi lists them)");
  }
  return device != "cpu" && gpus >= ranks;
}

std::string own_path() {
  char path[4096] = {};
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) {
    throw Error(ExitCode::internal, "cannot find this program");
  }
  return path;
}

std::vector<std::string> launcher_line(const std::vector<std::string>& words, int ranks, bool gpu) {
  std::vector<std::string> line =
      gpu ? std::vector<std::string>{own_path(), "start", "--ranks", std::to_string(ranks)}
          : std::vector<std::string>{"mpirun",
                                     "--quiet",
                                     "--allow-run-as-root",
                                     "--oversubscribe",
                                     "--mca",
                                     "mpi_yield_when_idle",
                                     "1",
                                     "-n",
                                     std::to_string(ranks),
                                     own_path()};
  const std::vector<std::string> command = on_device(words, gpu);
  line.insert(line.end(), command.begin(), command.end());
  return line;
}

void relaunch(const std::vector<std::string>& words, int ranks, bool gpu) {
  std::vector<std::string> line = launcher_line(words, ranks, gpu);
  std::vector<char*> arguments;
  for (std::string& word : line) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  throw Error(ExitCode::missing, line[0] + ": " + std::strerror(errno));
}

}  // namespace tessera
