#include "executor/tensor/torch_memory_ops.h"

#include "executor/tensor/torch.h"

#include <algorithm>

#ifdef TESSERA_HAVE_KERNELS
#include <c10/cuda/CUDAStream.h>

#include "executor/kernels/range_sums.h"
#include "executor/kernels/weight_digest.h"
#endif

namespace tessera {
namespace {

#ifndef TESSERA_HAVE_KERNELS
constexpr std::int64_t kPieceElements = std::int64_t{1} << 24;
#endif

at::ScalarType torch_type(DType type) {
  return type == DType::fp32   ? torch::kFloat
         : type == DType::bf16 ? torch::kBFloat16
                               : torch::kHalf;
}

class TorchMemoryOps final : public MemoryOps {
 public:
  explicit TorchMemoryOps(int device)
      : device_(torch::kCUDA, static_cast<c10::DeviceIndex>(device)) {}

  void cast(void* to, DType to_type, const void* from, DType from_type,
            std::size_t count) override {
    const torch::NoGradGuard no_grad;
    view(to, torch_type(to_type), count).copy_(view(from, torch_type(from_type), count));
  }

  void cast_noting_error(void* to, DType to_type, const void* from, std::size_t count) override {
    const torch::NoGradGuard no_grad;
    if (!errors_.defined()) errors_ = torch::zeros({2}, options(torch::kDouble));
#ifdef TESSERA_HAVE_KERNELS
    const auto half = to_type == DType::bf16 ? kernels::HalfType::bf16 : kernels::HalfType::fp16;
    kernels::cast_to_half(static_cast<const float*>(from), to, half,
                          static_cast<std::int64_t>(count), errors_.data_ptr<double>(), stream());
#else
    const torch::Tensor all = view(from, torch::kFloat, count);
    const torch::Tensor cast = view(to, torch_type(to_type), count);
    cast.copy_(all);
    for (std::int64_t begin = 0; begin < all.numel(); begin += kPieceElements) {
      const std::int64_t size = std::min(kPieceElements, all.numel() - begin);
      const torch::Tensor piece = all.narrow(0, begin, size);
      const torch::Tensor error = cast.narrow(0, begin, size).to(torch::kFloat) - piece;
      errors_[0] += error.square().sum(torch::kDouble);
      errors_[1] += piece.square().sum(torch::kDouble);
    }
#endif
  }

  CastError take_cast_error() override {
    if (!errors_.defined()) return {};
    const torch::Tensor host = errors_.cpu();
    const CastError taken{host[0].item<double>(), host[1].item<double>()};
    errors_.zero_();
    return taken;
  }

  std::vector<std::uint64_t> checksums(std::span<const MemoryRange> ranges) override {
    const torch::NoGradGuard no_grad;
#ifdef TESSERA_HAVE_KERNELS
    return checksums_by_kernel(ranges);
#else
    return checksums_by_operators(ranges);
#endif
  }

  std::vector<std::uint64_t> digests(std::span<const kernels::DigestPiece> pieces,
                                     kernels::DigestRead read) override {
    const torch::NoGradGuard no_grad;
#ifdef TESSERA_HAVE_KERNELS
    return digests_by_kernel(pieces, read);
#else
    return digests_on_host(pieces, read);
#endif
  }

 private:
#ifdef TESSERA_HAVE_KERNELS
  void* stream() const { return c10::cuda::getCurrentCUDAStream(device_.index()).stream(); }

  /// The chunks of one list of ranges on the device, and where the sums start.
  struct SumTable {
    std::vector<MemoryRange> ranges;
    torch::Tensor chunks, lengths;
    std::int64_t count = 0;
  };

  SumTable make_table(std::span<const MemoryRange> ranges) const {
    SumTable table{.ranges = { ranges.begin(), ranges.end() }};
    std::vector<kernels::SumChunk> chunks;
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      lengths.push_back(static_cast<std::int64_t>(ranges[i].bytes));
      for (std::size_t at = 0; at < ranges[i].bytes; at += kernels::kSumBytes) {
        chunks.push_back(
            {static_cast<const std::byte*>(ranges[i].data) + at, at / 8,
             static_cast<std::uint32_t>(std::min(kernels::kSumBytes, ranges[i].bytes - at)),
             static_cast<std::uint32_t>(i)});
      }
    }
    table.count = static_cast<std::int64_t>(chunks.size());
    const auto bytes = static_cast<std::int64_t>(chunks.size() * sizeof(kernels::SumChunk));
    table.chunks = torch::from_blob(chunks.data(), {bytes}, torch::kUInt8).to(device_);
    table.lengths = torch::tensor(at::ArrayRef<std::int64_t>(lengths), torch::kLong).to(device_);
    return table;
  }

