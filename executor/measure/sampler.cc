#include "executor/measure/sampler.h"

#include <time.h>

#include <algorithm>

#include "executor/comm/stopwatch.h"
#include "executor/measure/device_timing.h"
#include "executor/weights/weights.h"

namespace tessera {

double core_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

torch::TensorOptions Sampler::tensor_options() const {
  return torch::TensorOptions().dtype(scalar_type(options_.dtype)).device(options_.device);
}

double Sampler::compute(const std::function<void()>& body) {
  return median(body, options_.device.is_cuda() ? &Sampler::wall : &Sampler::core);
}

double Sampler::together(const std::function<void()>& body) {
  const int repetitions = repetitions_of(body, &Sampler::wall);
  host_.barrier();
  const double all = wall([&] {
    for (int i = 0; i < repetitions; ++i) body();
  });
  return shared_mean(all / repetitions);
}

double Sampler::once(const std::function<void()>& body) {
  host_.barrier();
  return shared_mean(wall(body));
}

void Sampler::load(const std::function<void()>& body, double seconds) {
  body();
  const double each = once(body);
  for (int left = static_cast<int>(seconds / each) + 1; left > 0; --left) body();
}

double Sampler::loaded(const std::function<void()>& body, double seconds) {
  const double each = once(body);
  const int launches = std::clamp(static_cast<int>(seconds / each), 4, 4000);
  const double all = once([&] {
    for (int i = 0; i < launches; ++i) body();
  });
  return all / launches;
}

double Sampler::wall(const std::function<void()>& body) const {
  const Stopwatch watch;
  body();
  synchronize(options_.device);
  return watch.seconds();
}

double Sampler::core(const std::function<void()>& body) const {
  const double start = core_seconds();
  body();
  return core_seconds() - start;
}

/// Equal on every rank, for all take their part in collectives.
int Sampler::repetitions_of(const std::function<void()>& body, Timer timer) {
  (this->*timer)(body);  // warm-up
  host_.barrier();
  const double once = shared_mean((this->*timer)(body));
  return std::clamp(static_cast<int>(options_.seconds_per_point / std::max(once, 1e-7)), 3, 400);
}

double Sampler::median(const std::function<void()>& body, Timer timer) {
  std::vector<double> times(static_cast<std::size_t>(repetitions_of(body, timer)));
  host_.barrier();
  for (double& each : times) each = (this->*timer)(body);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return shared_mean(*middle);
}

double Sampler::shared_mean(double mine) {
  auto value = static_cast<float>(mine);
  host_.all_reduce(&value, 1, DType::fp32, ReduceOp::sum);
  return value / static_cast<float>(host_.size());
}

}  // namespace tessera
