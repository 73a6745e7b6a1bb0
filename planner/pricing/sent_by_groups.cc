// What ranks send for the layers of passes and of generation, link by link: from what they take
// less time where those links take none.
#include <algorithm>
#include <array>

#include "cost_models/collective.h"
#include "planner/plan/plan.h"
#include "planner/pricing/role/passes.h"
#include "planner/pricing/role/role_pricer.h"
#include "planner/pricing/role_operations.h"

namespace tessera {
namespace {

/// A kind of groups, and where their bytes are counted.
struct KindOfGroup {
  GroupShape CandidateGroups::*group;
  Traffic SentByGroups::*bytes;
};
constexpr std::array kKindsOfGroups{KindOfGroup{&CandidateGroups::tp, &SentByGroups::tensor},
                                    KindOfGroup{&CandidateGroups::cp, &SentByGroups::context},
                                    KindOfGroup{&CandidateGroups::ep, &SentByGroups::experts},
                                    KindOfGroup{&CandidateGroups::hop, &SentByGroups::stages}};

RoleLayout without_groups(RoleLayout layout) {
  layout.groups.tp = layout.groups.cp = layout.groups.ep = GroupShape{};
  layout.groups.hop = {2, 1};
  return layout;
}

}  // namespace

RoleOperations::Sending RoleOperations::sending(Traffic SentByGroups::*kind) const {
  const CandidateGroups& groups = layout_.groups;
  if (kind == &SentByGroups::tensor) return {Collective::all_reduce, groups.tp};
  if (kind == &SentByGroups::experts) return {Collective::all_to_all, groups.ep};
  if (kind == &SentByGroups::stages) return {Collective::send_receive, groups.hop};
  if (candidate_.ulysses) return {Collective::all_to_all, groups.cp};
  GroupShape neighbours = groups.cp;
  neighbours.ranks = std::min(2, neighbours.ranks);
  return {Collective::send_receive, neighbours};
}

BytesPerSecond RoleOperations::rate_across(Traffic SentByGroups::*kind) const {
  const auto& [collective, group] = sending(kind);
  if (group.nodes <= 1) return {};
  return inter_node_bandwidth(collective, group, layout_.assumed->cluster(),
                              layout_.assumed->calibration());
}

WithinRates RoleOperations::within_rates(Traffic SentByGroups::*kind) const {
  const auto& [collective, group] = sending(kind);
  if (group.nodes > 1 || group.ranks <= 1) return {};
  return rates_within(collective, group, layout_.assumed->cluster(),
                      layout_.assumed->calibration());
}

// What of the collectives' time links take is what they would take less if these took none.
template <class Price>
std::vector<SentByGroups> RoleOperations::sent(Sent over, const Price& price) const {
  const Assumptions* const free = (over == Sent::across ? free_cards_ : free_ports_).get();
  if (free == nullptr) return {};
  std::vector<SentByGroups> parts;
  for (const auto& [group, bytes] : kKindsOfGroups) {
    const bool hops = bytes == &SentByGroups::stages;  // which a pass of a trained role has apart
    if (hops && (role_.role != Role::rollout || candidate_.pp == 1)) continue;
    const BytesPerSecond rate =
        over == Sent::shared ? within_rates(bytes).together : rate_across(bytes);
    if (rate <= 0) continue;
    RoleLayout alone = without_groups(layout_);
    alone.groups.*group = layout_.groups.*group;
    const std::vector<Seconds> with = price(alone);
    alone.assumed = free;
    const std::vector<Seconds> without = price(alone);
    parts.resize(with.size());
    for (std::size_t i = 0; i < with.size(); ++i) parts[i].*bytes = (with[i] - without[i]) * rate;
  }
  return parts;
}

void RoleOperations::add_sent(const MicroBatchCost& cost, const TokenBatch& batch, double scored,
                              bool backward, std::vector<ChunkPass>& passes) const {
  const auto price = [&](const RoleLayout& layout) {
    const MicroBatchCost priced =
        price_micro_batch(layout, candidate_, cost, batch, {scored, batch.sequences, 0}, backward);
    std::vector<Seconds> seconds;
    for (std::size_t chunk = 0; chunk < passes.size(); ++chunk) {
      seconds.push_back(communication_in(priced, static_cast<int>(chunk), backward));
    }
    return seconds;
  };
  const std::vector<SentByGroups> across = sent(Sent::across, price);
  const std::vector<SentByGroups> shared = sent(Sent::shared, price);
  for (std::size_t chunk = 0; chunk < across.size(); ++chunk) passes[chunk].across = across[chunk];
  for (std::size_t chunk = 0; chunk < shared.size(); ++chunk) passes[chunk].shared = shared[chunk];
}

void RoleOperations::add_within(const MicroBatchCost& cost, const TokenBatch& batch, double scored,
                                bool backward, std::vector<ChunkPass>& passes) const {
  const MicroBatchCost bytes = price_micro_batch(counted_layout(), candidate_, cost, batch,
                                                 {scored, batch.sequences, 0}, backward);
  for (std::size_t chunk = 0; chunk < passes.size(); ++chunk) {
    passes[chunk].within =
        Traffic{communication_in(bytes, static_cast<int>(chunk), backward).value};
  }
}

/// Whose communication takes a second for each byte.
RoleLayout RoleOperations::counted_layout() const {
  RoleLayout counted = layout_;
  counted.assumed = slow_ports_.get();
  return counted;
}

// A prompt passes every stage once, each of which has its part of the layers.
Traffic RoleOperations::prefill_within(double prompts, double sequences) const {
  if (!slow_ports_) return {};
  const double all = tessera::prefill(counted_layout(), prompts, sequences).communication.value;
  return Traffic{all / candidate_.pp};
}

// In a step each stage decodes as many micro-batches as there are stages: a rank moves what one of
// them moves in all layers.
Traffic RoleOperations::decode_within(double sequences) const {
  if (!slow_ports_) return {};
  return Traffic{decode_communication(counted_layout(), candidate_, sequences).value};
}

template <class Price>
SentByGroups RoleOperations::sent_generating(Sent over, const Price& price) const {
  const auto parts =
      sent(over, [&](const RoleLayout& layout) { return std::vector{price(layout)}; });
  return parts.empty() ? SentByGroups{} : parts.front();
}

SentByGroups RoleOperations::prefill_sent(Sent over, double prompts, double sequences) const {
  return sent_generating(over, [&](const RoleLayout& layout) {
    return tessera::prefill(layout, prompts, sequences).communication / candidate_.pp;
  });
}

SentByGroups RoleOperations::decode_sent(Sent over, double sequences) const {
  return sent_generating(over, [&](const RoleLayout& layout) {
    return decode_communication(layout, candidate_, sequences);
  });
}

}  // namespace tessera
