#include "executor/launch/launch_age.h"

#include <time.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "executor/launch/relaunch.h"

namespace tessera {
namespace {

/// Clock ticks between the system's start and the process's: the 22nd field of /proc/PID/stat, the
/// 20th behind the name in parentheses, which may hold anything. -1 = unknown.
long start_ticks(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(in, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return -1;
  std::istringstream fields(line.substr(name_end + 1));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  long ticks = -1;
  std::istringstream(field) >> ticks;
  return ticks;
}

}  // namespace

double seconds_since_launch() {
  const long ticks = start_ticks(launched() ? getppid() : getpid());
  timespec now{};
  if (ticks < 0 || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double started = static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9 - started;
}

}  // namespace tessera
