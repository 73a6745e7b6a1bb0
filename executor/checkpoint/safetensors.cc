#include "executor/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>
#include <utility>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"

namespace tessera {
namespace {

using Kind = Node::Kind;

constexpr std::size_t kLengthBytes = 8;
constexpr ParseLimits kHeaderLimits{.bytes = kMaxSafetensorsHeader, .depth = 4};

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  return value;
}

/// One file being checked: collects views and problems.
struct Header {
  std::string file;
  std::span<const std::byte> data;  // after the header
  Problems& problems;
  std::vector<TensorView> tensors;

  void refuse(const std::string& place, std::string found, std::string expected) {
    problems.push_back(
        {.file = file, .place = place, .found = std::move(found), .expected = std::move(expected)});
  }
};

/// A count of at least 0, or nothing with a Problem.
std::optional<std::int64_t> count_of(Header& header, const std::string& place, const Node& value,
                                     const char* what) {
  if (value.is(Kind::integer) && value.integer >= 0) return value.integer;
  header.refuse(place, describe(value), what);
  return std::nullopt;
}

std::string text_of(std::span<const std::int64_t> sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "[" : ", ") + std::to_string(size);
  return text.empty() ? "[]" : text + "]";
}

bool read_shape(Header& header, const Node& value, TensorView& tensor) {
  if (!value.is(Kind::list)) {
    header.refuse(tensor.name, describe(value), "shape as a list of sizes");
    return false;
  }
  for (const Node& element : value.items) {
    const auto size = count_of(header, tensor.name, element, "a size of at least 0 in shape");
    if (!size) return false;
    tensor.shape.push_back(*size);
  }
  std::int64_t total = size_of(tensor.dtype);
  for (const std::int64_t size : tensor.shape) {
    if (__builtin_mul_overflow(total, size, &total)) {
      header.refuse(tensor.name, "shape " + text_of(tensor.shape),
                    "a tensor of fewer than 2^63 bytes");
      return false;
    }
  }
  return true;
}

bool read_offsets(Header& header, const Node& value, TensorView& tensor) {
  if (!value.is(Kind::list) || value.items.size() != 2) {
    header.refuse(tensor.name, describe(value), "data_offsets as [begin, end]");
    return false;
  }
  const auto begin = count_of(header, tensor.name, value.items[0], "data_offsets of at least 0");
  const auto end = count_of(header, tensor.name, value.items[1], "data_offsets of at least 0");
  if (!begin || !end) return false;
  const auto size = static_cast<std::int64_t>(header.data.size());
  if (*begin > *end || *end > size) {
    header.refuse(tensor.name, "data_offsets " + text_of(std::array{*begin, *end}),
                  "begin <= end <= " + std::to_string(size) + ", the bytes of data in the file");
    return false;
  }
  tensor.data = header.data.subspan(static_cast<std::size_t>(*begin),
                                    static_cast<std::size_t>(*end - *begin));
  return true;
}

/// The format spells its types in capitals ("BF16"); other spellings are not the format.
std::optional<DType> type_of(const Node& value) {
  if (!value.is(Kind::string) || value.text.empty() || value.text[0] > 'Z') return std::nullopt;
  return dtype_from(value.text);
}

void read_tensor(Header& header, const std::string& name, const Node& value) {
  if (!value.is(Kind::map)) return header.refuse(name, describe(value), "an object per tensor");
  for (const std::string& key : value.keys) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") {
      return header.refuse(name, "key '" + key + "'", "only dtype, shape and data_offsets");
    }
  }
  for (const char* key : {"dtype", "shape", "data_offsets"}) {
    if (value.find(key) == nullptr) return header.refuse(name, std::string("no ") + key, key);
  }
  const auto type = type_of(*value.find("dtype"));
  if (!type) {
    return header.refuse(name, "dtype " + describe(*value.find("dtype")),
                         "one of F32, BF16, F16, I64, I32, U8");
  }
  TensorView tensor;
  tensor.name = name;
  tensor.dtype = *type;
  tensor.file = header.file;
  if (!read_shape(header, *value.find("shape"), tensor)) return;
  if (!read_offsets(header, *value.find("data_offsets"), tensor)) return;
  if (static_cast<std::int64_t>(tensor.data.size()) != tensor.bytes()) {
    return header.refuse(name, std::to_string(tensor.data.size()) + " bytes in data_offsets",
                         std::to_string(tensor.bytes()) + " bytes by dtype and shape");
  }
  header.tensors.push_back(std::move(tensor));
}

