// The fixture of the communicators' tests: memory, elements of every type, values by rank.
//
// A backend names its Memory (allocate, release, write, read; device memory for NCCL), runs a
// function on every rank of a world (`run`), and says whether 16-bit sums accumulate in fp32
// (`kFp32Sums`) in rank order.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "executor/comm/communicator.h"

namespace tessera::conformance {

struct HostMemory {
  static void* allocate(std::size_t bytes) { return ::operator new(bytes); }
  static void release(void* data) { ::operator delete(data); }
  static void write(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
  static void read(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
};

using Bytes = std::vector<std::uint8_t>;

inline std::uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
/// fp16 of an integer that it holds exactly: at most 11 significant bits.
inline std::uint16_t fp16_of(int value) {
  if (value == 0) return 0;
  const unsigned magnitude = static_cast<unsigned>(value < 0 ? -value : value);
  const int exponent = std::bit_width(magnitude) - 1;
  const unsigned fraction =
      (exponent <= 10 ? magnitude << (10 - exponent) : magnitude >> (exponent - 10)) & 0x3ff;
  return static_cast<std::uint16_t>((value < 0 ? 0x8000u : 0u) |
                                    static_cast<unsigned>(exponent + 15) << 10 | fraction);
}

/// Integers as elements of a type.
inline Bytes encode(const std::vector<int>& values, DType type) {
  Bytes bytes(values.size() * static_cast<std::size_t>(size_of(type)));
  const auto put = [&](auto convert) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto element = convert(values[i]);
      std::memcpy(bytes.data() + i * sizeof(element), &element, sizeof(element));
    }
  };
  switch (type) {
    case DType::fp32:
      put([](int v) { return static_cast<float>(v); });
      break;
    case DType::bf16:
      put([](int v) { return bf16_of(static_cast<float>(v)); });
      break;
    case DType::fp16:
      put(fp16_of);
      break;
    case DType::int64:
      put([](int v) { return static_cast<std::int64_t>(v); });
      break;
    case DType::int32:
      put([](int v) { return static_cast<std::int32_t>(v); });
      break;
    case DType::uint8:
      put([](int v) { return static_cast<std::uint8_t>(v); });
      break;
  }
  return bytes;
}

inline constexpr DType kAllTypes[] = {DType::fp32,  DType::bf16,  DType::fp16,
                                      DType::int64, DType::int32, DType::uint8};

template <class Backend>
class CommConformance : public ::testing::Test {
 public:
  using Memory = typename Backend::Memory;

  /// A block of the backend's memory.
  class Buffer {
   public:
    explicit Buffer(std::size_t bytes) : data_(Memory::allocate(bytes + 1)), bytes_(bytes) {}
    explicit Buffer(const Bytes& bytes) : Buffer(bytes.size()) {
      if (!bytes.empty()) Memory::write(data_, bytes.data(), bytes.size());
    }
    Buffer(Buffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
    ~Buffer() {
      if (data_ != nullptr) Memory::release(data_);
    }
    void* data() { return data_; }
    void* at(std::size_t offset) { return static_cast<std::uint8_t*>(data_) + offset; }
    Bytes read() const {
      Bytes bytes(bytes_);
      if (bytes_ != 0) Memory::read(bytes.data(), data_, bytes_);
      return bytes;
    }

   private:
    void* data_;
    std::size_t bytes_;
  };

  /// Element i of rank r: small enough that every type and every partial sum is exact.
  static int value(int rank, std::size_t i) {
    return static_cast<int>((static_cast<std::size_t>(rank) * 7 + i * 5) % 13);
  }
  static std::vector<int> values(int rank, std::size_t count, std::size_t first = 0) {
    std::vector<int> made(count);
    for (std::size_t i = 0; i < count; ++i) made[i] = value(rank, first + i);
    return made;
  }
  static std::vector<int> reduced(int ranks, std::size_t count, ReduceOp op,
                                  std::size_t first = 0) {
    std::vector<int> made = values(0, count, first);
    for (int r = 1; r < ranks; ++r) {
      for (std::size_t i = 0; i < count; ++i) {
        const int v = value(r, first + i);
        made[i] = op == ReduceOp::sum ? made[i] + v : std::max(made[i], v);
      }
    }
    return made;
  }
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  static std::size_t bytes(int ranks, std::size_t each) { return index(ranks) * each; }
  static std::vector<int> first_ranks(int count) {
    std::vector<int> ranks(index(count));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
};

}  // namespace tessera::conformance
