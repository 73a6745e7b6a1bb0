// What a sandbox service is asked about a response, and what its replies mean.
//
// The protocol of SandboxFusion's /run_code as verl 0.9.1 speaks it
// (utils/reward_score/sandbox_fusion: compute_score with continuous=True, which its default reward
// calls). Pure functions. A truth is {"inputs": [...], "outputs": [...]}, with "fn_name" a function
// that is called with the lines of an input as JSON, or {"assert_case": [...]}, as a map or as
// text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

/// The code of a response: its last ```python block, else what stands behind its first ``` without
/// the language's name. nullopt where it has none: verl gives it 0.
std::optional<std::string> code_of(std::string_view response);

/// One run of the code.
struct SandboxCase {
  std::string code;
  std::optional<std::string> input;     // standard input
  std::optional<std::string> expected;  // output; absent = any
};

/// The first ten cases of a truth, by which verl scores; nullopt and `why` where it has none.
std::optional<std::vector<SandboxCase>> cases_of(const std::string& code,
                                                 const std::string& truth_json, std::string& why);

struct SandboxLimits {
  int timeout_s = 10;          // to compile, and to run, one case
  int memory_limit_mb = 1024;  // of one case
};

/// The body of the request.
std::string request_of(const SandboxCase& one, const SandboxLimits& limits);

/// broken: the service did not run the code, or its reply says nothing that can be.
enum class CaseResult : std::uint8_t { passed, failed, no_compile, broken };
CaseResult result_of(const SandboxCase& one, const std::string& reply);

/// The share of cases that passed; behind the first that does not compile none does.
double score_of(const std::vector<CaseResult>& results);

}  // namespace tessera
