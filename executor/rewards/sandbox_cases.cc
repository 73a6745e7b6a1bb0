#include "executor/rewards/sandbox_cases.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

namespace tessera {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kFence = "```";
constexpr std::size_t kMostCases = 10;  // verl's continuous score is of the first ten

/// Calls a function of the code with the lines of standard input as JSON and prints what it
/// returns, a container, None or bool as JSON, as verl's wrapper does.
constexpr std::string_view kCall = R"py(
import json as _json, sys as _sys
def _call(name):
    text = _sys.stdin.read()
    try:
        arguments = [_json.loads(line) for line in text.split("\n")] if text.strip() else []
        target = globals().get(name) or getattr(globals()["Solution"](), name)
        value = target(*arguments)
    except Exception as error:  # printed nothing: a wrong answer, as in verl
        return print(type(error).__name__, error, file=_sys.stderr)
    as_json = value is None or isinstance(value, (dict, list, tuple, bool))
    print(_json.dumps(value) if as_json else str(value))
)py";

/// Modules that verl's wrapper has imported for such code.
constexpr std::string_view kModules =
    "string re datetime collections heapq bisect copy math random statistics itertools functools "
    "operator io sys json builtins typing ";

std::string call_of(const std::string& code, const std::string& function) {
  std::string text;
  for (std::size_t at = 0; at < kModules.size();) {
    const std::size_t end = kModules.find(' ', at);
    const std::string name(kModules.substr(at, end - at));
    text += "from " + name + " import *\n";
    at = end + 1;
  }
  for (const char* name :
       {"string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random",
        "statistics", "itertools", "functools", "operator", "io", "sys", "json"}) {
    text += std::string("import ") + name + "\n";
  }
  return text + code + std::string(kCall) + "if __name__ == \"__main__\":\n    _call(" +
         Json(function).dump(-1, ' ', true, Json::error_handler_t::replace) + ")\n";
}

/// str() of a JSON value, as far as tests have such values.
bool text_of(const Json& value, std::optional<std::string>& text) {
  if (value.is_null()) {
    text.reset();
  } else if (value.is_string()) {
    text = value.get<std::string>();
  } else if (value.is_number_integer()) {
    text = value.dump();
  } else {
    return false;
  }
  return true;
}

/// rstrip("\n")
std::string_view without_line_ends(std::string_view text) {
  return text.substr(0, text.find_last_not_of('\n') + 1);
}

std::string status_of(const Json& result) {
  const auto found = result.find("status");
  return found != result.end() && found->is_string() ? found->get<std::string>() : "";
}

/// Neither absent, nor null, nor empty: what Python calls true.
const Json* part(const Json& reply, const char* key) {
  const auto found = reply.find(key);
  return found != reply.end() && found->is_object() && !found->empty() ? &*found : nullptr;
}

bool failed_to_end(const Json& result) {
  const std::string status = status_of(result);
  const auto code = result.find("return_code");
  return status == "Error" || status == "TimeLimitExceeded" ||
         (status == "Finished" && (code == result.end() || *code != 0));
}

}  // namespace

std::optional<std::string> code_of(std::string_view response) {
  constexpr std::string_view kPython = "```python";
  const auto until_fence = [](std::string_view text) { return text.substr(0, text.find(kFence)); };
  if (const std::size_t at = response.rfind(kPython); at != std::string_view::npos) {
    return std::string(until_fence(response.substr(at + kPython.size())));
  }
  const std::size_t first = response.find(kFence);
  if (first == std::string_view::npos) return std::nullopt;
  std::string_view code = until_fence(response.substr(first + kFence.size()));
  const std::size_t line = code.find('\n');
  if (line == std::string_view::npos) return std::string(code);
  std::string_view name = code.substr(0, line);
  const auto space = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!name.empty() && space(name.front())) name.remove_prefix(1);
  while (!name.empty() && space(name.back())) name.remove_suffix(1);
  const bool named = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalpha(c) != 0 || c >= 0x80;
  });
  return std::string(named ? code.substr(line + 1) : code);
}

std::optional<std::vector<SandboxCase>> cases_of(const std::string& code,
                                                 const std::string& truth_json, std::string& why) {
  Json truth = Json::parse(truth_json, nullptr, false);
  if (truth.is_string()) truth = Json::parse(truth.get<std::string>(), nullptr, false);
  why = "the truth has no test cases";
  if (!truth.is_object()) return std::nullopt;
  if (truth.contains("assert_case") && !truth["assert_case"].is_array()) return std::nullopt;
  Json& asserts = truth["assert_case"];
  if (asserts.is_array()) {
    if (!truth.contains("inputs")) truth["inputs"] = Json(asserts.size(), "");
    if (!truth.contains("outputs")) truth["outputs"] = Json(asserts.size(), nullptr);
  }
  const Json &inputs = truth["inputs"], &outputs = truth["outputs"];
  if (!inputs.is_array() || !outputs.is_array() || inputs.empty()) return std::nullopt;
  why = "the truth has as many inputs as neither outputs nor assertions";
  if (inputs.size() != outputs.size()) return std::nullopt;
  if (asserts.is_array() && asserts.size() != inputs.size()) return std::nullopt;
  const Json function = truth.value("fn_name", Json());
  std::vector<SandboxCase> cases;
  why = "a test case of the truth is no text";
  for (std::size_t i = 0; i < std::min(inputs.size(), kMostCases); ++i) {
    std::optional<std::string> statement = "";
    if (asserts.is_array() && !text_of(asserts[i], statement)) return std::nullopt;
    SandboxCase& one = cases.emplace_back();
    one.code = code + "\n\n" + statement.value_or("");
    if (function.is_string() && !function.get<std::string>().empty()) {
      one.code = call_of(one.code, function.get<std::string>());
    }
    if (!text_of(inputs[i], one.input) || !text_of(outputs[i], one.expected)) return std::nullopt;
  }
  return cases;
}

std::string request_of(const SandboxCase& one, const SandboxLimits& limits) {
  const Json body{{"compile_timeout", limits.timeout_s},
                  {"run_timeout", limits.timeout_s},
                  {"code", one.code},
                  {"stdin", one.input ? Json(*one.input) : Json()},
                  {"memory_limit_MB", limits.memory_limit_mb},
                  {"language", "python"},
                  {"files", Json::object()},
                  {"fetch_files", Json::array()}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

CaseResult result_of(const SandboxCase& one, const std::string& reply) {
  const Json said = Json::parse(reply, nullptr, false);
  if (!said.is_object()) return CaseResult::broken;
  const std::string status = status_of(said);
  const Json *compiled = part(said, "compile_result"), *run = part(said, "run_result");
  if (status == "Failed") {
    if (compiled != nullptr && failed_to_end(*compiled)) return CaseResult::no_compile;
    return run != nullptr && failed_to_end(*run) ? CaseResult::failed : CaseResult::broken;
  }
  if (status != "Success" || run == nullptr || status_of(*run) != "Finished") {
    return CaseResult::broken;
  }
  const auto found = run->find("stdout");
  const bool silent = found == run->end() || found->is_null();
  if (!silent && !found->is_string()) return CaseResult::broken;
  const std::string output = silent ? "" : found->get<std::string>();
  const bool right = !one.expected || without_line_ends(output) == without_line_ends(*one.expected);
  return right ? CaseResult::passed : CaseResult::failed;
}

double score_of(const std::vector<CaseResult>& results) {
  const auto end = std::ranges::find(results, CaseResult::no_compile);
  const auto passed = std::count(results.begin(), end, CaseResult::passed);
  return static_cast<double>(passed) / static_cast<double>(results.size());
}

}  // namespace tessera
