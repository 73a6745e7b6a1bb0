#include "planner/pricing/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "cost_models/spec/node_groups.h"
#include "planner/pricing/memory_limit.h"
#include "planner/pricing/role/memory.h"
#include "planner/pricing/role/reshard.h"
#include "planner/pricing/role/role_pricer.h"

namespace tessera {
namespace {

/// `seconds` of each of the role's phases.
template <class Fn>
PhaseSeconds by_phase(const RolePricer& role, const Fn& seconds) {
  PhaseSeconds all{};
  for (const Phase phase : role.model().phases) all[phase] = seconds(phase);
  return all;
}

}  // namespace
/// The pricers of one view of the cluster.
struct CostEvaluator::View {
  Assumptions assumed;
  std::array<std::unique_ptr<RolePricer>, kRoleCount> roles;  // nullptr: not in the workload
  std::unique_ptr<ReshardPricer> reshard;                     // nullptr: nothing is generated

  const std::unique_ptr<RolePricer>& of(Role role) const {
    return roles[static_cast<std::size_t>(role)];
  }
};

CostEvaluator::CostEvaluator(const PlanRequest& request, Deal deal) : deal_(std::move(deal)) {
  ModelTables tables;
  add_views(request, tables);
}
CostEvaluator::CostEvaluator(const PlanRequest& request, ModelTables& tables, Deal deal)
    : deal_(std::move(deal)) {
  add_views(request, tables);
}
CostEvaluator::CostEvaluator(CostEvaluator&&) noexcept = default;
CostEvaluator::~CostEvaluator() = default;

void CostEvaluator::add_views(const PlanRequest& request, ModelTables& tables) {
  packed_ = std::make_unique<PackedSequences>(request.workload, request.traits.pipeline.order);
  const auto views = static_cast<int>(pool_views(request.cluster).size());
  for (int view = 0; view < std::max(views, 1); ++view) {
    PlanRequest seen = request;
    if (view > 0) {
      seen.cluster = seen_from(request.cluster, view);
      seen.calibration = seen_from(request.calibration, view);
    }
    View& own = *views_.emplace_back(std::make_unique<View>());
    own.assumed = assumptions_of(std::move(seen));
    for (const Role role : roles_of(request.workload)) {
      std::optional<DealtLayout> dealt;
      if (const auto deal = deal_.find(role); deal != deal_.end()) {
        if (deal->second.layout.view == view) dealt = deal->second;
      }
      own.roles[static_cast<std::size_t>(role)] = std::make_unique<RolePricer>(
          own.assumed, role_model(own.assumed.request, role, tables), *packed_, dealt);
    }
    if (own.of(Role::rollout) == nullptr) continue;
    RolePricer* const actor = own.of(Role::actor).get();
    own.reshard = std::make_unique<ReshardPricer>(
        own.assumed, actor != nullptr ? &actor->parts() : nullptr, own.of(Role::rollout)->parts());
  }
}

const PlanRequest& CostEvaluator::request() const { return request(0); }
const PlanRequest& CostEvaluator::request(int view) const { return seen_by(view).assumed.request; }

void CostEvaluator::recalibrate(const Calibration& calibration) {
  for (std::size_t view = 0; view < views_.size(); ++view) {
    View& own = *views_[view];
    own.assumed.request.calibration = seen_from(calibration, static_cast<int>(view));
    for (const auto& role : own.roles) {
      if (role != nullptr) role->forget_seconds();
    }
  }
}

RolePricer& CostEvaluator::pricer(Role role, int view) { return *seen_by(view).of(role); }

RoleCost CostEvaluator::cost(const Candidate& candidate) {
  return pricer(candidate.role, candidate.view)
      .cost(candidate, Bytes{std::numeric_limits<std::int64_t>::max()});
}

PhaseSeconds CostEvaluator::seconds(const Candidate& candidate) {
  RolePricer& own = pricer(candidate.role, candidate.view);
  PhaseSeconds seconds{};
  for (const Phase phase : own.model().phases) {
    seconds[phase] = own.time(candidate, phase).seconds;
  }
  return seconds;
}

int CostEvaluator::fullest_stage(const Candidate& candidate, Phase phase) {
  return pricer(candidate.role, candidate.view).fullest(candidate, phase).stage->index;
}

std::int64_t CostEvaluator::cache_tokens(const Candidate& rollout) {
  const Assumptions& assumed = pricer(Role::rollout, rollout.view).assumed();
  return static_cast<std::int64_t>(std::ceil(paged_tokens(assumed, rollout)));
}

MemoryUse CostEvaluator::memory(const Candidate& candidate, Phase phase, int stage) {
  return pricer(candidate.role, candidate.view).memory(candidate, phase, stage);
}

MemoryUse CostEvaluator::memory(const Candidate& candidate, Phase phase) {
  return pricer(candidate.role, candidate.view).fullest(candidate, phase).use;
}

PhaseSeconds CostEvaluator::least_seconds(const Candidate& candidate, std::int64_t smallest) {
  RolePricer& own = pricer(candidate.role, candidate.view);
  return by_phase(own, [&](Phase phase) { return own.least_seconds(candidate, phase, smallest); });
}

PhaseSeconds CostEvaluator::glanced_seconds(const Candidate& candidate, std::int64_t smallest) {
  RolePricer& own = pricer(candidate.role, candidate.view);
  return by_phase(own,
                  [&](Phase phase) { return own.glanced_seconds(candidate, phase, smallest); });
}

Seconds CostEvaluator::handover_seconds(const Candidate& rollout, bool shared) {
  return seen_by(rollout.view).reshard->software(shared);
}

Seconds CostEvaluator::reshard_seconds(const Candidate& actor, const Candidate& rollout,
                                       bool shared) {
  const Seconds own = seen_by(rollout.view).reshard->seconds(actor, rollout, shared);
  if (actor.view == rollout.view) return own;
  return std::max(own, seen_by(actor.view).reshard->seconds(actor, rollout, shared));
}

Seconds CostEvaluator::reshard_apart(const Evaluator::Senders& from, const Candidate& rollout) {
  const Seconds own = seen_by(rollout.view).reshard->seconds_apart(from.share, rollout);
  if (from.view == rollout.view) return own;
  return std::max(own, seen_by(from.view).reshard->seconds_apart(from.share, rollout));
}

Bytes CostEvaluator::reshard_bytes(const Candidate& actor, const Candidate& rollout) {
  return busiest_bytes(actor, rollout).received;
}

BusiestBytes CostEvaluator::busiest_bytes(const Candidate& actor, const Candidate& rollout) {
  return seen_by(actor.view).reshard->bytes(actor, rollout);
}

std::size_t CostEvaluator::tensors(Role role) const {
  return seen_by(0).of(role)->model().table->rows.size();
}

Seconds CostEvaluator::least_software(int view) {
  ReshardPricer& reshard = *seen_by(view).reshard;
  return std::min(reshard.software(true), reshard.software(false));
}

Evaluator CostEvaluator::evaluator() {
  std::vector<Bytes> limits;
  for (const auto& own : views_) limits.push_back(memory_limit(own->assumed.request));
  return {
      [this, limits](const Candidate& candidate) {
        RoleCost cost = pricer(candidate.role, candidate.view)
                            .cost(candidate, limits[static_cast<std::size_t>(candidate.view)]);
        if (candidate.role == Role::rollout) {
          cost.seconds[Phase::reshard] += least_software(candidate.view);
        }
        return cost;
      },
      [this](const Candidate& candidate) {
        PhaseSeconds all = seconds(candidate);
        if (candidate.role == Role::rollout) {
          all[Phase::reshard] += least_software(candidate.view);
        }
        return all;
      },
      [this](const Candidate& actor, const Candidate& rollout, bool shared) {
        return reshard_seconds(actor, rollout, shared) - least_software(rollout.view);
      },
      [this](const Candidate& actor) { return seen_by(actor.view).reshard->busiest_share(actor); },
      [this](const Evaluator::Senders& from, const Candidate& rollout) {
        return reshard_apart(from, rollout) - least_software(rollout.view);
      },
      [this](const Candidate& candidate, std::int64_t smallest) {
        PhaseSeconds least = least_seconds(candidate, smallest);
        if (candidate.role == Role::rollout) {
          least[Phase::reshard] += least_software(candidate.view);
        }
        return least;
      },
      [this](const Candidate& candidate, std::int64_t smallest) {
        return glanced_seconds(candidate, smallest);
      },
      [this, limits](const Candidate& candidate) {
        return pricer(candidate.role, candidate.view)
            .bytes(candidate, limits[static_cast<std::size_t>(candidate.view)]);
      }};
}

Seconds host_call_seconds(const Call& call, const Workload& workload, const EngineTraits& traits,
                          const Calibration& calibration) {
  constexpr double kSequencesPerDispatch = 25;
  const auto sequences = static_cast<double>(workload.sequences());
  const Seconds software = call.phase == Phase::adv
                               ? calibration.software.value * sequences * traits.software.sequence
                               : Seconds{};
  return Seconds{calibration.dispatch_s.value} * (1 + sequences / kSequencesPerDispatch) + software;
}

PhaseSeconds compute_call_seconds(const PlanRequest& request) {
  PhaseSeconds seconds;
  for (const Call& call : request.workload.dataflow) {
    if (call.kind == CallKind::compute) {
      seconds[call.phase] =
          host_call_seconds(call, request.workload, request.traits, request.calibration);
    }
  }
  return seconds;
}

}  // namespace tessera
