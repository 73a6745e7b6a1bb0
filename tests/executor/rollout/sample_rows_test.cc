#include "executor/rollout/sample_rows.h"

#include <gtest/gtest.h>

#include <limits>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

struct Case {
  torch::Tensor logits;
  std::vector<std::int64_t> rows;
  std::vector<double> uniforms;
};

Case make_case(std::int64_t vocabulary, std::int64_t draws, std::uint64_t seed) {
  torch::manual_seed(seed);
  Case c{.logits = torch::randn({5, vocabulary}) * 2};
  for (std::int64_t i = 0; i < draws; ++i) {
    c.rows.push_back(i % 5);
    c.uniforms.push_back(uniform(seed, {0, 0, 0, static_cast<std::uint32_t>(i)}));
  }
  return c;
}

std::vector<Draw> drawn_on(torch::Device device, const torch::Tensor& logits,
                           const std::vector<std::int64_t>& rows,
                           const std::vector<double>& uniforms, const SamplingOptions& options) {
  return draws_of(draw_rows(logits.to(device), torch::tensor(rows, torch::kLong).to(device),
                            torch::tensor(uniforms, torch::kDouble).to(device), options));
}

void expect_host_and_device_agree(const Case& c, const SamplingOptions& options,
                                  torch::Device device) {
  const auto host = sample_rows(c.logits, c.rows, c.uniforms, options);
  const auto other = drawn_on(device, c.logits, c.rows, c.uniforms, options);
  ASSERT_EQ(host.size(), other.size());
  for (std::size_t i = 0; i < host.size(); ++i) {
    EXPECT_EQ(host[i].token, other[i].token) << i;
    EXPECT_NEAR(host[i].log_prob, other[i].log_prob, 1e-6) << i;
  }
}

std::vector<SamplingOptions> all_options() {
  return {{},
          {.temperature = 0},
          {.temperature = 0.7},
          {.temperature = 1.3, .top_k = 5},
          {.temperature = 1, .top_p = 0.7},
          {.temperature = 0.9, .top_k = 20, .top_p = 0.5},
          {.temperature = 1, .top_k = 1},
          {.temperature = 1, .top_k = 1000000, .top_p = 0.01},
          {.temperature = 0.8, .min_p = 0.1},
          {.temperature = 1.4, .top_k = 30, .top_p = 0.9, .min_p = 0.03},
          {.temperature = 1, .min_p = 1}};
}

std::vector<torch::Device> devices() {
  std::vector<torch::Device> result{torch::kCPU};
  if (torch::cuda::is_available()) result.push_back(torch::kCUDA);
  return result;
}

TEST(SampleRows, TensorOperationsDrawTheHostsTokens) {
  for (const torch::Device device : devices()) {
    for (const SamplingOptions& options : all_options()) {
      SCOPED_TRACE(::testing::Message() << device << " " << options.temperature << " "
                                        << options.top_k << " " << options.top_p);
      expect_host_and_device_agree(make_case(37, 400, 3), options, device);
      expect_host_and_device_agree(make_case(5003, 50, 4), options, device);
    }
  }
}

TEST(SampleRows, EqualLogitsAreCutAndDrawnAlike) {
  Case c = make_case(50, 300, 8);
  c.logits = c.logits.round();
  for (const torch::Device device : devices()) {
    for (const SamplingOptions& options : all_options()) {
      SCOPED_TRACE(::testing::Message() << device << " " << options.temperature << " "
                                        << options.top_k << " " << options.top_p);
      expect_host_and_device_agree(c, options, device);
    }
  }
}

TEST(SampleRows, EachDrawReadsItsRow) {
  torch::Tensor logits = torch::full({3, 4}, -std::numeric_limits<float>::infinity());
  logits[0][2] = 0;
  logits[1][0] = 0;
  logits[2][3] = 0;
  const std::vector<std::int64_t> rows = {2, 0, 0, 1};
  const std::vector<double> uniforms = {0.1, 0.5, 0.9, 0.3};
  for (const auto& draws : {sample_rows(logits, rows, uniforms, {}),
                            drawn_on(torch::kCPU, logits, rows, uniforms, {})}) {
    std::vector<int> tokens;
    for (const Draw& draw : draws) tokens.push_back(draw.token);
    EXPECT_EQ(tokens, (std::vector<int>{3, 2, 2, 0}));
    EXPECT_EQ(draws[0].log_prob, 0);
  }
}

TEST(SampleRows, RowsThatAreNotLogitsAreRefused) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    torch::Tensor logits = torch::zeros({2, 4});
    logits[1][2] = bad;
    const std::vector<std::int64_t> first = {0}, both = {0, 1};
    const std::vector<double> u = {0.5, 0.5};
    EXPECT_NO_THROW(drawn_on(torch::kCPU, logits, first, {0.5}, {}));
    EXPECT_THROW(drawn_on(torch::kCPU, logits, both, u, {}), Error);
    EXPECT_THROW(sample_rows(logits, both, u, {}), Error);
  }
}

}  // namespace
}  // namespace tessera
