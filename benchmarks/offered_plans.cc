// Random planning problems held to what the tool itself offers beside its answers:
// `offered_plans [--problems N] [--fixes N] [--first SEED] [--nodes N] [--seconds S]`.
//
// Problem i is drawn with seed SEED + i, so that one that is found can be looked into alone. A line
// of JSON for each problem, with its violations, and a last one with the sums; exits with 1 where
// there is a violation.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <string>
#include <string_view>

#include "cost_models/documents/strict_json.h"
#include "tests/planner/offered/checks.h"
#include "tests/planner/offered/random_problems.h"

namespace {

using namespace tessera;

void add_counts(Node& line, const Findings& found) {
  const auto count = [&](const char* name, std::int64_t value) { add(line, name, node_of(value)); };
  count("plans", found.plans);
  count("listed", found.listed);
  count("fixed", found.fixed);
  count("planned", found.whole);
  count("neighbours", found.neighbours);
  count("more", found.more);
  count("engines", found.engines);
  count("simulated", found.simulated);
  add(line, "worst_simulated", node_of(found.worst_simulated));
  count("violations", static_cast<std::int64_t>(found.violations.size()));
}

void print(const Node& line) {
  std::printf("%s\n", json_line(line).c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** words) {
  CheckOptions options;
  std::uint64_t problems = 100, first = 1;
  int nodes = 16;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string_view name = words[i];
    const char* value = words[i + 1];
    if (name == "--problems") problems = std::strtoull(value, nullptr, 10);
    if (name == "--first") first = std::strtoull(value, nullptr, 10);
    if (name == "--fixes") options.fixes = std::atoi(value);
    if (name == "--nodes") nodes = std::atoi(value);
    if (name == "--seconds") options.seconds = std::atof(value);
  }
  Findings all;
  std::int64_t failed = 0;
  for (std::uint64_t seed = first; seed < first + problems; ++seed) {
    std::mt19937_64 random(seed);
    Node line = map_node();
    add(line, "seed", node_of(static_cast<std::int64_t>(seed)));
    const auto start = std::chrono::steady_clock::now();
    try {
      const RandomProblem problem = random_problem(random, nodes);
      add(line, "problem", node_of(problem.told));
      const Findings found = check_offered(problem.request, options, random);
      add_counts(line, found);
      Node list = list_node();
      for (const Violation& each : found.violations) {
        list.items.push_back(
            node_of(each.check + " by " + std::to_string(each.by) + ": " + each.found));
      }
      add(line, "found", std::move(list));
      all += found;
    } catch (const std::exception& error) {
      ++failed;
      add(line, "error", node_of(std::string(error.what())));
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    add(line, "seconds", node_of(taken.count()));
    print(line);
  }
  Node sums = map_node();
  add(sums, "problems", node_of(static_cast<std::int64_t>(problems)));
  add(sums, "errors", node_of(failed));
  add_counts(sums, all);
  print(sums);
  return all.violations.empty() && failed == 0 ? 0 : 1;
}
