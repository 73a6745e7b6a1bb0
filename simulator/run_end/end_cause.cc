#include "simulator/run_end/end_cause.h"

#include <algorithm>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

bool ended_with(const RankStatus& rank, ExitCode code) {
  return rank.state == RankState::finished && rank.exit_code == static_cast<int>(code);
}

}  // namespace

ExitCode exit_code_of(StopReason reason) {
  return reason == StopReason::requeue ? ExitCode::requeue : ExitCode::stopped;
}

bool ended_by_error(const RankStatus& rank) {
  return rank.state == RankState::finished && rank.exit_code != 0 &&
         !ended_with(rank, ExitCode::stopped) && !ended_with(rank, ExitCode::requeue);
}

RunCause cause_of_end(const std::vector<RankStatus>& ranks, std::span<const int> dead,
                      StopReason stopped, bool killed) {
  const auto find = [&](const auto& wanted) -> const RankStatus* {
    const auto found = std::ranges::find_if(ranks, wanted);
    return found == ranks.end() ? nullptr : &*found;
  };
  const auto ended = [&](ExitCode code) {
    return find([code](const RankStatus& rank) { return ended_with(rank, code); });
  };
  const auto failed_itself = [](const RankStatus& rank) {
    return ended_by_error(rank) && !ended_with(rank, ExitCode::peer_lost);
  };
  if (const RankStatus* rank = find(failed_itself)) return {EndCause::failed, rank};
  const RankStatus* first_dead = nullptr;
  for (const int number : dead) {
    if (first_dead != nullptr) break;
    first_dead = find([number](const RankStatus& rank) {
      return rank.rank == number && rank.state == RankState::running;
    });
  }
  const bool asked = stopped != StopReason::none;
  if (asked && (killed || first_dead != nullptr)) return {EndCause::killed, first_dead};
  if (first_dead != nullptr) return {EndCause::lost, first_dead};
  if (const RankStatus* rank = ended(ExitCode::peer_lost)) return {EndCause::lost_peer, rank};
  if (const RankStatus* rank = ended(ExitCode::requeue)) return {EndCause::requeued, rank};
  if (asked) return {EndCause::asked};
  if (const RankStatus* rank = ended(ExitCode::stopped)) return {EndCause::by_rule, rank};
  return {};
}

}  // namespace tessera
