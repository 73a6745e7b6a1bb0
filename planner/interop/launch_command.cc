#include "planner/interop/launch_command.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <utility>

namespace tessera {
namespace {

struct Trainer {
  std::string_view module;  // the end of its name
  VerlTrainer trainer;
};

// verl 0.9.1's entry points that train by reinforcement; main_dapo is a recipe's copy of main_ppo.
constexpr std::array<Trainer, 4> kTrainers{{
    {"one_step_off_policy.main_ppo", VerlTrainer::one_step_off},
    {"fully_async_policy.fully_async_main", VerlTrainer::fully_async},
    {"main_ppo", VerlTrainer::main_ppo},
    {"main_dapo", VerlTrainer::main_ppo},
}};

const Trainer* trainer_in(const std::string& word) {
  const auto found = std::find_if(kTrainers.begin(), kTrainers.end(), [&](const Trainer& known) {
    return word.find(known.module) != word.npos;
  });
  return found == kTrainers.end() ? nullptr : &*found;
}

// The words behind a trainer's name: overrides of Hydra and Hydra's own flags.
void read_overrides(const ShellCommand& command, std::size_t first, ConfigValues& out,
                    Problems& problems) {
  for (std::size_t i = first; i < command.size(); ++i) {
    const ShellWord& word = command[i];
    if (word.text.rfind("--", 0) != 0) {
      if (!word.text.empty()) read_override(word, out, problems);
      continue;
    }
    const bool in_one_word = word.text.find('=') != std::string::npos;
    std::string value = word.text;
    if (word.text.rfind("--config-", 0) == 0 && !in_one_word && i + 1 < command.size()) {
      value = command[++i].text;
    }
    const bool names_config = word.text.rfind("--config-name", 0) == 0;
    if (!names_config) continue;
    for (const char* const engine : {"megatron", "veomni", "torchtitan"}) {
      if (value.find(engine) != value.npos) {
        out.take_engine(engine, std::to_string(command[i].line));
      }
    }
  }
}

bool read_trainer(const std::vector<ShellCommand>& commands, ConfigValues& out,
                  Problems& problems) {
  for (const ShellCommand& command : commands) {
    for (std::size_t i = 0; i < command.size(); ++i) {
      const Trainer* const trainer = trainer_in(command[i].text);
      if (trainer == nullptr) continue;
      out.trainer = trainer->trainer;
      read_overrides(command, i + 1, out, problems);
      return true;
    }
  }
  return false;
}

struct Server {
  ConfigSyntax syntax = ConfigSyntax::vllm;
  std::size_t arguments = 0;  // where they begin in the command
};

// "vllm serve MODEL ...", "python3 -m vllm.entrypoints.openai.api_server ...",
// "python3 -m sglang.launch_server ...".
std::optional<Server> server_in(const ShellCommand& command) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    const std::string& word = command[i].text;
    if (word.rfind("sglang.launch_server", 0) == 0) return Server{ConfigSyntax::sglang, i + 1};
    if (word.rfind("vllm.entrypoints", 0) == 0) return Server{ConfigSyntax::vllm, i + 1};
    const auto slash = word.rfind('/');
    const bool vllm = word.substr(slash == word.npos ? 0 : slash + 1) == "vllm";
    if (vllm && i + 1 < command.size() && command[i + 1].text == "serve") {
      return Server{ConfigSyntax::vllm, i + 2};
    }
  }
  return std::nullopt;
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

void mark_unknown(ConfigValue& value, const ShellWord& word) {
  if (!word.known) value.unknown = word.unknown;
}

// --flag value, --flag=value and --flag alone; a leading word without a flag is a served model.
void read_flags(const ShellCommand& command, std::size_t first, ConfigValues& out) {
  for (std::size_t i = first; i < command.size(); ++i) {
    const std::string& word = command[i].text;
    ConfigValue value;
    value.place = std::to_string(command[i].line);
    if (!is_flag(word)) {
      if (first == 0 || i != first) continue;
      value.value = node_of(std::string_view(word));
      mark_unknown(value, command[i]);
      out.values["model"] = std::move(value);
      continue;
    }
    const bool two_dashes = word.rfind("--", 0) == 0;
    if (first == 0 && !two_dashes) continue;  // the command's own short flags
    std::string flag = word.substr(two_dashes ? 2 : 1);
    if (flag.empty()) continue;
    const auto equals = flag.find('=');
    value.value = node_of(true);
    if (equals != flag.npos) {
      value.value = override_value(std::string_view(flag).substr(equals + 1));
      flag.resize(equals);
    } else if (i + 1 < command.size() && !is_flag(command[i + 1].text)) {
      value.value = override_value(command[++i].text);
      mark_unknown(value, command[i]);
    }
    std::replace(flag.begin(), flag.end(), '_', '-');
    out.values[flag] = std::move(value);
  }
}

// Of arguments without a program in front: whose they are, by flags that only one of them has.
std::optional<ConfigSyntax> syntax_of(const ConfigValues& flags) {
  const auto any = [&](std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(),
                       [&](const char* name) { return flags.has(name); });
  };
  if (any({"tensor-model-parallel-size", "micro-batch-size", "num-layers"})) {
    return ConfigSyntax::megatron;
  }
  if (any({"tp-size", "mem-fraction-static", "max-running-requests", "model-path"})) {
    return ConfigSyntax::sglang;
  }
  if (any({"tensor-parallel-size", "gpu-memory-utilization", "max-num-seqs"})) {
    return ConfigSyntax::vllm;
  }
  return std::nullopt;
}

