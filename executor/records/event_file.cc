#include "executor/records/event_file.h"

#include <array>
#include <bit>
#include <chrono>
#include <cmath>

namespace tessera {
namespace {

// Keys of the wire format: field number << 3 | type (0 varint, 1 64-bit, 2 bytes, 5 32-bit).
constexpr char kWallTime = 1 << 3 | 1, kStep = 2 << 3 | 0, kFileVersion = 3 << 3 | 2,
               kSummary = 5 << 3 | 2;                         // of Event
constexpr char kValue = 1 << 3 | 2;                           // of Summary
constexpr char kTag = 1 << 3 | 2, kSimpleValue = 2 << 3 | 5;  // of its Value

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void append_fixed(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_bytes(std::string& out, char key, std::string_view bytes) {
  out += key;
  append_varint(out, bytes.size());
  out += bytes;
}

void append_wall_time(std::string& out, double wall_time) {
  out += kWallTime;
  append_fixed(out, std::bit_cast<std::uint64_t>(wall_time), 8);
}

constexpr std::array<std::uint32_t, 256> kCrcTable = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    table[byte] = crc;
  }
  return table;
}();

/// TensorFlow masks checksums that are stored among the data they cover (lib/hash/crc32c.h).
std::uint32_t masked(std::uint32_t crc) { return std::rotr(crc, 15) + 0xa282ead8u; }

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes)
    crc = crc >> 8 ^ kCrcTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::string tf_record(std::string_view message) {
  std::string record;
  append_fixed(record, message.size(), 8);
  append_fixed(record, masked(crc32c(record)), 4);
  record += message;
  append_fixed(record, masked(crc32c(message)), 4);
  return record;
}

std::string scalar_event(double wall_time, std::int64_t step,
                         const std::map<std::string, double>& numbers) {
  std::string summary;
  for (const auto& [name, number] : numbers) {
    if (!std::isfinite(number)) continue;
    std::string value;
    append_bytes(value, kTag, name);
    value += kSimpleValue;
    append_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)), 4);
    append_bytes(summary, kValue, value);
  }
  std::string event;
  append_wall_time(event, wall_time);
  event += kStep;
  append_varint(event, static_cast<std::uint64_t>(step));
  append_bytes(event, kSummary, summary);
  return event;
}

EventFile::EventFile(const std::filesystem::path& folder) {
  const double start = now();
  const std::string name =
      "events.out.tfevents." + std::to_string(static_cast<std::int64_t>(start)) + ".tessera";
  std::filesystem::path path = folder / name;
  std::error_code ignored;
  for (int again = 1; std::filesystem::exists(path, ignored); ++again) {
    path = folder / (name + "." + std::to_string(again));
  }
  file_.emplace(path, LineFile::Open::create);
  std::string event;
  append_wall_time(event, start);
  append_bytes(event, kFileVersion, "brain.Event:2");
  file_->append(tf_record(event));
}

void EventFile::add_step(std::int64_t step, const std::map<std::string, double>& numbers) {
  file_->append(tf_record(scalar_event(now(), step, numbers)));
}

}  // namespace tessera
