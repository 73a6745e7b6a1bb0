// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/reshard/reshard_facts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem.h"
#include "cost_models/layout/parameter_table.h"
#include "gui/document/words.h"
#include "planner/plan/plan.h"
#include "simulator/reshard/methods_report.h"

namespace tessera::gui {
namespace {

constexpr int kMostExactRanks = 4096;  // the list of transfers grows with ranks times tensors

// As `tessera reshard plan.json` asks it.
ReshardQuestion question_of(const Plan& plan, const Calibration& calibration) {
  const RolePlan* const actor = plan.find(Role::actor);
  const RolePlan* const rollout = plan.find(Role::rollout);
  if (actor == nullptr || rollout == nullptr) {
    throw Error(ExitCode::bad_input,
                Words::tr("This plan has no rollout to bring weights to.").toStdString());
  }
  ReshardQuestion question{.table = parameter_table(plan.model_of(Role::actor)),
                           .from = rank_map_of(plan, Role::actor),
                           .to = rollout->layout,
                           .to_ranks = rollout->ranks,
                           .planned = rank_map_of(plan, Role::rollout),
                           .weights = actor->dtypes.wire,
                           .master = actor->dtypes.master,
                           .cluster = plan.cluster,
                           .calibration = calibration,
                           .bucket = Bytes{0}};
  const auto shared = std::count_if(question.to_ranks.begin(), question.to_ranks.end(),
                                    [&](int rank) { return question.from.index_of(rank) >= 0; });
  const auto to = static_cast<std::ptrdiff_t>(question.to_ranks.size());
  const auto from = static_cast<std::ptrdiff_t>(question.from.ranks.size());
  if (shared != 0 && (shared != to || to != from)) {
    throw Error(ExitCode::bad_input,
                Words::tr("The rollout has some of the trainer's GPUs and others: the methods know "
                          "those that share all, or none.")
                    .toStdString());
  }
  return question;
}

QString part_of(const Parameter& row) {
  switch (row.place) {
    case StagePlace::embedding:
    case StagePlace::embedding_and_head:
      return Words::tr("embedding");
    case StagePlace::head:
      return Words::tr("head and last norm");
    case StagePlace::layer:
      break;
  }
  return Words::tr("layer %1").arg(row.layer);
}

void add_flows(const Plan& plan, const PlannedReshard& pair, const ReshardQuestion& question,
               ReshardFacts& facts) {
  const ReshardPlan exact = reshard_plan_of(plan, pair);
  const std::int64_t element = size_of(question.weights);
  std::map<QString, std::size_t> known;
  facts.parts.push_back({Words::tr("the whole model"), {}});  // of adapters: all of them
  std::vector<std::size_t> part_of_row;
  const bool adapters = moves_adapters_alone(plan, pair);
  const ParameterTable moved =
      adapters ? adapter_table(question.table, plan.find(pair.to)->lora) : question.table;
  for (const Parameter& row : moved.rows) {
    const auto [found, fresh] = known.emplace(part_of(row), facts.parts.size());
    if (fresh) facts.parts.push_back({found->first, {}});
    part_of_row.push_back(found->second);
  }
  std::vector<std::map<std::pair<int, int>, std::int64_t>> sums(facts.parts.size());
  const int in_one = facts.by_node ? facts.ranks_per_node : 1;
  for (const Transfer& transfer : exact.transfers) {
    const std::pair ends(transfer.source / in_one, transfer.destination / in_one);
    const std::int64_t bytes = volume(transfer.box) * element;
    sums[0][ends] += bytes;
    sums[part_of_row[static_cast<std::size_t>(transfer.tensor)]][ends] += bytes;
  }
  for (std::size_t part = 0; part < sums.size(); ++part) {
    for (const auto& [ends, bytes] : sums[part]) {
      facts.parts[part].flows.push_back({ends.first, ends.second, bytes});
    }
  }
}

}  // namespace

ReshardFacts reshard_facts(const Plan& plan, const Calibration& calibration) {
  ReshardFacts facts;
  facts.ranks = plan.world_size();
  facts.ranks_per_node = static_cast<int>(plan.cluster.gpus_per_node);
  facts.by_node = facts.ranks > kMostFlowRanks;
  ReshardQuestion question = question_of(plan, calibration);
  const auto pair = std::find_if(plan.reshard.begin(), plan.reshard.end(), [](const auto& each) {
    return each.from == Role::actor && each.to == Role::rollout;
  });
  if (pair == plan.reshard.end()) {
    facts.no_flows = Words::tr("Training and rollout hold the weights alike: nothing travels.");
  } else if (!has_exact_reshard(*pair) || facts.ranks > kMostExactRanks) {
    facts.no_flows =
        Words::tr("This plan is too large for exact ranges: who sends to whom is not listed.");
  } else {
    add_flows(plan, *pair, question, facts);
  }
  const std::string model = plan.models.at(plan.find(Role::actor)->model).path;
  const ReshardComparison comparison(std::move(question));
  facts.methods = comparison.all();
  facts.csv = reshard_csv(comparison, false);
  facts.json = reshard_json(comparison, model.substr(model.find_last_of('/') + 1));
  return facts;
}

}  // namespace tessera::gui
