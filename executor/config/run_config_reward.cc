#include "executor/config/run_config_reward.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "executor/config/run_config_readers.h"
#include "executor/http/http.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

void read_overlong(ObjectReader& parent, const Plan& plan, OverlongBuffer& overlong) {
  auto reader = parent.object("reward_kwargs", false);
  overlong.max_resp_len = plan.workload.response_tokens.max;
  if (!reader) return;
  reader->optional("max_resp_len", overlong.max_resp_len, kPositive);
  if (auto buffer = reader->object("overlong_buffer_cfg", false)) {
    buffer->optional("enable", overlong.enable);
    buffer->optional("len", overlong.len, kNotNegative);
    buffer->optional("penalty_factor", overlong.penalty_factor, kFromZero);
    buffer->optional("log", overlong.log);
    if (overlong.enable && (overlong.len < 1 || overlong.len > overlong.max_resp_len)) {
      buffer->refuse("len", "1 to max_resp_len, " + std::to_string(overlong.max_resp_len));
    }
    buffer->refuse_unknown_keys();
  }
  reader->refuse_unknown_keys();
}

constexpr const char* kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.@";

/// The rule that a key names; refused where there is none.
const RewardRule* rule_at(ObjectReader& reader, std::string_view key, const std::string& name) {
  const RewardRule* rule = reward_rule(name);
  if (rule == nullptr) {
    std::vector<std::string> known = reward_rule_names();
    known.emplace_back(kUnitTestsName);
    known.emplace_back(kSandboxName);
    std::string all;
    for (const std::string& each : known) all += (all.empty() ? "" : ", ") + each;
    reader.refuse(key, "a built-in rule: " + all, did_you_mean(name, known));
  }
  return rule;
}

/// Keyword arguments of a Python function as a JSON object.
void read_kwargs(ObjectReader& reader, const char* key, std::string& kwargs) {
  const Node* given = reader.find(key);
  if (given == nullptr || given->is(Node::Kind::null)) return;
  if (!given->is(Node::Kind::map)) return reader.refuse(key, "a map");
  kwargs = json_line(*given);
}

/// One of `functions`: a rule by name, a Python file by path, or a command.
RewardFunction read_function(ObjectReader& reader) {
  RewardFunction function;
  std::string path;
  reader.optional("name", function.name);
  reader.optional("weight", function.weight);
  reader.optional("path", path);
  reader.list("command", function.command, false);
  reader.optional("function", function.function);
  read_kwargs(reader, "reward_kwargs", function.kwargs);
  function.file = path;
  const bool by_name = path.empty() && function.command.empty();
  function.unit_tests = by_name && function.name == kUnitTestsName;
  function.service = by_name && function.name == kSandboxName;
  const bool of_file =
      reader.has("function") || (reader.has("reward_kwargs") && !function.unit_tests);
  if (of_file && path.empty()) reader.refuse("path", "the Python file that has the function");
  if (!path.empty() && !function.command.empty()) reader.refuse("command", "a path or a command");
  if (!path.empty()) {
    if (function.name.empty()) function.name = function.file.stem().string();
  } else if (!function.command.empty()) {
    const std::filesystem::path program = function.command[0];
    if (function.name.empty()) function.name = program.filename().string();
  } else if (function.name.empty()) {
    reader.refuse("name", "the name of a rule, a path or a command");
  } else if (!function.unit_tests && !function.service) {
    function.rule = rule_at(reader, "name", function.name);
  }
  reader.refuse_unknown_keys();
  return function;
}

void read_functions(ObjectReader& reward, std::vector<RewardFunction>& functions) {
  std::vector<ObjectReader> readers = reward.objects("functions", false);
  if (readers.empty()) return reward.refuse("functions", "at least one function");
  functions.clear();
  std::set<std::string> names;
  for (ObjectReader& reader : readers) {
    functions.push_back(read_function(reader));
    functions.back().key = "reward.functions." + std::to_string(functions.size() - 1) + ".path";
    const std::string& name = functions.back().name;
    if (!names.insert(name).second) reader.refuse("name", "a name of its own");
    if (name.find_first_not_of(kNameCharacters) != std::string::npos) {
      reader.refuse("name", "letters, digits, _, -, . and @: metrics are called so");
    }
  }
}

/// verl's way to name a Python file.
void read_custom_function(ObjectReader& reward, std::vector<RewardFunction>& functions) {
  auto reader = reward.object("custom_reward_function", false);
  if (!reader) return;
  std::string path;
  RewardFunction function;
  reader->optional("path", path);
  reader->optional("name", function.function);
  read_kwargs(*reader, "reward_kwargs", function.kwargs);
  reader->refuse_unknown_keys();
  if (path.empty()) return;  // verl's default
  function.file = path;
  function.name = function.file.stem().string();
  functions = {std::move(function)};
}

