#include "planner/plan/call_limits.h"

namespace tessera {

// Without a default: the compiler names a phase that is forgotten.
std::int64_t Batching::*limit_of(Phase phase) {
  switch (phase) {
    case Phase::gen:
      return &Batching::prefill_tokens;
    case Phase::old_log_prob:
    case Phase::ref:
      return &Batching::log_prob_tokens;
    case Phase::values:
      return &Batching::values_tokens;
    case Phase::reward:
      return &Batching::reward_tokens;
    case Phase::update_actor:
    case Phase::update_critic:
      return &Batching::update_tokens;
    case Phase::load:
    case Phase::reshard:
    case Phase::adv:
    case Phase::save_checkpoint:
      break;
  }
  return nullptr;
}

std::int64_t token_limit(const Batching& batching, Phase phase) {
  std::int64_t Batching::*const limit = limit_of(phase);
  return limit == nullptr ? 0 : batching.*limit;
}

std::int64_t sequence_limit(const Batching& batching, Phase phase) {
  const std::int64_t Batching::*const limit = limit_of(phase);
  if (limit == &Batching::update_tokens) return batching.update_sequences;
  return limit == &Batching::log_prob_tokens ? batching.log_prob_sequences : 0;
}

bool updates(Phase phase) { return limit_of(phase) == &Batching::update_tokens; }

}  // namespace tessera
