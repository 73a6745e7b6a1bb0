// Tests on a GPU whose work may be captured as a graph.
#pragma once

#include <c10/cuda/CUDAGuard.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/executor/model/fixture.h"

namespace tessera::testing {

class OnGpuStream : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU on this machine";
    stream_.emplace(c10::cuda::getStreamFromPool());  // the default stream cannot be captured
  }
  void TearDown() override { stream_.reset(); }
  std::optional<c10::cuda::CUDAStreamGuard> stream_;
  ParallelGroups alone{.member = true, .index = 0};
};

}  // namespace tessera::testing
