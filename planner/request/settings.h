// Choices that the user fixes before the search: `--fix actor.tp=2 rollout.dp=2`.
//
// A plain value. A key is ROLE.FIELD; fields count ranks, tokens or sequences.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/workload.h"

namespace tessera {

/// `recompute` counts none, selective, full from 0; `offload` none, optimizer, all (for roles that
/// are not trained and the rollout: none, all); `context` ring, ulysses (how cp > 1 runs).
/// `tokens` limits the micro-batches of all calls, and where `update_tokens` is stated only of
/// those that do not train. `sequence_parallel` is 0 or 1; `zero` of roles that are not trained 0
/// or 3; `head_layers` the layers that the cut counts for the last stage's head, from 0.
enum class Field {
  gpus,
  tp,
  pp,
  dp,
  zero,
  tokens,
  max_sequences,
  cp,
  vpp,
  ep,
  etp,
  dp_shard,
  recompute,
  offload,
  context,
  sequence_parallel,
  head_layers,
  update_tokens
};
std::string_view name_of(Field field);
/// Every field, in the order of the enum.
std::span<const Field> every_field();
/// Whether the field means something for the role.
bool applies(Role role, Field field);
/// The words that the field's values are named by, from 0; empty: they are any whole numbers.
std::span<const std::string_view> words_of(Field field);

/// Values of Field::offload.
inline constexpr std::int64_t kOffloadNone = 0, kOffloadOptimizer = 1, kOffloadAll = 2;

struct FixedSettings {
  std::map<std::pair<Role, Field>, std::int64_t> values;
  /// "actor | critic": roles of one block joined by '+', blocks by '|', in any order; empty = free.
  /// A rollout that is not named shares the actor's block, as one named there does.
  std::string placement;

  /// Devices of a role's ranks on a cluster with several types, as type_name of
  /// spec/node_groups.h: "H100-SXM-80GB", "A100-SXM-80GB+H100-SXM-80GB".
  std::map<Role, std::string> gpu_types;

  std::optional<std::int64_t> find(Role role, Field field) const;
  /// True when the role's field is free or fixed to `value`.
  bool allows(Role role, Field field, std::int64_t value) const;
  bool empty() const { return values.empty() && placement.empty() && gpu_types.empty(); }
  bool operator==(const FixedSettings&) const = default;
};

/// Reads words like "actor.tp=2", "actor.recompute=full", "rollout.gpu=H20-96GB" or
/// "placement=actor|critic". Unknown roles and fields get did-you-mean, values that are no positive
/// integer (zero: 0 or more) and contradictions are refused, all at once.
FixedSettings parse_settings(std::span<const std::string> words, Problems& problems);

/// The words that parse_settings reads, in order of roles and fields.
std::vector<std::string> words_of(const FixedSettings& settings);

}  // namespace tessera