void read_metadata(Header& header, const Node& value,
                   std::map<std::string, std::string>& metadata) {
  if (!value.is(Kind::map)) {
    return header.refuse("__metadata__", describe(value), "an object of strings");
  }
  for (std::size_t i = 0; i < value.keys.size(); ++i) {
    if (value.items[i].is(Kind::string)) {
      metadata[value.keys[i]] = value.items[i].text;
    } else {
      header.refuse("__metadata__." + value.keys[i], describe(value.items[i]), "a string");
    }
  }
}

/// Sorts the views by place and refuses holes, overlaps and bytes that belong to no tensor.
void check_coverage(Header& header) {
  const std::byte* const start = header.data.data();
  std::ranges::sort(header.tensors, [](const TensorView& a, const TensorView& b) {
    return std::pair(a.data.data(), a.data.size()) < std::pair(b.data.data(), b.data.size());
  });
  std::int64_t expected = 0;
  for (const TensorView& tensor : header.tensors) {
    const std::int64_t begin = tensor.data.data() - start;
    if (begin != expected) {
      return header.refuse(tensor.name, "data that begin at byte " + std::to_string(begin),
                           "byte " + std::to_string(expected) +
                               (begin < expected ? ": tensors overlap" : ": there is a hole"));
    }
    expected += static_cast<std::int64_t>(tensor.data.size());
  }
  if (expected != static_cast<std::int64_t>(header.data.size())) {
    header.refuse("", std::to_string(header.data.size()) + " bytes of data",
                  std::to_string(expected) + " bytes, where the last tensor ends");
  }
}

std::string_view safetensors_name(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return "F32";
    case DType::bf16:
      return "BF16";
    case DType::fp16:
      return "F16";
    case DType::int64:
      return "I64";
    case DType::int32:
      return "I32";
    case DType::uint8:
      return "U8";
  }
  return "";
}

Node list_of(std::span<const std::int64_t> sizes) {
  Node list = list_node();
  for (const std::int64_t size : sizes) list.items.push_back(node_of(size));
  return list;
}

/// A header with its length before it.
std::string header_of(std::span<const TensorSpec> tensors,
                      const std::map<std::string, std::string>& metadata) {
  Node header = map_node();
  if (!metadata.empty()) {
    Node entries = map_node();
    for (const auto& [key, value] : metadata) add(entries, key, node_of(value));
    add(header, "__metadata__", std::move(entries));
  }
  std::int64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    TESSERA_CHECK(offset % size_of(tensor.dtype) == 0);
    const std::int64_t end = offset + tensor.bytes();
    Node entry = map_node();
    add(entry, "dtype", node_of(safetensors_name(tensor.dtype)));
    add(entry, "shape", list_of(tensor.shape));
    add(entry, "data_offsets", list_of(std::array{offset, end}));
    add(header, tensor.name, std::move(entry));
    offset = end;
  }
  const std::string text = json_line(header);
  const std::size_t length = (text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes;
  std::string whole;
  for (std::size_t i = 0; i < kLengthBytes; ++i) whole += static_cast<char>(length >> (8 * i));
  whole += text;
  whole.resize(kLengthBytes + length, ' ');
  return whole;
}

}  // namespace

std::int64_t TensorSpec::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

