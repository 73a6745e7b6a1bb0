// Sampler: shared by the measures of a machine: timing of a body on all ranks at once; measures by
// kind.
//
// Every method and function is collective and gives equal results on every rank. One thread.
#pragma once

#include <functional>
#include <vector>

#include "executor/measure/machine_samples.h"

namespace tessera {

/// The communicators and options live longer.
class Sampler {
 public:
  Sampler(Communicator& world, Communicator& host, const MeasureOptions& options)
      : world_(world), host_(host), options_(options) {}

  Communicator& world() { return world_; }
  Communicator& host() { return host_; }
  const MeasureOptions& options() const { return options_; }
  torch::TensorOptions tensor_options() const;
  /// A quick calibration of CPU ranks is for models that they can run; a GPU measures large sizes
  /// in no more time.
  bool small_sizes() const { return options_.quick && !options_.device.is_cuda(); }

  /// Seconds of compute: of the device, or of a core. Median of repetitions, meaned over the ranks.
  double compute(const std::function<void()>& body);
  /// Seconds that pass on all ranks together, shared cores included: a mean, because a turn that
  /// waits for its core is rare and long.
  double together(const std::function<void()>& body);
  /// Seconds of a turn of all ranks, which begin together.
  double once(const std::function<void()>& body);
  /// Keeps the devices busy with turns of `body` for so many seconds.
  void load(const std::function<void()>& body, double seconds);
  /// Seconds of one launch among as many as fill the time, with nothing between.
  double loaded(const std::function<void()>& body, double seconds);

 private:
  using Timer = double (Sampler::*)(const std::function<void()>&) const;

  double wall(const std::function<void()>& body) const;
  double core(const std::function<void()>& body) const;
  int repetitions_of(const std::function<void()>& body, Timer timer);
  double median(const std::function<void()>& body, Timer timer);
  double shared_mean(double mine);

  Communicator& world_;
  Communicator& host_;
  const MeasureOptions& options_;
};

/// Seconds of a core that this thread has used: what it would take with the core to itself.
double core_seconds();

/// GEMMs by size.
void measure_matmul(Sampler& sampler, std::vector<CalibrationSample>& samples);
/// Products in turn without a pause (GPUs): clocks fall within a second of full load.
void measure_sustained(Sampler& sampler, std::vector<CalibrationSample>& samples);
/// Measures these products beside reductions of a layer's gradients on the side stream.
void measure_beside(Sampler& sampler, std::vector<CalibrationSample>& samples);
/// Measures a layer's work beside GEMMs and attention, in the executor's own operators.
void measure_stream(Sampler& sampler, std::vector<CalibrationSample>& samples);
/// Causal attention over packed sequences of one length, forward and backward.
void measure_attention(Sampler& sampler, std::vector<CalibrationSample>& samples);
/// Per operator: what four more layers cost, by the number of operators that the cost model counts.
void measure_operators(Sampler& sampler, std::vector<CalibrationSample>& samples);
/// Collectives of pairs and of the whole world.
void measure_collectives(Sampler& sampler, std::vector<CalibrationSample>& samples);
/// How much of the cores ranks take that wait in a collective while others compute (CPU ranks that
/// share cores): as many compute as there are cores.
void measure_waiting(Sampler& sampler, std::vector<CalibrationSample>& samples);

}  // namespace tessera