void read_workers(ObjectReader& reward, RewardPrograms& programs) {
  reward.optional("num_workers", programs.workers, Whole{.least = 1, .most = 4096});
  auto reader = reward.object("workers", false);
  if (!reader) return;
  WorkerLimits& limits = programs.limits;
  reader->optional("timeout_s", limits.timeout_s, kAboveZero);
  reader->optional("start_timeout_s", limits.start_timeout_s, kAboveZero);
  reader->optional("memory_gib", limits.memory_gib, kFromZero);
  reader->optional("sandbox", limits.sandbox,
                   std::array{Sandbox::automatic, Sandbox::bubblewrap, Sandbox::none});
  reader->optional("python", programs.python);
  reader->refuse_unknown_keys();
}

/// Where the service is: at a host that is allowed, which those beyond this machine must be by
/// name.
void read_address(ObjectReader& reader, SandboxService& service) {
  std::string url;
  std::vector<std::string> allowed;
  reader.optional("url", url);
  reader.list("allowed_hosts", allowed, false);
  if (url.empty()) return;  // verl's default
  constexpr std::string_view kScheme = "http://";
  const std::size_t slash = url.find('/', std::min(kScheme.size(), url.size()));
  service.server = url.substr(0, slash);
  if (!is_server_address(service.server) || slash == std::string::npos) {
    return reader.refuse("url", "an address as http://127.0.0.1:8080/run_code");
  }
  service.path = url.substr(slash);
  const std::size_t colon = service.server.rfind(':');
  const std::string host = service.server.substr(kScheme.size(), colon - kScheme.size());
  allowed.insert(allowed.end(), {"127.0.0.1", "localhost"});
  if (std::ranges::find(allowed, host) == allowed.end()) {
    reader.refuse("url", "a host of allowed_hosts, or this machine's 127.0.0.1",
                  "responses are sent there as they are");
  }
}

void read_service(ObjectReader& reward, const std::vector<RewardFunction>& functions,
                  SandboxService& service) {
  if (auto reader = reward.object("sandbox_fusion", false)) {
    read_address(*reader, service);
    reader->optional("max_concurrent", service.connections, Whole{.least = 1, .most = 4096});
    reader->optional("memory_limit_mb", service.limits.memory_limit_mb,
                     Whole{.least = 1, .most = 1'048'576});
    reader->optional("timeout_s", service.limits.timeout_s, Whole{.least = 1, .most = 3600});
    reader->refuse_unknown_keys();
  }
  const bool used = std::ranges::any_of(functions, &RewardFunction::service);
  if (used && service.server.empty()) {
    reward.refuse("sandbox_fusion", "the url of the service that sandbox_fusion asks");
  }
  if (!used && !service.server.empty()) {
    reward.refuse("sandbox_fusion", "function: sandbox_fusion beside it, which asks the service");
  }
}

}  // namespace

RewardConfig read_reward(ObjectReader& root, const Plan& plan) {
  RewardConfig config;
  auto reward = root.object("reward", false);
  if (!reward) return config;
  int ways = 0;
  for (const char* key : {"function", "functions", "custom_reward_function"}) {
    const Node* node = reward->find(key);
    const bool stated = node != nullptr && !node->is(Node::Kind::null);
    const Node* path = stated && node->is(Node::Kind::map) ? node->find("path") : node;
    if (stated && path != nullptr && !path->is(Node::Kind::null) && ++ways > 1) {
      reward->refuse(key, "one of function, functions and custom_reward_function");
    }
  }
  std::string rule = "fraction";
  reward->optional("function", rule);
  if (rule == kUnitTestsName) {
    config.functions.functions = {{.name = rule, .unit_tests = true}};
  } else if (rule == kSandboxName) {
    config.functions.functions = {{.name = rule, .service = true}};
  } else {
    config.functions.functions = {{.name = rule, .rule = rule_at(*reward, "function", rule)}};
  }
  if (reward->has("functions")) read_functions(*reward, config.functions.functions);
  read_custom_function(*reward, config.functions.functions);
  read_workers(*reward, config.functions.programs);
  read_service(*reward, config.functions.functions, config.functions.programs.service);
  std::string manager = "naive";
  if (auto named = reward->object("reward_manager", false)) {
    named->optional("name", manager);
    if (manager != "naive" && manager != "dapo") named->refuse("name", "naive or dapo");
    refuse_unsupported(*named, {{"source", "managers are tessera's own", "\"register\""},
                                {"module", "Python classes cannot be loaded"}});
    named->refuse_unknown_keys();
  }
  read_overlong(*reward, plan, config.overlong);
  if (config.overlong.enable && manager != "dapo") {
    reward->refuse("reward_manager", "name: dapo, whose buffer reward_kwargs describes");
  }
  refuse_unsupported(*reward,
                     {{"reward_model", "the workload's models.reward makes the plan's role"}});
  reward->refuse_unknown_keys();
  return config;
}

}  // namespace tessera
