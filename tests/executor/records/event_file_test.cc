#include "executor/records/event_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

using namespace std::string_literals;

TEST(Crc32c, EqualsTheVectorsOfRfc3720) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(EventFile, AScalarIsTheseBytes) {
  // Event {wall_time: 1.5, step: 300, summary {value {tag: "a", simple_value: 2}}}, by hand.
  EXPECT_EQ(scalar_event(1.5, 300, {{"a", 2.0}}),
            "\x09\x00\x00\x00\x00\x00\x00\xf8\x3f"  // 1: double
            "\x10\xac\x02"                          // 2: varint 300 = 0x2c | 0x80, 0x02
            "\x2a\x0a"                              // 5: ten bytes
            "\x0a\x08"                              // value: eight bytes
            "\x0a\x01\x61"                          // tag
            "\x15\x00\x00\x00\x40"s);               // simple_value
}

TEST(EventFile, NumbersThatAreNotFiniteAreLeftOut) {
  EXPECT_EQ(scalar_event(0, 1, {{"a", 2.0}, {"b", NAN}, {"c", INFINITY}}),
            scalar_event(0, 1, {{"a", 2.0}}));
}

std::uint64_t fixed(const std::string& bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, count);
  return value;
}

/// The messages of a file; checks every frame as TensorFlow's reader does.
std::vector<std::string> messages_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto unmasked = [](std::uint64_t stored) {
    const auto rotated = static_cast<std::uint32_t>(stored) - 0xa282ead8u;
    return rotated >> 17 | rotated << 15;
  };
  std::vector<std::string> messages;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::uint64_t length = fixed(bytes, at, 8);
    EXPECT_EQ(unmasked(fixed(bytes, at + 8, 4)), crc32c(bytes.substr(at, 8)));
    messages.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(unmasked(fixed(bytes, at + 12 + length, 4)), crc32c(messages.back()));
    at += 16 + length;
  }
  return messages;
}

TEST(EventFile, HoldsAVersionAndOneFlushedRecordPerStep) {
  std::string name = (std::filesystem::temp_directory_path() / "tessera-events-XXXXXX").string();
  ASSERT_NE(::mkdtemp(name.data()), nullptr);
  const std::filesystem::path folder = name;
  EventFile events(folder), other(folder);
  EXPECT_NE(events.path(), other.path()) << "two runs in one second";
  EXPECT_NE(events.path().filename().string().find("tfevents"), std::string::npos);
  events.add_step(1, {{"critic/score/mean", 0.5}});
  events.add_step(2, {{"critic/score/mean", 0.75}, {"timing_s/gen", 1e-3}});
  const auto messages = messages_of(events.path());
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_TRUE(
      messages[0].ends_with("\x1a\x0d"
                            "brain.Event:2"));
  EXPECT_EQ(messages[2].substr(9),
            scalar_event(0, 2, {{"critic/score/mean", 0.75}, {"timing_s/gen", 1e-3}}).substr(9));
  std::filesystem::remove_all(folder);
}

TEST(EventFile, AFolderThatCannotBeWrittenIsAnIoError) {
  try {
    EventFile events("/nonexistent");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::io);
  }
}

}  // namespace
}  // namespace tessera
