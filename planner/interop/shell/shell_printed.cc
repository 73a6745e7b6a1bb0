#include "planner/interop/shell/shell_printed.h"

#include "cost_models/documents/problem.h"
#include "planner/interop/shell/shell_outcome.h"
#include "planner/interop/shell/shell_words.h"

namespace tessera {

std::optional<std::string> printed_by(std::string_view commands, const std::string& file) {
  if (commands.find_first_of("$`") != commands.npos) return std::nullopt;
  Problems ignored;
  std::string text;
  for (const ShellCommand& command : shell_commands(commands, file, ignored)) {
    if (command[0].text != "echo") {
      if (!shell_outcome(command)) return std::nullopt;
      continue;
    }
    for (std::size_t i = 1; i < command.size(); ++i) {
      const std::string& word = command[i].text;
      if (!command[i].known || word.find_first_of("*?[~{") != word.npos) return std::nullopt;
      if (word.starts_with('-')) return std::nullopt;
      text += (i > 1 ? " " : text.empty() ? "" : "\n") + word;
    }
  }
  return text.empty() ? std::nullopt : std::optional(text);
}

bool tells_devices(std::string_view commands) {
  return commands.find("torch_npu") != commands.npos;
}

std::string assumption(const std::string& file, int line, std::string substitution,
                       const std::string& printed) {
  if (substitution.size() > 40) substitution = substitution.substr(0, 37) + "...";
  return file + ":" + std::to_string(line) + ": " + substitution + " is read as '" + printed +
         "', as on NVIDIA GPUs without torch_npu.";
}

}  // namespace tessera
