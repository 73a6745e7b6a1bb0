#include "executor/batching/loss_parts.h"

#include <cstdint>
#include <cstring>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

template <typename T>
void put(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put(std::string& bytes, const std::map<std::string, double>& values) {
  put(bytes, static_cast<std::uint64_t>(values.size()));
  for (const auto& [name, value] : values) {
    put(bytes, static_cast<std::uint64_t>(name.size()));
    bytes += name;
    put(bytes, value);
  }
}

std::string_view take(std::string_view& bytes, std::uint64_t count) {
  if (count > bytes.size())
    throw Error(ExitCode::internal, "a message with parts of a loss is too short");
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

template <typename T>
T take(std::string_view& bytes) {
  T value;
  std::memcpy(&value, take(bytes, sizeof value).data(), sizeof value);
  return value;
}

std::map<std::string, double> take_map(std::string_view& bytes) {
  std::map<std::string, double> values;
  for (auto left = take<std::uint64_t>(bytes); left > 0; --left) {
    const std::string name(take(bytes, take<std::uint64_t>(bytes)));
    values[name] = take<double>(bytes);
  }
  return values;
}

}  // namespace

void LossParts::add(const LossGradient& part) {
  value += part.value;
  weight += part.weight;
  for (const auto& [name, x] : part.sums) sums[name] += x;
  for (const auto& [name, x] : part.means) weighted[name] += x * part.weight;
}

void LossParts::add(const LossParts& other) {
  value += other.value;
  weight += other.weight;
  for (const auto& [name, x] : other.sums) sums[name] += x;
  for (const auto& [name, x] : other.weighted) weighted[name] += x;
}

std::string to_bytes(const LossParts& parts) {
  std::string bytes;
  put(bytes, parts.value);
  put(bytes, parts.weight);
  put(bytes, parts.sums);
  put(bytes, parts.weighted);
  return bytes;
}

LossParts loss_parts_from(std::string_view bytes) {
  LossParts parts;
  parts.value = take<double>(bytes);
  parts.weight = take<double>(bytes);
  parts.sums = take_map(bytes);
  parts.weighted = take_map(bytes);
  return parts;
}

UpdateResult mean_over_replicas(const LossParts& parts, int replicas) {
  UpdateResult result;
  result.loss = parts.value / replicas;
  for (const auto& [name, x] : parts.sums) result.metrics[name] = x / replicas;
  for (const auto& [name, x] : parts.weighted)
    result.metrics[name] = parts.weight > 0 ? x / parts.weight : 0.0;
  return result;
}

}  // namespace tessera
