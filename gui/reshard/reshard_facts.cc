// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/reshard/reshard_facts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cost_models/adapters.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/stopped.h"
#include "cost_models/layout/parameter_table.h"
#include "cost_models/layout/sharding.h"
#include "cost_models/reshard/pull_steps.h"
#include "cost_models/spec/device/device_kind.h"
#include "gui/document/text.h"
#include "gui/document/words.h"
#include "planner/engines/engine.h"
#include "planner/plan/plan.h"
#include "simulator/reshard/gathered_flows.h"
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
                           .gather = planned_gather(plan),
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

// In the type that the engine gathers.
std::int64_t gathered_size(const WholeGather& gather, const ReshardQuestion& question) {
  return size_of(gather.master_weights ? question.master : question.weights);
}

// The rows that lie on one stage of the trainer.
ParameterTable stage_table(const ParameterTable& table, const RankMap& trainer, int stage) {
  ParameterTable part{.model = table.model, .rows = {}};
  for (const Parameter& row : table.rows) {
    if (holds(row, trainer.layout, {.pp = stage})) part.rows.push_back(row);
  }
  return part;
}

/// Flows of an engine that gathers every tensor whole.
class GatheredParts {
 public:
  GatheredParts(const WholeGather& gather, const ReshardQuestion& question, ReshardFacts& facts)
      : size_(gathered_size(gather, question)),
        question_(question),
        kept_(kept_by_trainer(question)),
        facts_(facts) {
    apart_ = question.from.index_of(question.to_ranks.front()) < 0;
    facts.used = apart_ ? ReshardMethod::broadcast : ReshardMethod::verl_buckets;
    facts.counted =
        apart_ ? Words::tr(
                     "The engine gathers every tensor whole on the trainer's first rank, "
                     "which sends it to every rank of the rollout.")
               : Words::tr(
                     "The engine gathers every tensor whole on every rank: a cell is what "
                     "its receiver gets of its sender's weights, whichever way the "
                     "collective takes. Of ranks that hold the same it is the nearest one.");
  }

  void add(const QString& name, const ParameterTable& table) {
    const int per_node = facts_.ranks_per_node;
    const auto flows = apart_ ? broadcast_flows(table, kept_, question_.to_ranks, per_node)
                              : gathered_flows(table, kept_, per_node);
    const int in_one = facts_.by_node ? per_node : 1;
    std::map<std::pair<int, int>, std::int64_t> sums;
    for (const WeightFlow& flow : flows) {
      const bool gathered = question_.from.index_of(flow.to) >= 0;  // else it is sent on
      const std::int64_t size = gathered ? size_ : size_of(question_.weights);
      sums[{flow.from / in_one, flow.to / in_one}] += flow.elements * size;
    }
    ReshardPart& part = facts_.parts.emplace_back(ReshardPart{name, {}});
    for (const auto& [ends, bytes] : sums) part.flows.push_back({ends.first, ends.second, bytes});
  }

 private:
  std::int64_t size_;
  const ReshardQuestion& question_;
  RankMap kept_;  // as the trainer's ranks keep their weights
  ReshardFacts& facts_;
  bool apart_ = false;
};

void add_gathered(const WholeGather& gather, const ReshardQuestion& question, ReshardFacts& facts) {
  GatheredParts parts(gather, question, facts);
  parts.add(Words::tr("the whole model"), question.table);
  const int stages = question.from.layout.pp;
  for (int stage = 0; stages > 1 && stage < stages; ++stage) {
    parts.add(Words::tr("stage %1 of the trainer").arg(stage),
              stage_table(question.table, question.from, stage));
  }
}

// Of our own transports that which a run takes and the methods know.
std::optional<ReshardMethod> method_of(const Plan& plan, const PlannedReshard& pair) {
  if (pair.mode != ReshardMode::minimal || moves_adapters_alone(plan, pair)) return std::nullopt;
  switch (pair.transport) {
    case ReshardTransport::automatic:  // priced as such
    case ReshardTransport::copy_engine:
      return ReshardMethod::copy_engine;
    case ReshardTransport::window:
      return ReshardMethod::window;
    case ReshardTransport::send_recv:
      return ReshardMethod::send_recv;
    case ReshardTransport::all_gather:
    case ReshardTransport::host:
      break;
  }
  return std::nullopt;
}

