// Whether a plan is the one that a search certified.
//
// The search seals what it decided and predicted with a digest (certificate.digest). A plan that
// was written by hand, imported or edited has none, or another one: nothing is proven about it.
// Pure functions; digests are xxh3 of the plan's canonical JSON.
#pragma once

#include <cstdint>
#include <string>

namespace tessera {

struct Plan;

enum class Certified { yes, not_searched, edited };

/// Of everything that the search decided and predicted: all but the environment, the paths of the
/// models, the version and the date, which users may change.
std::string certified_digest(const Plan& plan);
Certified certified(const Plan& plan);

/// Of what runs: models, workload, schedule, roles and reshards, whatever is predicted of them.
std::string mapping_digest(const Plan& plan);

/// As mapping_digest, whatever transports the reshards take: a run chooses them.
std::string run_digest(const Plan& plan);
/// The first half of run_digest: a number that metrics.jsonl holds exactly.
std::uint32_t run_number(const Plan& plan);

/// "not from a search", "edited since its search"; "" where the certificate holds.
std::string why_not_certified(const Plan& plan);

}  // namespace tessera
