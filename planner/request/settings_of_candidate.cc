#include "planner/request/settings_of_candidate.h"

#include "planner/request/candidate.h"

namespace tessera {

std::int64_t offload_value(const Offload& offload) {
  if (offload.parameters) return kOffloadAll;
  return offload.optimizer ? kOffloadOptimizer : kOffloadNone;
}

std::int64_t value_of(const Candidate& candidate, Field field) {
  switch (field) {
    case Field::gpus:
      return candidate.gpus;
    case Field::tp:
      return candidate.tp;
    case Field::pp:
      return candidate.pp;
    case Field::dp:
      return candidate.dp;
    case Field::zero:
      return candidate.zero;
    case Field::tokens:
      return candidate.tokens;
    case Field::max_sequences:
      return candidate.max_sequences;
    case Field::cp:
      return candidate.cp;
    case Field::vpp:
      return candidate.vpp;
    case Field::ep:
      return candidate.ep;
    case Field::etp:
      return candidate.etp;
    case Field::dp_shard:
      return candidate.dp_shard;
    case Field::recompute:
      return static_cast<std::int64_t>(candidate.recompute);
    case Field::offload:
      return offload_value(candidate.offload);
    case Field::context:
      return candidate.ulysses ? 1 : 0;
    case Field::sequence_parallel:
      return candidate.sequence_parallel ? 1 : 0;
    case Field::head_layers:
      return candidate.head_layers;
    case Field::update_tokens:
      return candidate.update_tokens;
  }
  return 0;
}

std::vector<Field> fields_of(const Candidate& candidate) {
  std::vector<Field> fields = {Field::gpus, Field::tp,  Field::pp,     Field::dp,
                               Field::ep,   Field::etp, Field::offload};
  if (candidate.role == Role::rollout) {
    fields.push_back(Field::max_sequences);
    return fields;
  }
  fields.insert(fields.end(),
                {Field::tokens, Field::cp, Field::head_layers, Field::vpp, Field::dp_shard});
  if (candidate.cp > 1) fields.push_back(Field::context);
  if (candidate.role != Role::actor && candidate.role != Role::critic) return fields;
  fields.insert(fields.end(), {Field::zero, Field::recompute});
  if (candidate.update_tokens > 0) fields.push_back(Field::update_tokens);
  return fields;
}

}  // namespace tessera
