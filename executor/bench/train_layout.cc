#include "executor/bench/train_layout.h"

#include <charconv>
#include <map>
#include <optional>
#include <string>

#include "cost_models/documents/problem.h"
#include "cost_models/spec/context_parallel.h"

namespace tessera {
namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw Error(ExitCode::usage,
              "--layout " + std::string(text) + ": " + why +
                  " (degrees such as tp=2,cp=2,pp=2,vpp=2,dp=2,zero=3,replicate=2,sp,ulysses)");
}

std::optional<int> degree_of(std::string_view word) {
  int value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// Words KEY=N; sp and ulysses alone stand for 1.
std::map<std::string, int, std::less<>> words_of(std::string_view text) {
  std::map<std::string, int, std::less<>> words;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const std::size_t equals = word.find('=');
    const std::string key(word.substr(0, equals));
    const auto value = equals == word.npos ? std::optional(1) : degree_of(word.substr(equals + 1));
    const bool flag = key == "sp" || key == "ulysses";
    const bool known = flag || key == "tp" || key == "cp" || key == "pp" || key == "vpp" ||
                       key == "dp" || key == "zero" || key == "replicate";
    if (!known || !value || flag != (equals == word.npos)) {
      refuse(text, "cannot read \"" + std::string(word) + "\"");
    }
    if (!words.emplace(key, *value).second) refuse(text, key + " is given twice");
  }
  return words;
}

}  // namespace

ParallelLayout train_layout(std::string_view text, const ModelSpec& model, int ranks) {
  const auto words = words_of(text);
  const auto word = [&](const char* key, int otherwise) {
    const auto found = words.find(key);
    return found == words.end() ? otherwise : found->second;
  };
  ParallelLayout layout{
      {.tp = word("tp", 1), .cp = word("cp", 1), .pp = word("pp", 1), .vpp = word("vpp", 1)}};
  if (layout.tp < 1 || layout.cp < 1 || layout.pp < 1 || layout.vpp < 1) {
    refuse(text, "degrees count from 1");
  }
  const int model_ranks = layout.tp * layout.cp * layout.pp;
  const int dp = word("dp", ranks / model_ranks);
  if (dp < 1 || model_ranks * dp != ranks) {
    refuse(text, "tp x cp x pp x dp must be the " + std::to_string(ranks) + " ranks");
  }
  layout.zero = word("zero", dp > 1 ? 3 : 0);
  const int replicate = word("replicate", layout.zero == 3 ? 1 : dp);
  if (layout.zero < 0 || layout.zero > 3) refuse(text, "zero is 0, 1, 2 or 3");
  if (replicate < 1 || dp % replicate != 0 || (layout.zero < 3 && replicate != dp)) {
    refuse(text, "replicate divides dp and needs zero=3");
  }
  layout.dp = dp;
  layout.dp_shard = dp / replicate;
  if (layout.dp_shard == 1 && layout.zero == 3) layout.zero = dp > 1 ? 1 : 0;
  layout.sequence_parallel = word("sp", 0) != 0;
  layout.ulysses = word("ulysses", 0) != 0;
  if (const std::string why = context_refusal(model, layout); !why.empty()) refuse(text, why);
  if (std::int64_t{layout.pp} * layout.vpp > model.layers)
    refuse(text, "there are fewer layers than stages");
  layout.stages = even_stages(model.layers, layout.pp, layout.vpp);
  Problems problems;
  validate(layout, model.layers, ranks, "--layout", std::string(text), problems);
  if (!problems.empty()) throw Error(ExitCode::usage, std::move(problems));
  return layout;
}

}  // namespace tessera
