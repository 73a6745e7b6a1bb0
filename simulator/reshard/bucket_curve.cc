#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/reshard/methods.h"

namespace tessera {

std::vector<CurvePoint> bucket_curve(const ReshardComparison& comparison) {
  constexpr Bytes kSmallest{std::int64_t{16} << 20};
  constexpr std::array kBucketed{ReshardMethod::verl_buckets, ReshardMethod::nemo_buckets,
                                 ReshardMethod::broadcast,    ReshardMethod::copy_engine,
                                 ReshardMethod::window,       ReshardMethod::send_recv};
  std::vector<CurvePoint> curve;
  for (Bytes bucket = kSmallest; curve.empty() || bucket <= comparison.model_bytes();
       bucket = bucket * 2) {
    CurvePoint& point = curve.emplace_back(CurvePoint{bucket, {}});
    for (const ReshardMethod method : kBucketed) {
      MethodCost cost = comparison.cost(method, bucket);
      if (cost.unusable.empty()) point.costs.push_back(std::move(cost));
    }
  }
  return curve;
}

}  // namespace tessera
