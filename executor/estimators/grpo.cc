// Group-relative advantages (Shao et al. 2024): the score S of a row is the sum of its whole reward
// row, masked or not; A = (S - mean of the group) / (std of the group + 1e-6), std unbiased, or
// S - mean (Dr. GRPO, Liu et al. 2025). A group of one keeps mean 0 and std 1. Returns equal the
// advantages.
//
// Where an agent answers several times in a session, the session's last output alone enters its
// group, and its advantage goes to all outputs of the session (verl 0.9.1, trainer/ppo/v1/utils.
// compute_advantage_for_multi_trajectories).
#include <unordered_map>

#include "cost_models/documents/check.h"
#include "executor/estimators/groups.h"

namespace tessera {
namespace {

/// By row: the row of its session's last output.
std::vector<std::size_t> last_outputs(std::span<const SessionOutput> outputs) {
  std::unordered_map<std::string_view, std::size_t> last;
  for (std::size_t row = 0; row < outputs.size(); ++row) {
    const auto [at, is_new] = last.try_emplace(outputs[row].session, row);
    if (!is_new && outputs[at->second].index < outputs[row].index) at->second = row;
  }
  std::vector<std::size_t> rows;
  for (const SessionOutput& output : outputs) rows.push_back(last.at(output.session));
  return rows;
}

Advantages grpo(const EstimatorInput& input, const AdvantageOptions& options) {
  const Array scores = scores_of(input.rows, input.rewards);
  std::vector<Group> groups = groups_of(input.rows, input.uid);
  const bool divide = options.norm_adv_by_std_in_grpo;
  if (input.outputs.empty()) return outcome(input.rows, relative_scores(scores, groups, divide));

  TESSERA_CHECK(input.outputs.size() == scores.size());
  const std::vector<std::size_t> last = last_outputs(input.outputs);
  for (Group& group : groups)
    std::erase_if(group, [&](std::size_t row) { return last[row] != row; });
  const Array relative = relative_scores(scores, groups, divide);
  Array of_session(scores.size());
  for (std::size_t row = 0; row < scores.size(); ++row) of_session[row] = relative[last[row]];
  return outcome(input.rows, of_session);
}

constexpr std::array kOptions{EstimatorOption{.key = "norm_adv_by_std_in_grpo",
                                              .flag = &AdvantageOptions::norm_adv_by_std_in_grpo}};

}  // namespace

constinit const Estimator kGrpo{.name = "grpo", .options = kOptions, .compute = grpo};
// verl has two functions, of which this one works in float32; here both are exact.
constinit const Estimator kGrpoVectorized{
    .name = "grpo_vectorized", .options = kOptions, .compute = grpo};

}  // namespace tessera
