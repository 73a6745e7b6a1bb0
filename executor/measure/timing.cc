#include "executor/measure/timing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tessera {

double slowest(Communicator& host, double mine) {
  auto value = static_cast<float>(mine);
  host.all_reduce(&value, 1, DType::fp32, ReduceOp::max);
  return value;
}

Timing summary(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds.front(), seconds.back()};
}

Timing timed_on_all(Communicator& host, int repetitions, const std::function<double()>& once) {
  std::vector<double> seconds;
  for (int i = -2; i < repetitions; ++i) {
    const double each = slowest(host, once());
    if (i >= 0) seconds.push_back(each);
  }
  return summary(std::move(seconds));
}

nlohmann::json timing_json(const Timing& timing, double bytes) {
  return {{"seconds", timing.median},
          {"seconds_least", timing.least},
          {"seconds_most", timing.most},
          {"gb_per_s", bytes * 1e-9 / timing.median}};
}

}  // namespace tessera
