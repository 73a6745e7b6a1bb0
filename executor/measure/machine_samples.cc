#include "executor/measure/machine_samples.h"

#include "executor/measure/sampler.h"

namespace tessera {

std::vector<CalibrationSample> measure_machine(Communicator& world, Communicator& host,
                                               const MeasureOptions& options) {
  torch::manual_seed(1);
  Sampler sampler(world, host, options);
  std::vector<CalibrationSample> samples;
  measure_operators(sampler, samples);
  measure_matmul(sampler, samples);
  measure_sustained(sampler, samples);
  measure_beside(sampler, samples);
  measure_stream(sampler, samples);
  measure_attention(sampler, samples);
  measure_collectives(sampler, samples);
  measure_waiting(sampler, samples);
  return samples;
}

}  // namespace tessera
