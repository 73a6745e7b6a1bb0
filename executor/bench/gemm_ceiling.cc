#include "executor/bench/gemm_ceiling.h"

#include <algorithm>
#include <functional>

#include "executor/measure/device_timing.h"
#include "executor/tensor/gradient_products.h"

namespace tessera {
namespace {

using torch::Tensor;

struct Weight {
  std::string name;
  std::int64_t out = 0, in = 0;
  bool transposed = false;  // stored [in, out]
  int layers = 1;
};

/// The products of layers as the decoder makes them: q|k|v and gate|up are one each.
std::vector<Weight> weights_of(const Weights& weights) {
  const auto size = [&](int row, int dim) { return weights.tensor(row).size(dim); };
  int layers = 0;
  const LayerRows* rows = nullptr;
  for (const LayerRows& each : weights.rows.layers) {
    if (each.q < 0 || !weights.holds(each.q)) continue;
    ++layers;
    rows = &each;
  }
  std::vector<Weight> all;
  if (rows != nullptr) {
    all.push_back({"qkv", size(rows->q, 0) + size(rows->k, 0) + size(rows->v, 0), size(rows->q, 1),
                   false, layers});
    all.push_back({"o", size(rows->o, 1), size(rows->o, 0), true, layers});
    all.push_back(
        {"gate_up", size(rows->gate, 0) + size(rows->up, 0), size(rows->gate, 1), false, layers});
    all.push_back({"down", size(rows->down, 1), size(rows->down, 0), true, layers});
  }
  const int head = weights.rows.head;
  const bool last = weights.coord.pp == weights.layout.pp - 1;
  if (last && head >= 0 && weights.holds(head) && size(head, 0) > 1) {
    all.push_back({"head", size(head, 0), size(head, 1), false, 1});
  }
  return all;
}

}  // namespace

std::vector<TimedProduct> time_products(const Weights& weights, std::int64_t tokens, int rounds) {
  const torch::NoGradGuard no_grad;
  const torch::Device device = weights.device();
  const auto options = torch::TensorOptions().dtype(scalar_type(weights.dtype)).device(device);
  std::vector<TimedProduct> products;
  for (const Weight& weight : weights_of(weights)) {
    constexpr std::int64_t kHeadRows = 4096;
    const bool head = weight.name == "head";
    const std::int64_t rows = head ? std::min(tokens, kHeadRows) : tokens;
    const int times = weight.layers * static_cast<int>(head ? (tokens + rows - 1) / rows : 1);
    const Tensor x = torch::randn({rows, weight.in}, options);
    const Tensor g = torch::randn({rows, weight.out}, options);
    const Tensor w = weight.transposed
                         ? torch::randn({weight.in, weight.out}, options).mul_(0.02)
                         : torch::randn({weight.out, weight.in}, options).mul_(0.02).t();
    const Tensor by_weight = weight.transposed
                                 ? torch::zeros({weight.in, weight.out}, at::kFloat).to(device)
                                 : torch::zeros({weight.out, weight.in}, at::kFloat).to(device);
    const auto add = [&](const char* pass, std::int64_t m, std::int64_t n, std::int64_t k,
                         const std::function<void()>& body) {
      products.push_back({.name = weight.name + " " + pass,
                          .m = m,
                          .n = n,
                          .k = k,
                          .seconds = seconds_per_launch(device, rounds, body),
                          .per_micro_batch = times});
    };
    add("forward", rows, weight.out, weight.in, [&] {
      head&& device.is_cuda() && weights.dtype != DType::fp32 ? at::mm(x, w, at::kFloat)
                                                              : at::mm(x, w);
    });
    add("by input", rows, weight.in, weight.out, [&] { at::mm(g, w.t()); });
    add("by weight", by_weight.size(0), by_weight.size(1), rows, [&] {
      weight.transposed ? add_product(by_weight, x.t(), g) : add_product(by_weight, g.t(), x);
    });
  }
  return products;
}

}  // namespace tessera
