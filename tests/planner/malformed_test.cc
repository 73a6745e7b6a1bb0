// Malformed inputs are refused with file, place and reason, within a second and 256 MB.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "cost_models/documents/problem.h"
#include "tests/planner/malformed_cases.h"

namespace tessera {
namespace {

bool mentions(const Problems& problems, const std::string& place, const std::string& reason) {
  return std::any_of(problems.begin(), problems.end(), [&](const Problem& p) {
    const std::string all = p.place + "\n" + p.found + "\n" + p.expected + "\n" + p.hint;
    return all.find(place) != all.npos && all.find(reason) != all.npos;
  });
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

long resident_kib() {
  std::ifstream file("/proc/self/statm");
  long size = 0, resident = 0;
  file >> size >> resident;
  return resident * (sysconf(_SC_PAGESIZE) >> 10);
}

#ifdef __SANITIZE_ADDRESS__  // two to four times slower
constexpr double kMostSeconds = 3.0;
#else
constexpr double kMostSeconds = 1.0;
#endif

TEST(Malformed, EveryInputIsRefusedWithFilePlaceAndReasonInTime) {
  const std::vector<Case> cases = all_cases();
  EXPECT_GE(cases.size(), 300U);
  double slowest = 0;
  long peak = peak_kib(), most = 0;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.name);
    Problems problems;
    const long before = resident_kib();
    const std::clock_t start = std::clock();
    (*one.reader)(one.text, problems);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    slowest = std::max(slowest, seconds);
    // What this input took, wherever it raised the peak.
    if (peak_kib() > peak) most = std::max(most, peak_kib() - before);
    peak = peak_kib();
    EXPECT_LT(seconds, kMostSeconds);
    if (problems.empty()) {
      ADD_FAILURE() << "accepted";
      continue;
    }
    for (const Problem& problem : problems) {
      EXPECT_FALSE(problem.file.empty());
      EXPECT_FALSE(problem.found.empty() && problem.expected.empty());
    }
    EXPECT_TRUE(mentions(problems, one.place, one.reason))
        << "no problem with '" << one.place << "' and '" << one.reason << "' in\n"
        << std::string(Error(ExitCode::bad_input, problems).what()).substr(0, 600);
  }
#ifndef __SANITIZE_ADDRESS__
  EXPECT_LT(most, 256 << 10);  // KiB
#endif
  RecordProperty("cases", static_cast<int>(cases.size()));
  std::printf("%zu cases, slowest %.3f s, %ld MiB\n", cases.size(), slowest, most >> 10);
}

}  // namespace
}  // namespace tessera
