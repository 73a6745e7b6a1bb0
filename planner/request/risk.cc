#include "planner/request/risk.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <system_error>

#include "cost_models/documents/problem.h"
#include "planner/plan/plan.h"

namespace tessera {

namespace {

bool allowed(double risk) { return risk >= kLeastRisk && risk <= kMostRisk; }

void refuse(const std::string& found, Problems& problems) {
  problems.push_back(
      {"--risk", "", found, "a probability of running out of memory from 0.000001 to 0.5", ""});
}

}  // namespace

void check_risk(double risk, Problems& problems) {
  std::array<char, 32> found{};
  std::snprintf(found.data(), found.size(), "%g", risk);
  if (!allowed(risk)) refuse(found.data(), problems);
}

double risk_from(const std::string& word, Problems& problems) {
  double risk = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data(), end, risk);
  if (error == std::errc{} && stop == end && allowed(risk)) return risk;
  refuse("'" + word + "'", problems);
  return kDefaultRisk;
}

double risk_of(const Plan& plan) {
  const double risk = plan.certificate.risk;
  return allowed(risk) ? risk : kDefaultRisk;
}

}  // namespace tessera
