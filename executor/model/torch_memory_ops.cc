#include "executor/model/torch_memory_ops.h"

#include "executor/model/torch.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr std::int64_t kPieceElements = std::int64_t{1} << 24;

at::ScalarType torch_type(DType type) {
  return type == DType::fp32   ? torch::kFloat
         : type == DType::bf16 ? torch::kBFloat16
                               : torch::kHalf;
}

class TorchMemoryOps final : public MemoryOps {
 public:
  explicit TorchMemoryOps(int device)
      : device_(device < 0 ? torch::Device(torch::kCPU)
                           : torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(device))) {}

  void cast(void* to, DType to_type, const void* from, DType from_type,
            std::size_t count) override {
    const torch::NoGradGuard no_grad;
    view(to, torch_type(to_type), count).copy_(view(from, torch_type(from_type), count));
  }

  CastError cast_error(const void* from, DType to_type, std::size_t count) override {
    const torch::NoGradGuard no_grad;
    torch::Tensor sums = torch::zeros({2}, options(torch::kDouble));
    const torch::Tensor all = view(from, torch::kFloat, count);
    for (std::int64_t begin = 0; begin < all.numel(); begin += kPieceElements) {
      const torch::Tensor piece =
          all.narrow(0, begin, std::min(kPieceElements, all.numel() - begin));
      const torch::Tensor error = piece.to(torch_type(to_type)).to(torch::kFloat) - piece;
      sums[0] += error.square().sum(torch::kDouble);
      sums[1] += piece.square().sum(torch::kDouble);
    }
    const torch::Tensor host = sums.cpu();
    return {host[0].item<double>(), host[1].item<double>()};
  }

  /// Sum over 16-bit words of word * odd(position), modulo 2^64: position and value both count.
  std::vector<std::uint64_t> checksums(std::span<const MemoryRange> ranges) override {
    const torch::NoGradGuard no_grad;
    const torch::Tensor factors = torch::arange(kPieceElements, options(torch::kLong))
                                      .mul_(static_cast<std::int64_t>(0x9E3779B97F4A7C16u))
                                      .add_(1);
    torch::Tensor sums =
        torch::zeros({static_cast<std::int64_t>(ranges.size())}, options(torch::kLong));
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const std::int64_t words = static_cast<std::int64_t>(ranges[i].bytes / 2);
      const torch::Tensor all = view(ranges[i].data, torch::kShort, ranges[i].bytes / 2);
      torch::Tensor sum = sums[static_cast<std::int64_t>(i)];
      for (std::int64_t begin = 0; begin < words; begin += kPieceElements) {
        const std::int64_t size = std::min(kPieceElements, words - begin);
        sum.mul_(std::int64_t{0x100000001B3})
            .add_(
                all.narrow(0, begin, size).to(torch::kLong).mul_(factors.narrow(0, 0, size)).sum());
      }
    }
    const torch::Tensor host = sums.cpu();
    const auto* values = host.const_data_ptr<std::int64_t>();
    return {values, values + ranges.size()};
  }

 private:
  torch::TensorOptions options(at::ScalarType type) const {
    return torch::TensorOptions().dtype(type).device(device_);
  }
  torch::Tensor view(const void* data, at::ScalarType type, std::size_t count) const {
    return torch::from_blob(const_cast<void*>(data), {static_cast<std::int64_t>(count)},
                            options(type));
  }

  torch::Device device_;
};

}  // namespace

std::unique_ptr<MemoryOps> make_torch_memory_ops(int device) {
  return std::make_unique<TorchMemoryOps>(device);
}

}  // namespace tessera
