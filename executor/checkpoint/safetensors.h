// The safetensors format: named tensors in one file, read through a mapping and written as a
// stream.
//
// Rules as safetensors/src/tensor.rs (0.8): 8 bytes little-endian header length, at most
// 100,000,000 bytes of JSON that start with '{' and have no duplicate keys, then the data, whose
// offsets start at 0 and leave neither hole nor overlap up to the end of the file. Each broken rule
// is a Problem of its own with the tensor's name as place. Readers: any thread; writer: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cost_models/documents/problem_list.h"
#include "cost_models/spec/dtype.h"
#include "executor/checkpoint/atomic_file.h"
#include "executor/checkpoint/mapped_file.h"

namespace tessera {

inline constexpr std::int64_t kMaxSafetensorsHeader = 100'000'000;

/// A file's entry for one tensor. Element counts; row-major.
struct TensorSpec {
  std::string name;
  DType dtype = DType::fp32;
  std::vector<std::int64_t> shape;

  /// Precondition: the product fits (readers refuse tensors where it does not).
  std::int64_t elements() const;
  std::int64_t bytes() const { return elements() * size_of(dtype); }
  bool operator==(const TensorSpec&) const = default;
};

/// A tensor inside a mapped file. The bytes need not be aligned to the element size.
struct TensorView : TensorSpec {
  std::string file;
  std::span<const std::byte> data;
};

struct SafetensorsFile {
  std::shared_ptr<const MappedFile> mapping;  // keeps every view alive
  std::vector<TensorView> tensors;            // in data order
  std::map<std::string, std::string> metadata;
};

/// Maps and checks a file; nullopt when anything was appended to `problems`.
std::optional<SafetensorsFile> open_safetensors(const std::filesystem::path& path,
                                                Problems& problems);

/// Checks the bytes of a file named `file`; views point into `bytes`.
std::optional<SafetensorsFile> parse_safetensors(std::span<const std::byte> bytes,
                                                 const std::string& file, Problems& problems);

/// Writes one file: the tensors' bytes in the order of `tensors`, and the header in the room before
/// them when they are all there. What is cut off earlier has zeros in that room: no reader takes it
/// for a file of this format.
class SafetensorsWriter {
 public:
  /// Precondition: names are unique and every tensor starts at a multiple of its element size
  /// (wider types first).
  static std::optional<SafetensorsWriter> create(const std::filesystem::path& path,
                                                 std::vector<TensorSpec> tensors,
                                                 std::map<std::string, std::string> metadata,
                                                 Problems& problems);

  /// Appends the next bytes of the data; tensors may come in pieces.
  bool write(std::span<const std::byte> bytes, Problems& problems);

  /// Replaces a value of the metadata by what the data have told.
  /// Precondition: it is as long in JSON.
  void set_metadata(const std::string& key, std::string value);

  /// Writes the header and makes the file visible; the file that completes its folder flushes the
  /// folder. Precondition: exactly the announced bytes were written.
  bool publish(Problems& problems);

 private:
  SafetensorsWriter(AtomicFile file, std::vector<TensorSpec> tensors,
                    std::map<std::string, std::string> metadata, std::int64_t begin,
                    std::int64_t end)
      : file_(std::move(file)),
        tensors_(std::move(tensors)),
        metadata_(std::move(metadata)),
        begin_(begin),
        at_(begin),
        end_(end) {}

  AtomicFile file_;
  std::vector<TensorSpec> tensors_;
  std::map<std::string, std::string> metadata_;
  std::int64_t begin_, at_, end_;  // bytes of the file: of the data, and written so far
};

}  // namespace tessera
