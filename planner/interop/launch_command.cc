#include "planner/interop/launch_command.h"

#include <algorithm>
#include <array>
#include <optional>

#include "cost_models/documents/problem.h"
#include "planner/interop/config/command_words.h"
#include "planner/interop/import_format.h"

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
    for (const auto& [engine, name] : kVerlEngines.pairs) {
      if (value.find(name) != value.npos) {
        out.take_engine(std::string(name), std::to_string(command[i].line));
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

// Where the arguments of the program begin that the command has at `at`; 0 = it has another there.
std::size_t arguments_of(const FormatProgram& program, const ShellCommand& command,
                         std::size_t at) {
  const std::string& word = command[at].text;
  if (program.next.empty()) return word.starts_with(program.word) ? at + 1 : 0;
  const auto slash = word.rfind('/');
  const bool named = word.substr(slash == word.npos ? 0 : slash + 1) == program.word;
  return named && at + 1 < command.size() && command[at + 1].text == program.next ? at + 2 : 0;
}

// "vllm serve MODEL ...", "python3 -m vllm.entrypoints.openai.api_server ...",
// "python3 -m sglang.launch_server ...".
std::optional<Server> server_in(const ShellCommand& command) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    for (const ImportFormat& format : every_import_format()) {
      for (const FormatProgram& program : format.programs) {
        const std::size_t arguments = arguments_of(program, command, i);
        if (arguments > 0) return Server{format.syntax, arguments};
      }
    }
  }
  return std::nullopt;
}

// Of arguments without a program in front: whose they are, by flags that only one of them has.
std::optional<ConfigSyntax> syntax_of(const ConfigValues& flags) {
  for (const ImportFormat& format : every_import_format()) {
    const bool own = std::any_of(format.own_flags.begin(), format.own_flags.end(),
                                 [&](std::string_view name) { return flags.has(name); });
    if (own) return format.syntax;
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
