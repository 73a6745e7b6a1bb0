#include "simulator/rollout/draw_lengths.h"

#include "cost_models/lengths.h"

namespace tessera {
namespace {

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// In (0, 1), never an end: the upper 52 bits and a half.
double uniform_of(std::uint64_t seed, std::int64_t step, std::int64_t prompt, std::int64_t sample) {
  std::uint64_t bits = mixed(seed);
  for (const std::int64_t part : {step, prompt, sample}) {
    bits = mixed(bits ^ static_cast<std::uint64_t>(part));
  }
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1.0p-52;
}

}  // namespace

std::int64_t draw_length(const LengthSpec& lengths, std::uint64_t seed, std::int64_t step,
                         std::int64_t prompt, std::int64_t sample) {
  return length_at(lengths, uniform_of(seed, step, prompt, sample));
}

std::vector<std::int64_t> draw_lengths(const Workload& workload, std::uint64_t seed,
                                       std::int64_t step) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(static_cast<std::size_t>(workload.sequences()));
  for (std::int64_t prompt = 0; prompt < workload.prompts_per_step; ++prompt) {
    for (std::int64_t sample = 0; sample < workload.samples_per_prompt; ++sample) {
      lengths.push_back(draw_length(workload.response_tokens, seed, step, prompt, sample));
    }
  }
  return lengths;
}

}  // namespace tessera
