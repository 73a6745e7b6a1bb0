// Which pages of a cache of keys and values are taken, and by how many sequences.
//
// A page holds the keys and values of `page_tokens` consecutive tokens, of every layer. Sequences
// that begin alike share the pages of their beginning; a page is free again when its last user has
// given it back. Book-keeping alone: the memory is the model's. No torch; one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tessera {

class KvPages {
 public:
  explicit KvPages(std::int64_t pages);

  std::int64_t total() const { return static_cast<std::int64_t>(users_.size()); }
  std::int64_t free() const { return static_cast<std::int64_t>(free_.size()); }

  /// A page of its own, the one given back last; none when all are taken.
  std::optional<std::int32_t> take();
  /// One more user of pages that are taken.
  void share(std::span<const std::int32_t> pages);
  /// One user less of each.
  void give_back(std::span<const std::int32_t> pages);

 private:
  std::vector<std::int32_t> users_;  // by page
  std::vector<std::int32_t> free_;
};

}  // namespace tessera
