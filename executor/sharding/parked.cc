#include "executor/sharding/parked.h"

#include <algorithm>

#include "cost_models/documents/check.h"

namespace tessera {
namespace {

using torch::Tensor;

std::int64_t size_of(const c10::Storage& storage) {
  return static_cast<std::int64_t>(storage.nbytes());
}

/// The storage's bytes as a tensor.
Tensor bytes_of(const c10::Storage& storage) {
  const auto options = torch::TensorOptions().dtype(torch::kUInt8).device(storage.device());
  return torch::empty({0}, options).set_(storage, 0, {size_of(storage)}, {1});
}

}  // namespace

void Parked::add(const Tensor& tensor) {
  TESSERA_CHECK(!away_);
  const c10::Storage& storage = tensor.storage();
  const bool known = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.storage.is_alias_of(storage);
  });
  if (!known && storage.nbytes() > 0) entries_.push_back({.storage = storage});
}

void Parked::leave(bool keep, bool unchanged) {
  if (away_) return;
  const torch::NoGradGuard no_grad;
  for (Entry& entry : entries_) {
    entry.kept = keep;
    if (keep && !(unchanged && entry.current)) {
      const Tensor bytes = bytes_of(entry.storage);
      if (!entry.host.defined()) {
        entry.host = torch::empty(
            {bytes.numel()},
            torch::TensorOptions().dtype(torch::kUInt8).pinned_memory(bytes.is_cuda()));
      }
      entry.host.copy_(bytes);
      entry.current = true;
    }
    entry.storage.unsafeGetStorageImpl()->set_data_ptr_noswap(
        c10::DataPtr(nullptr, entry.storage.device()));
  }
  away_ = true;
}

void Parked::come_back() {
  if (!away_) return;
  const torch::NoGradGuard no_grad;
  for (Entry& entry : entries_) {
    const auto options = torch::TensorOptions().dtype(torch::kUInt8).device(entry.storage.device());
    const Tensor memory = torch::empty({size_of(entry.storage)}, options);
    if (entry.kept) memory.copy_(entry.host, /*non_blocking=*/true);
    c10::DataPtr data = memory.storage().unsafeGetStorageImpl()->set_data_ptr(
        c10::DataPtr(nullptr, entry.storage.device()));
    entry.storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(data));
  }
  away_ = false;
}

std::int64_t Parked::bytes() const {
  std::int64_t sum = 0;
  for (const Entry& entry : entries_) sum += size_of(entry.storage);
  return sum;
}

}  // namespace tessera