  /// Reshards ask for the same few lists again and again.
  const SumTable& table_of(std::span<const MemoryRange> ranges) {
    const auto same = [&](const SumTable& table) {
      return std::equal(ranges.begin(), ranges.end(), table.ranges.begin(), table.ranges.end(),
                        [](const MemoryRange& a, const MemoryRange& b) {
                          return a.data == b.data && a.bytes == b.bytes;
                        });
    };
    const auto found = std::find_if(tables_.begin(), tables_.end(), same);
    if (found != tables_.end()) return *found;
    if (tables_.size() == kTables) tables_.erase(tables_.begin());
    return tables_.emplace_back(make_table(ranges));
  }

  std::vector<std::uint64_t> checksums_by_kernel(std::span<const MemoryRange> ranges) {
    if (ranges.empty()) return {};
    const SumTable& table = table_of(ranges);
    const torch::Tensor sums = table.lengths.clone();
    kernels::add_range_sums(
        reinterpret_cast<const kernels::SumChunk*>(table.chunks.const_data_ptr<std::uint8_t>()),
        table.count, reinterpret_cast<std::uint64_t*>(sums.mutable_data_ptr<std::int64_t>()),
        stream());
    const torch::Tensor host = sums.cpu();
    const auto* values = host.const_data_ptr<std::int64_t>();
    return {values, values + ranges.size()};
  }

  static constexpr std::size_t kTables = 64;
  std::vector<SumTable> tables_;

  /// Whole rows, or parts of one.
  static void add_chunks(const kernels::DigestPiece& piece, std::int64_t sum, std::int64_t width,
                         std::vector<kernels::DigestChunk>& chunks) {
    const std::int64_t columns = std::min(piece.columns, kernels::kDigestElements);
    const std::int64_t rows =
        columns < piece.columns ? 1 : std::max<std::int64_t>(1, kernels::kDigestElements / columns);
    for (std::int64_t row = 0; row < piece.rows; row += rows) {
      for (std::int64_t column = 0; column < piece.columns; column += columns) {
        kernels::DigestPiece part = piece;
        part.data =
            static_cast<const std::byte*>(piece.data) + (row * piece.pitch + column) * width;
        part.rows = std::min(rows, piece.rows - row);
        part.columns = std::min(columns, piece.columns - column);
        part.key += static_cast<std::uint64_t>(row) * piece.row_step +
                    static_cast<std::uint64_t>(column) * piece.column_step;
        chunks.push_back({part, sum});
      }
    }
  }

  std::vector<std::uint64_t> digests_by_kernel(std::span<const kernels::DigestPiece> pieces,
                                               kernels::DigestRead read) const {
    if (pieces.empty()) return {};
    const auto width = static_cast<std::int64_t>(kernels::bytes_of(read));
    std::vector<kernels::DigestChunk> chunks;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      add_chunks(pieces[i], static_cast<std::int64_t>(i), width, chunks);
    }
    const auto bytes = static_cast<std::int64_t>(chunks.size() * sizeof(kernels::DigestChunk));
    const torch::Tensor list = torch::from_blob(chunks.data(), {bytes}, torch::kUInt8).to(device_);
    const torch::Tensor sums =
        torch::zeros({static_cast<std::int64_t>(pieces.size())}, options(torch::kLong));
    kernels::add_digests(
        reinterpret_cast<const kernels::DigestChunk*>(list.const_data_ptr<std::uint8_t>()),
        static_cast<std::int64_t>(chunks.size()), read,
        reinterpret_cast<std::uint64_t*>(sums.mutable_data_ptr<std::int64_t>()), stream());
    const torch::Tensor host = sums.cpu();
    const auto* values = host.const_data_ptr<std::int64_t>();
    return {values, values + pieces.size()};
  }
#else
  std::vector<std::uint64_t> digests_on_host(std::span<const kernels::DigestPiece> pieces,
                                             kernels::DigestRead read) const {
    std::vector<std::uint64_t> sums;
    for (kernels::DigestPiece piece : pieces) {
      const std::int64_t count = (piece.rows - 1) * piece.pitch + piece.columns;
      const torch::Tensor host =
          view(piece.data, kernels::bytes_of(read) == 2 ? torch::kShort : torch::kInt,
               static_cast<std::size_t>(count))
              .cpu();
      piece.data = host.const_data_ptr();
      sums.push_back(kernels::piece_digest(piece, read));
    }
    return sums;
  }

  /// Sum over 16-bit words of word * odd(position), modulo 2^64: position and value both count.
  std::vector<std::uint64_t> checksums_by_operators(std::span<const MemoryRange> ranges) const {
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
#endif

  torch::TensorOptions options(at::ScalarType type) const {
    return torch::TensorOptions().dtype(type).device(device_);
  }
  torch::Tensor view(const void* data, at::ScalarType type, std::size_t count) const {
    return torch::from_blob(const_cast<void*>(data), {static_cast<std::int64_t>(count)},
                            options(type));
  }

  torch::Device device_;
  torch::Tensor errors_;  // fp64 [2] on the device: of casts since they were taken
};

}  // namespace

std::unique_ptr<MemoryOps> make_torch_memory_ops(int device) {
  return std::make_unique<TorchMemoryOps>(device);
}

}  // namespace tessera
