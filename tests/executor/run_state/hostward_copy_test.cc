// Tensors that come one behind the other, through buffers smaller and larger than they are.
#include "executor/run_state/hostward_copy.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera {
namespace {

void expect_copied(torch::Device device) {
  const std::int64_t sizes[] = {1, 7, 1000, 3, 64, 64, 129, 0, 5000, 1};
  for (const std::int64_t window : {64, 100, 4096, 1 << 20}) {
    std::vector<torch::Tensor> parts;
    for (const std::int64_t size : sizes) {
      parts.push_back(torch::rand({size}, torch::TensorOptions(device)));
    }
    const torch::Tensor wanted = torch::cat(parts).cpu();
    torch::Tensor got = torch::full({wanted.numel() + 1}, -1.0F);
    HostwardCopy copy(got.mutable_data_ptr<float>(), device, window);
    for (const torch::Tensor& part : parts) copy.append(part);
    copy.finish();
    EXPECT_TRUE(torch::equal(got.narrow(0, 0, wanted.numel()), wanted)) << window;
    EXPECT_EQ(got[wanted.numel()].item<float>(), -1) << "nothing lies behind the last";
  }
}

TEST(HostwardCopy, OfTheHost) { expect_copied(torch::kCPU); }

TEST(HostwardCopy, OfAGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU";
  expect_copied(torch::Device(torch::kCUDA, 0));
}

}  // namespace
}  // namespace tessera
