#include "cost_models/documents/document.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

Node of_kind(Node::Kind kind) {
  Node node;
  node.kind = kind;
  return node;
}

/// Length of the UTF-8 sequence at `offset`, or 0 when it is malformed (RFC 3629, table 3-7 of
/// Unicode: no overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t utf8_length(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t i) {
    return offset + i < text.size() ? static_cast<unsigned char>(text[offset + i]) : 0u;
  };
  const auto in = [](unsigned value, unsigned low, unsigned high) {
    return value >= low && value <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (in(first, 0xC2, 0xDF)) return in(byte(1), 0x80, 0xBF) ? 2 : 0;
  if (in(first, 0xE0, 0xEF)) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
    return in(byte(1), low, high) && in(byte(2), 0x80, 0xBF) ? 3 : 0;
  }
  if (in(first, 0xF0, 0xF4)) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
    return in(byte(1), low, high) && in(byte(2), 0x80, 0xBF) && in(byte(3), 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

std::string number_text(double value) {
  char buffer[32];
  return {buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr};
}

[[noreturn]] void fail(const std::filesystem::path& file, const char* what) {
  throw Error(ExitCode::io, Problems{{.file = file.string(),
                                      .found = std::string(what) + ": " + std::strerror(errno)}});
}

void write_all(int descriptor, std::string_view text, const std::filesystem::path& file) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      ::close(descriptor);
      fail(file, "cannot write");
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  const auto found = std::find(keys.begin(), keys.end(), key);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

Node node_of(bool value) {
  Node node = of_kind(Node::Kind::boolean);
  node.boolean = value;
  return node;
}

Node node_of(std::int64_t value) {
  Node node = of_kind(Node::Kind::integer);
  node.integer = value;
  node.number = static_cast<double>(value);
  return node;
}

Node node_of(int value) { return node_of(std::int64_t{value}); }

Node node_of(double value) {
  Node node = of_kind(Node::Kind::number);
  node.number = value;
  return node;
}

Node node_of(std::string_view value) {
  Node node = of_kind(Node::Kind::string);
  node.text = value;
  return node;
}

Node list_node() { return of_kind(Node::Kind::list); }
Node map_node() { return of_kind(Node::Kind::map); }

void add(Node& map, std::string_view key, Node value) {
  map.keys.emplace_back(key);
  map.items.push_back(std::move(value));
}

std::string describe(const Node& node) {
  constexpr std::size_t kLongest = 60;
  switch (node.kind) {
    case Node::Kind::null:
      return "null";
    case Node::Kind::boolean:
      return node.boolean ? "true" : "false";
    case Node::Kind::integer:
      return std::to_string(node.integer);
    case Node::Kind::number:
      return number_text(node.number);
    case Node::Kind::string:
      return node.text.size() <= kLongest ? '"' + node.text + '"'
                                          : '"' + node.text.substr(0, kLongest) + "...\"";
    case Node::Kind::list:
      return "a list of " + std::to_string(node.items.size()) + " items";
    case Node::Kind::map:
      return "a map of " + std::to_string(node.items.size()) + " keys";
  }
  return {};
}

std::optional<std::string> read_text_file(const std::filesystem::path& file, std::size_t limit,
                                          Problems& problems) {
  const auto refuse = [&](std::string found, std::string expected) {
    problems.push_back(
        {.file = file.string(), .found = std::move(found), .expected = std::move(expected)});
    return std::nullopt;
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) return refuse("no such file", "a readable file");
  if (std::filesystem::is_directory(status)) return refuse("a folder", "a file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return refuse(std::strerror(errno), "a readable file");
  std::string text;
  char block[1 << 16];
  while (stream.read(block, sizeof block) || stream.gcount() > 0) {
    text.append(block, static_cast<std::size_t>(stream.gcount()));
    if (text.size() > limit) {
      return refuse("more than " + std::to_string(limit) + " bytes",
                    "at most " + std::to_string(limit) + " bytes");
    }
  }
  return text;
}

void write_text_file(const std::filesystem::path& file, std::string_view text) {
  const std::filesystem::path temporary = file.string() + ".tmp" + std::to_string(::getpid());
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail(file, "cannot create");
  write_all(descriptor, text, file);
  const bool synced = ::fsync(descriptor) == 0;
  if (::close(descriptor) != 0 || !synced) fail(file, "cannot write");
  if (::rename(temporary.c_str(), file.c_str()) != 0) {
    const int reason = errno;
    ::unlink(temporary.c_str());
    errno = reason;
    fail(file, "cannot rename into place");
  }
}

bool check_text(std::string_view text, const std::string& file, const ParseLimits& limits,
                Problems& problems) {
  const auto refuse = [&](std::string place, std::string found, std::string expected,
                          std::string hint = {}) {
    problems.push_back(
        {file, std::move(place), std::move(found), std::move(expected), std::move(hint)});
    return false;
  };
  if (text.size() > limits.bytes) {
    return refuse({}, std::to_string(text.size()) + " bytes",
                  "at most " + std::to_string(limits.bytes) + " bytes");
  }
  if (text.starts_with("\xEF\xBB\xBF") || text.starts_with("\xFE\xFF") ||
      text.starts_with("\xFF\xFE")) {
    return refuse("1:1", "a byte-order mark", "plain UTF-8", "save the file as UTF-8 without BOM");
  }
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\0') return refuse(line_column(text, i), "a NUL byte", "text");
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return refuse(line_column(text, i), "a byte that is not UTF-8", "UTF-8");
    i += length;
  }
  return true;
}

std::string line_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t newline = before.rfind('\n');
  const std::size_t column =
      newline == std::string_view::npos ? before.size() : before.size() - newline - 1;
  return std::to_string(lines + 1) + ":" + std::to_string(column + 1);
}

}  // namespace tessera