std::optional<SafetensorsFile> parse_safetensors(std::span<const std::byte> bytes,
                                                 const std::string& file, Problems& problems) {
  Header header{.file = file, .data = {}, .problems = problems, .tensors = {}};
  const std::size_t before = problems.size();
  const auto refused = [&](std::string found, std::string expected) {
    header.refuse("header", std::move(found), std::move(expected));
    return std::nullopt;
  };
  if (bytes.size() < kLengthBytes) {
    return refused(std::to_string(bytes.size()) + " bytes", "at least 8 bytes of header length");
  }
  const std::uint64_t length = little_endian(bytes);
  if (length > static_cast<std::uint64_t>(kMaxSafetensorsHeader)) {
    return refused("length " + std::to_string(length), "at most 100000000 bytes");
  }
  if (length > bytes.size() - kLengthBytes) {
    return refused(
        "length " + std::to_string(length),
        "at most the " + std::to_string(bytes.size() - kLengthBytes) + " bytes that follow");
  }
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, length);
  if (!text.starts_with('{')) return refused("no '{' at its start", "a JSON object");
  header.data = bytes.subspan(kLengthBytes + length);

  const auto document = parse_json(text, file, problems, kHeaderLimits);
  if (!document) return std::nullopt;
  SafetensorsFile result;
  for (std::size_t i = 0; i < document->root.keys.size(); ++i) {
    const std::string& name = document->root.keys[i];
    const Node& value = document->root.items[i];
    if (name == "__metadata__") {
      read_metadata(header, value, result.metadata);
    } else {
      read_tensor(header, name, value);
    }
  }
  if (problems.size() == before) check_coverage(header);
  if (problems.size() != before) return std::nullopt;
  result.tensors = std::move(header.tensors);
  return result;
}

std::optional<SafetensorsFile> open_safetensors(const std::filesystem::path& path,
                                                Problems& problems) {
  auto mapping = MappedFile::open(path, problems);
  if (!mapping) return std::nullopt;
  auto shared = std::make_shared<const MappedFile>(std::move(*mapping));
  auto file = parse_safetensors(shared->bytes(), path.string(), problems);
  if (file) file->mapping = std::move(shared);
  return file;
}

std::optional<SafetensorsWriter> SafetensorsWriter::create(
    const std::filesystem::path& path, std::vector<TensorSpec> tensors,
    std::map<std::string, std::string> metadata, Problems& problems) {
  std::set<std::string_view> names;
  std::int64_t total = 0;
  for (const TensorSpec& tensor : tensors) {
    TESSERA_CHECK(names.insert(tensor.name).second && tensor.name != "__metadata__");
    total += tensor.bytes();
  }
  const auto begin = static_cast<std::int64_t>(header_of(tensors, metadata).size());
  const std::int64_t length = begin - static_cast<std::int64_t>(kLengthBytes);
  if (length > kMaxSafetensorsHeader) {
    problems.push_back({.file = path.string(),
                        .place = "header",
                        .found = std::to_string(length) + " bytes of header",
                        .expected = "at most 100000000",
                        .hint = "write more, smaller shards"});
    return std::nullopt;
  }
  auto file = AtomicFile::create(path, problems);
  if (!file) return std::nullopt;
  return SafetensorsWriter(std::move(*file), std::move(tensors), std::move(metadata), begin,
                           begin + total);
}

bool SafetensorsWriter::write(std::span<const std::byte> bytes, Problems& problems) {
  const std::int64_t at = at_;
  at_ += static_cast<std::int64_t>(bytes.size());
  TESSERA_CHECK(at_ <= end_);
  return file_.write(bytes, at, problems);
}

void SafetensorsWriter::set_metadata(const std::string& key, std::string value) {
  metadata_.at(key) = std::move(value);
}

bool SafetensorsWriter::publish(Problems& problems) {
  TESSERA_CHECK(at_ == end_);
  const std::string header = header_of(tensors_, metadata_);
  TESSERA_CHECK(static_cast<std::int64_t>(header.size()) == begin_);
  return file_.write(std::as_bytes(std::span(header)), 0, problems) && file_.publish(problems);
}

}  // namespace tessera
