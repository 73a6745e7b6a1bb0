// Time of generation: prefills, and decoding until the slowest replica ends (decoding.h).
//
// Seconds, sequences of one replica. Pure but for DecodeCache, which keeps what has been priced for
// one role under one view; one thread.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "cost_models/decoding.h"
#include "cost_models/spec/units.h"
#include "planner/pricing/role/role_cost.h"
#include "planner/pricing/role/role_layout.h"

namespace tessera {

/// Seconds of a decode step where sequences and contexts are looked up; unknown ones are NaN.
struct DecodeLadder {
  static constexpr std::size_t kContexts = 3;
  std::vector<std::array<Seconds, kContexts>> rungs;
};

/// What a decode step's communication depends on but for its sequences.
struct DecodeRun {
  LayerRun layers;
  int pp = 1;
  GroupShape hop;
  auto operator<=>(const DecodeRun&) const = default;
};

inline std::size_t hash_value(const DecodeRun& run) {
  std::size_t seed = hash_value(run.layers);
  boost::hash_combine(seed, run.pp);
  boost::hash_combine(seed, run.hop.nodes);
  return seed;
}

/// What generation in one way was priced at.
struct RunDecodings {
  DecodeLadder communication;
  std::map<std::tuple<int, std::int64_t, std::int64_t>, OperationTime> times;  // dp, slots, tokens
};

/// What generation was priced at.
struct DecodeCache {
  std::optional<DecodeLengths> lengths;
  std::map<std::pair<double, std::int64_t>, DecodeProfile> profiles;  // sequences, slots
  std::map<std::pair<double, std::int64_t>, double> recomputed;       // tokens, by the same
  LatestFirst<DecodeRun, RunDecodings> decodings;
  std::map<std::array<int, 4>, DecodeLadder> computes;  // by tp, ep, etp, pp
  std::vector<double> rungs;  // sequences at the rungs of all ladders, descending

  /// Forgets what depends on the constants.
  void forget_seconds();
};

/// Kernels of `prompts` whole prompts through all layers and of the first draw of `sequences`
/// samples (without what the host's cores slow them), and what they communicate.
struct PrefillSeconds {
  Seconds compute, communication;
};
PrefillSeconds prefill(const RoleLayout& layout, double prompts, double sequences);

/// Device and host time of one decode step of `alive` sequences at `context` tokens, and what the
/// step communicates. With p stages, p batches of alive / p sequences are under way at once, and
/// each passes all layers (vLLM's virtual engines).
Seconds decode_compute(const RoleLayout& layout, const Candidate& candidate, double alive,
                       double context);
Seconds decode_communication(const RoleLayout& layout, const Candidate& candidate, double alive);

/// A step of `alive` sequences, or what the server's front end takes for its tokens where that is
/// more; all sequences of the replica are at the server, running or waiting.
Seconds served(const Assumptions& assumed, const Candidate& candidate, double alive, Seconds step);

/// What the candidates of one layout find in the cache, and how slow their kernels are.
struct DecodePlace {
  RunDecodings* run = nullptr;
  DecodeLadder* computes = nullptr;
  double slow = 1;
};
DecodePlace decode_place(const RoleLayout& layout, const Candidate& candidate, DecodeCache& cache);

/// No more than the time of all responses of a step: the decode steps in which every slot is taken,
/// and those until the last sequence of a replica ends, as if no other one were left. `place`: of
/// the candidate's layout.
Seconds least_generation(const RoleLayout& layout, const Candidate& candidate,
                         const DecodePlace& place, DecodeCache& cache);

/// All responses of a step.
OperationTime generate(const RoleLayout& layout, const Candidate& candidate, DecodeCache& cache);

}  // namespace tessera
