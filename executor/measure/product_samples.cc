#include <array>

#include "executor/measure/sampler.h"
#include "executor/tensor/gradient_products.h"

namespace tessera {
namespace {

struct Product {
  std::array<double, 3> sizes{};  // m, n, k
  std::function<void()> run;
};

/// The products of a layer's training step as the decoder makes them: forward, by input and, into
/// fp32 sums, by weight.
std::vector<Product> training_products(const torch::TensorOptions& options) {
  constexpr std::int64_t kTokens = 8192, kHidden = 4096, kFfn = 12288;
  std::vector<Product> products;
  const std::vector<std::pair<std::int64_t, std::int64_t>> weights = {
      {kHidden + kHidden / 2, kHidden}, {kHidden, kHidden}, {2 * kFfn, kHidden}, {kHidden, kFfn}};
  for (const auto& [out, in] : weights) {
    const torch::Tensor x = torch::randn({kTokens, in}, options);
    const torch::Tensor g = torch::randn({kTokens, out}, options);
    const torch::Tensor w = torch::randn({out, in}, options).mul_(0.02);
    const torch::Tensor sum = torch::zeros({out, in}, options.dtype(torch::kFloat32));
    const double m = kTokens, n = static_cast<double>(out), k = static_cast<double>(in);
    products.push_back({{m, n, k}, [x, w] { torch::mm(x, w.t()); }});
    products.push_back({{m, k, n}, [g, w] { torch::mm(g, w); }});
    products.push_back({{n, k, m}, [x, g, sum] { add_product(sum, g.t(), x); }});
  }
  return products;
}

void run(const std::vector<Product>& products) {
  for (const Product& product : products) product.run();
}

}  // namespace

void measure_matmul(Sampler& sampler, std::vector<CalibrationSample>& samples) {
  std::vector<std::int64_t> rows{16, 128, 1024, 4096}, widths{64, 256, 1024};
  if (!sampler.small_sizes())
    rows = {1, 16, 128, 512, 2048, 8192}, widths = {256, 1024, 4096, 8192};
  for (const std::int64_t m : rows) {
    for (const std::int64_t n : widths) {
      for (const std::int64_t k : {n, n / 2}) {
        const torch::Tensor x = torch::randn({m, k}, sampler.tensor_options());
        const torch::Tensor w = torch::randn({n, k}, sampler.tensor_options());
        torch::Tensor y = torch::empty({m, n}, sampler.tensor_options());
        samples.push_back(
            {.kind = SampleKind::matmul,
             .sizes = {static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)},
             .seconds = Seconds{sampler.compute([&] { torch::mm_out(y, x, w.t()); })}});
      }
    }
  }
}

void measure_sustained(Sampler& sampler, std::vector<CalibrationSample>& samples) {
  if (!sampler.options().device.is_cuda()) return;
  const torch::NoGradGuard no_grad;
  const std::vector<Product> products = training_products(sampler.tensor_options());
  sampler.load([&] { run(products); }, sampler.options().loaded_seconds);
  const double each = sampler.options().loaded_seconds / static_cast<double>(products.size());
  for (const Product& product : products) {
    samples.push_back({.kind = SampleKind::sustained,
                       .sizes = product.sizes,
                       .seconds = Seconds{sampler.loaded(product.run, each)}});
  }
}

void measure_beside(Sampler& sampler, std::vector<CalibrationSample>& samples) {
  Communicator* const side = sampler.options().side_world;
  const SideStream& stream = sampler.options().side;
  if (side == nullptr || side->size() < 2 || !stream.exists()) return;
  const torch::NoGradGuard no_grad;
  const std::vector<Product> products = training_products(sampler.tensor_options());
  constexpr std::int64_t kElements = 1 << 26;  // fp32: 256 MiB, a layer's gradients
  const torch::Tensor all = torch::zeros(
      {kElements}, torch::TensorOptions().dtype(torch::kFloat32).device(sampler.options().device));
  const torch::Tensor own = all.narrow(0, 0, kElements / side->size()).clone();
  const auto reduce = [&] {
    stream.run(stream.now(), [&] {
      side->reduce_scatter(all.data_ptr(), own.data_ptr(), static_cast<std::size_t>(own.numel()),
                           DType::fp32, ReduceOp::sum);
    });
  };
  const auto compute = [&](int times) {
    for (int i = 0; i < times; ++i) run(products);
  };
  sampler.load([&] { run(products); }, sampler.options().loaded_seconds / 2);
  constexpr int kReductions = 64;
  const double kernels = sampler.once([&] { compute(8); }) / 8;
  const double alone = sampler.once([&] {
    for (int i = 0; i < kReductions; ++i) reduce();
  });
  // Kernels enough to outlast the reductions, which are slower beside them.
  const int times = static_cast<int>(3 * alone / kernels) + 2;
  for (int round = 0; round < 3; ++round) {
    sampler.load([&] { run(products); }, sampler.options().loaded_seconds / 4);
    const double base = sampler.once([&] { compute(times); });
    const double together = sampler.once([&] {
      for (int i = 0; i < kReductions; ++i) reduce();
      compute(times);
    });
    samples.push_back(
        {.kind = SampleKind::beside, .sizes = {base, alone, 0}, .seconds = Seconds{together}});
  }
}

}  // namespace tessera