// A program of verl that the script starts and that is none of kTrainers.
const ShellWord* other_program(const std::vector<ShellCommand>& commands) {
  for (const ShellCommand& command : commands) {
    for (const ShellWord& word : command) {
      const bool program =
          word.text.rfind("verl.", 0) == 0 && word.text.find('=') == word.text.npos;
      if (program) return &word;
    }
  }
  return nullptr;
}

}  // namespace

void read_override(const ShellWord& word, ConfigValues& out, Problems& problems) {
  const std::string_view text = word.text;
  const auto equals = text.find('=');
  const auto refuse = [&](const char* hint) {
    problems.push_back({out.file, std::to_string(word.line), "'" + word.text.substr(0, 80) + "'",
                        "key=value", hint});
  };
  if (equals == text.npos) {
    if (text.empty() || text[0] != '~') return refuse("an override of Hydra");
    out.values.erase(std::string(text.substr(1)));
    return;
  }
  if (text[0] == '~') {  // deletes the key that has this value
    out.values.erase(std::string(text.substr(1, equals - 1)));
    return;
  }
  ConfigValue value;
  value.place = std::to_string(word.line);
  std::string key(text.substr(0, equals));
  if (!word.known && key.empty()) return;
  while (!key.empty() && key[0] == '+') {
    value.added = true;
    key.erase(0, 1);
  }
  if (key.empty()) return refuse("");
  mark_unknown(value, word);
  value.value = override_value(text.substr(equals + 1));
  value.value.line = word.line;
  if (key == "model_engine" || key == "model_engine@_global_") {
    return out.take_engine(value.value.text, value.place);
  }
  if (key.rfind("hydra.", 0) == 0 || key.find('@') != key.npos) return;
  out.values[key] = std::move(value);
}

void read_commands(const std::vector<ShellCommand>& commands, ConfigValues& out,
                   Problems& problems) {
  if (read_trainer(commands, out, problems)) return;
  for (const ShellCommand& command : commands) {
    if (const auto server = server_in(command)) {
      read_flags(command, server->arguments, out);
      out.syntax = server->syntax;
      return;
    }
  }
  if (const ShellWord* const program = other_program(commands)) {
    problems.push_back({out.file, std::to_string(program->line), program->text.substr(0, 80),
                        "verl.trainer.main_ppo",
                        "this program does no reinforcement learning; there is nothing to plan"});
    return;
  }
  for (const ShellCommand& command : commands) read_flags(command, 0, out);
  if (const auto syntax = syntax_of(out)) {
    out.syntax = *syntax;
    return;
  }
  problems.push_back({out.file, "",
                      "no command that starts verl.trainer.main_ppo, vllm or sglang and no "
                      "arguments of Megatron-LM",
                      "one of them", "the overrides or arguments themselves are read as well"});
}

}  // namespace tessera