// What the executor asks, too, before it reads in steps (executor/transfers/peer_reads.cc).
QString whyNoSteps(const Plan& plan, const PlannedReshard& pair, const ReshardFacts& facts) {
  const bool reads = pair.transport == ReshardTransport::automatic ||
                     pair.transport == ReshardTransport::copy_engine;
  if (facts.ranks > facts.ranks_per_node) {
    return Words::tr("Steps are shown of plans that use one node.");
  }
  if (is_cpu(plan.cluster.device)) {
    return Words::tr("Processors read one another's memory all at once, without steps.");
  }
  if (!reads) return Words::tr("This transport has no steps: they are of reads by copy engines.");
  if (pair.mode != ReshardMode::minimal || pair.bucket_bytes.value > 0) {
    return Words::tr("Steps are shown of a reshard that is minimal and has no buckets.");
  }
  return {};
}

void add_steps(const Plan& plan, const PlannedReshard& pair, ReshardFacts& facts) {
  facts.no_steps = whyNoSteps(plan, pair, facts);
  if (!facts.no_steps.isEmpty()) return;
  const auto ranks = static_cast<std::size_t>(facts.ranks);
  PullTraffic traffic(ranks, std::vector<std::int64_t>(ranks));
  for (const Flow& flow : facts.parts[0].flows) {
    if (flow.from == flow.to) continue;
    traffic[static_cast<std::size_t>(flow.from)][static_cast<std::size_t>(flow.to)] = flow.bytes;
  }
  const std::vector<PullStep> steps = matched_steps(traffic, kPullQuantum);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    ReshardPart& part = facts.steps.emplace_back();
    part.name = Words::tr("step %1 of %2, at most %3 a rank")
                    .arg(i + 1)
                    .arg(steps.size())
                    .arg(bytesText(steps[i].longest()));
    for (std::size_t reader = 0; reader < ranks; ++reader) {
      if (steps[i].source[reader] < 0) continue;
      part.flows.push_back(
          {steps[i].source[reader], static_cast<int>(reader), steps[i].moved[reader]});
    }
    std::sort(part.flows.begin(), part.flows.end(), [](const Flow& a, const Flow& b) {
      return std::pair(a.from, a.to) < std::pair(b.from, b.to);
    });
  }
}

void add_travel(const Plan& plan, const PlannedReshard& pair, const ReshardQuestion& question,
                ReshardFacts& facts) {
  const auto& gather = engine_named(plan.engine).weights.gather;
  const bool too_many = facts.ranks > kMostExactRanks;
  if (gather && !moves_adapters_alone(plan, pair) && !too_many) {
    add_gathered(*gather, question, facts);
    return;
  }
  if (!gather) facts.used = method_of(plan, pair);
  if (!has_exact_reshard(pair) || too_many) {
    facts.no_flows =
        gather && !too_many
            ? Words::tr("The engine gathers the adapters alone: who sends to whom is not listed.")
            : Words::tr(
                  "This plan is too large for exact ranges: who sends to whom is not listed.");
    return;
  }
  add_flows(plan, pair, question, facts);
  add_steps(plan, pair, facts);
}

}  // namespace

std::vector<const ReshardPart*> ReshardFacts::choices() const {
  std::vector<const ReshardPart*> all;
  for (const ReshardPart& part : parts) all.push_back(&part);
  const auto behind_whole = all.begin() + (all.empty() ? 0 : 1);
  std::vector<const ReshardPart*> of_time;
  for (const ReshardPart& step : steps) of_time.push_back(&step);
  all.insert(behind_whole, of_time.begin(), of_time.end());
  return all;
}

ReshardFacts reshard_facts(const Plan& plan, const Calibration& calibration,
                           const std::stop_token& stop) {
  end_if_stopped(stop);
  ReshardFacts facts;
  facts.ranks = plan.world_size();
  facts.ranks_per_node = static_cast<int>(plan.cluster.gpus_per_node);
  facts.by_node = facts.ranks > kMostFlowRanks;
  ReshardQuestion question = question_of(plan, calibration);
  question.stop = stop;
  const auto pair = std::find_if(plan.reshard.begin(), plan.reshard.end(), [](const auto& each) {
    return each.from == Role::actor && each.to == Role::rollout;
  });
  if (pair == plan.reshard.end()) {
    facts.no_flows = Words::tr("Training and rollout hold the weights alike: nothing travels.");
  } else {
    add_travel(plan, *pair, question, facts);
  }
  const std::string model = plan.models.at(plan.find(Role::actor)->model).path;
  const ReshardComparison comparison(std::move(question));
  facts.methods = comparison.all();
  facts.csv = reshard_csv(comparison, false);
  facts.json = reshard_json(comparison, model.substr(model.find_last_of('/') + 1));
  return facts;
}

}  // namespace tessera::gui
