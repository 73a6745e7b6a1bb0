// Readers that several sections of run.yaml share: refusals with a reason, values that the plan
// fixes, optimizers, aggregations. Problems go to the reader; pure otherwise.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "cost_models/documents/object_reader.h"
#include "executor/config/run_config.h"

namespace tessera {

/// A key that verl has and tessera does not. `same`: the value, as YAML writes it, that states what
/// tessera does anyway, and is taken; nullptr: none.
struct Refusal {
  const char *key, *reason, *same = nullptr;
};

/// The reason instead of "unknown".
void refuse_unsupported(ObjectReader& reader, std::span<const Refusal> refusals);
inline void refuse_unsupported(ObjectReader& reader, std::initializer_list<Refusal> refusals) {
  refuse_unsupported(reader, std::span(refusals.begin(), refusals.size()));
}

/// Maps of verl's configuration whose keys are refused alike wherever they stand: `engine` are
/// those of all roles, `update` those of actor and critic, `roles` those of actor_rollout_ref.
enum class Section : std::uint8_t { root, trainer, data, roles, model, engine, update, rollout };
void refuse_unsupported(ObjectReader& reader, Section section);

/// A value that the plan fixes; the file may repeat it.
void fixed(ObjectReader& reader, std::string_view key, std::int64_t planned,
           const std::string& where);
void fixed(ObjectReader& reader, std::string_view key, const std::string& planned,
           const std::string& where);
void fixed_flag(ObjectReader& reader, std::string_view key, bool planned, const std::string& where);

void read_seed(ObjectReader& reader, std::string_view key, std::uint64_t& seed);
/// null means clip_ratio; absent means verl's 0.2.
void read_clip(ObjectReader& reader, std::string_view key, std::optional<double>& bound);
void read_kl_type(ObjectReader& reader, std::string_view key, KlPenalty& penalty);
/// `response_tokens`: the longest response, which is the default of loss_scale_factor as in verl
/// (the padded width).
void read_aggregation(ObjectReader& reader, std::int64_t response_tokens, Aggregation& aggregation);
void read_optim(ObjectReader& parent, OptimConfig& optim);

}  // namespace tessera
