// Bytes of this process' CPU tensors, counted from the first time that anybody asks.
#pragma once

#include <cstdint>
#include <memory>

#include "executor/memory/counting_allocator.h"

namespace tessera::testing {

inline CountedTensors& counted() {
  static const auto tensors = [] {
    auto all = std::make_shared<CountedTensors>();
    install_counting_allocator(all, [](std::int64_t) {});
    return all;
  }();
  return *tensors;
}

}  // namespace tessera::testing
