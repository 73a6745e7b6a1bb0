#include "executor/model/token_exchange.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "executor/tensor/sum_into.h"

namespace tessera {
namespace {

using torch::Tensor;

/// Regions grow in steps of this many bytes.
constexpr std::int64_t kRegionStep = std::int64_t{16} << 20;
/// A region may be written again when this rank has waited for a meeting after its last reads: with
/// one gather that is not awaited yet, that of the second use before.
constexpr int kRegions = 3;
constexpr std::int64_t kFewestTokensOnGpu = 512;

Tensor block(const Tensor& x, int rank, std::int64_t rows) {
  return x.narrow(0, rank * rows, rows);
}

void multiply(const Tensor& x, const Tensor& weight, const Tensor& bias, Tensor out) {
  if (bias.defined()) {
    at::addmm_out(out, bias, x, weight);
  } else {
    at::mm_out(out, x, weight);
  }
}

}  // namespace

/// Peers may read the old memory until all ranks have met on the host with idle devices.
Tensor TokenExchange::region(at::IntArrayRef shape, const torch::TensorOptions& options) {
  const std::int64_t elements = c10::multiply_integers(shape);
  const std::int64_t bytes = elements * static_cast<std::int64_t>(options.dtype().itemsize());
  if (bytes > region_bytes_) {
    if (options.device().is_cuda()) {
      c10::impl::VirtualGuardImpl(options.device().type())
          .synchronizeDevice(options.device().index());
    }
    host_.barrier();
    region_bytes_ = (bytes + kRegionStep - 1) / kRegionStep * kRegionStep;
    memory_.reset();
    memory_ = make_peer_memory(host_, kRegions * region_bytes_, options.dtype(torch::kByte));
  }
  next_ = (next_ + 1) % kRegions;
  return memory_->own()
      .narrow(0, next_ * region_bytes_, bytes)
      .view(options.dtype().toScalarType())
      .view(shape);
}

/// Copies to `to` what `rank` wrote at `first` of the region that `sent` is in.
void TokenExchange::fetch(int rank, const Tensor& sent, std::int64_t first, const Tensor& to) {
  const auto size = static_cast<std::int64_t>(sent.element_size());
  const std::int64_t region = static_cast<const std::byte*>(sent.const_data_ptr()) -
                              static_cast<const std::byte*>(memory_->own().const_data_ptr());
  CopyBatch batch{.peer = rank};
  batch.add(to.mutable_data_ptr(), memory_->at(rank) + region + first * size,
            static_cast<std::size_t>(to.numel() * size));
  memory_->copy(batch);
}

TokenExchange::Arriving TokenExchange::gather(const Tensor& x) {
  const std::int64_t rows = x.size(0);
  const auto plain = x.options().requires_grad(false);
  const Tensor sent = region(x.sizes(), plain);
  sent.copy_(x);
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape[0] *= host_.size();
  Arriving arriving{torch::empty(shape, plain), {}};
  block(arriving.all, host_.rank(), rows).copy_(x);
  SideStream::Moment last = side_.run(side_.now(), [&] { memory_->meet(); });
  for (int step = 1; step < host_.size(); ++step) {
    last = side_.run(last,
                     [&] { fetch(after(step), sent, 0, block(arriving.all, after(step), rows)); });
    arriving.ready.push_back(last);
  }
  return arriving;
}

void TokenExchange::await(const Arriving& arriving) const {
  if (!arriving.ready.empty()) side_.wait(arriving.ready.back());
}

Tensor TokenExchange::product(const Arriving& arriving, const Tensor& weight,
                              const Tensor& bias) const {
  const std::int64_t rows = arriving.all.size(0) / host_.size();
  const Tensor out = torch::empty({arriving.all.size(0), weight.size(1)}, arriving.all.options());
  for (int step = 0; step < host_.size(); ++step) {
    if (step > 0) side_.wait(arriving.ready[static_cast<std::size_t>(step - 1)]);
    multiply(block(arriving.all, after(step), rows), weight, bias, block(out, after(step), rows));
  }
  return out;
}

Tensor TokenExchange::product_summed(const Tensor& x, const Tensor& weight) {
  const int ranks = host_.size();
  TORCH_CHECK(x.size(0) % ranks == 0, x.size(0), " tokens on ", ranks, " ranks");
  const std::int64_t rows = x.size(0) / ranks, columns = weight.size(1);
  const auto plain = x.options().requires_grad(false);
  const Tensor sent = region({x.size(0), columns}, plain);
  const Tensor arrived = torch::empty({ranks, rows, columns}, plain);
  SideStream::Moment last;
  // In each step every rank computes the block of the rank that far behind it.
  for (int step = 1; step < ranks; ++step) {
    multiply(block(x, after(step), rows), weight, {}, block(sent, after(step), rows));
    last = side_.run(side_.now(), [&] {
      memory_->meet();
      const int from = after(ranks - step);
      fetch(from, sent, host_.rank() * rows * columns, arrived[from]);
    });
  }
  multiply(block(x, host_.rank(), rows), weight, {}, arrived[host_.rank()]);
  side_.wait(last);
  std::vector<Tensor> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(arrived[rank]);
  Tensor sum = torch::empty({rows, columns}, plain);
  sum_into(sum, parts, /*keep=*/false);
  return sum;
}

std::unique_ptr<TokenExchange> make_token_exchange(Communicator& host, torch::Device device) {
  const PeerBlocks where(host, nullptr);
  if (!where.all_on_one_host()) return nullptr;
  SideStream side;
  if (device.is_cuda()) {
    side = SideStream(c10::impl::VirtualGuardImpl(device.type())
                          .getStreamFromGlobalPool(device, /*isHighPriority=*/true));
  }
  return std::make_unique<TokenExchange>(host, std::move(side),
                                         device.is_cuda() ? kFewestTokensOnGpu : 1);
}

}  // namespace tessera
