#include "executor/rollout/kv_pages.h"

#include <numeric>

#include "cost_models/documents/check.h"

namespace tessera {

KvPages::KvPages(std::int64_t pages)
    : users_(static_cast<std::size_t>(pages), 0), free_(static_cast<std::size_t>(pages)) {
  std::iota(free_.rbegin(), free_.rend(), 0);
}

std::optional<std::int32_t> KvPages::take() {
  if (free_.empty()) return std::nullopt;
  const std::int32_t page = free_.back();
  free_.pop_back();
  users_[static_cast<std::size_t>(page)] = 1;
  return page;
}

void KvPages::share(std::span<const std::int32_t> pages) {
  for (const std::int32_t page : pages) {
    TESSERA_CHECK(users_[static_cast<std::size_t>(page)] > 0);
    users_[static_cast<std::size_t>(page)] += 1;
  }
}

void KvPages::give_back(std::span<const std::int32_t> pages) {
  for (const std::int32_t page : pages) {
    std::int32_t& users = users_[static_cast<std::size_t>(page)];
    TESSERA_CHECK(users > 0);
    users -= 1;
    if (users == 0) free_.push_back(page);
  }
}

}  // namespace tessera
