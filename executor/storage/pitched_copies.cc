#include "executor/storage/pitched_copies.h"

namespace tessera {
namespace {

/// The most that a device's copies of rows take (cudaDevAttrMaxPitch).
constexpr std::ptrdiff_t kMostPitch = 0x7fffffff;

std::ptrdiff_t distance(const void* from, const void* to) {
  return static_cast<const std::byte*>(to) - static_cast<const std::byte*>(from);
}

bool is_pitch(std::ptrdiff_t distance, std::size_t bytes) {
  return distance >= static_cast<std::ptrdiff_t>(bytes) && distance <= kMostPitch;
}

/// True when the copy is the next row of `rows`, which it joins.
bool join(PitchedCopy& rows, void* to, const void* from, std::size_t bytes) {
  if (bytes != rows.bytes || bytes == 0) return false;
  const auto done = static_cast<std::ptrdiff_t>(rows.rows - 1);
  const std::ptrdiff_t to_pitch =
      distance(rows.to, to) - done * static_cast<std::ptrdiff_t>(rows.to_pitch);
  const std::ptrdiff_t from_pitch =
      distance(rows.from, from) - done * static_cast<std::ptrdiff_t>(rows.from_pitch);
  if (!is_pitch(to_pitch, bytes) || !is_pitch(from_pitch, bytes)) return false;
  const auto to_rows = static_cast<std::size_t>(to_pitch);
  const auto from_rows = static_cast<std::size_t>(from_pitch);
  if (rows.rows > 1 && (to_rows != rows.to_pitch || from_rows != rows.from_pitch)) return false;
  rows.to_pitch = to_rows;
  rows.from_pitch = from_rows;
  ++rows.rows;
  return true;
}

}  // namespace

std::vector<PitchedCopy> pitched_copies(const CopyBatch& batch) {
  std::vector<PitchedCopy> made;
  for (std::size_t i = 0; i < batch.to.size(); ++i) {
    if (!made.empty() && join(made.back(), batch.to[i], batch.from[i], batch.bytes[i])) continue;
    made.push_back({.to = batch.to[i], .from = batch.from[i], .bytes = batch.bytes[i]});
  }
  return made;
}

}  // namespace tessera
