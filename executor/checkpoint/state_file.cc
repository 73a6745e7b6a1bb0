#include "executor/checkpoint/state_file.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <span>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/checkpoint/checkpoint_digest.h"
#include "executor/threads/shared_work.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kParts = "parts";  // in a header's metadata; a piece's name has brackets

/// Reads a number at the front of `text` and takes it away.
bool take_number(std::string_view& text, std::int64_t& number) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(at - text.data()));
  return true;
}

bool take(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(1);
  return true;
}

/// Adds a file's pieces to the checkpoint's.
void add_pieces(const SafetensorsFile& file, OpenCheckpoint& checkpoint, Problems& problems) {
  for (const TensorView& view : file.tensors) {
    const auto digest = file.metadata.find(view.name);
    if (digest == file.metadata.end()) {
      problems.push_back({.file = view.file,
                          .place = view.name,
                          .found = "no digest",
                          .expected = "one in the header's metadata"});
      continue;
    }
    const auto name = parse_piece_name(view.name);
    if (!name) continue;
    checkpoint.pieces[name->state].push_back({name->box, &view, digest->second});
  }
}

std::span<const std::byte> bytes_of(const StateTensor& tensor) {
  return {tensor.data, static_cast<std::size_t>(tensor.spec.bytes())};
}

using Part = std::span<const StateTensor>;

/// Neighbouring tensors by part, cut where a part's share of the bytes is nearest; one at least.
std::vector<Part> cut_into_parts(Part tensors, std::int64_t least_bytes) {
  std::int64_t total = 0;
  for (const StateTensor& tensor : tensors) total += tensor.spec.bytes();
  const std::int64_t count = std::clamp<std::int64_t>(total / least_bytes, 1, kMostParts);
  std::vector<Part> parts;
  std::size_t begin = 0;
  std::int64_t before = 0, share = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::int64_t bytes = tensors[i].spec.bytes();
    const std::int64_t own =
        std::min(count - 1, (before + bytes / 2) * count / std::max<std::int64_t>(total, 1));
    if (own != share && i > begin) {
      parts.push_back(tensors.subspan(begin, i - begin));
      begin = i;
    }
    share = own;
    before += bytes;
  }
  parts.push_back(tensors.subspan(begin));
  return parts;
}

/// Ends early where another part has failed.
bool write_part(const fs::path& file, Part tensors, std::size_t parts,
                const std::atomic<bool>& other_failed, Problems& problems) {
  std::vector<TensorSpec> specs;
  std::map<std::string, std::string> metadata{{kParts, std::to_string(parts)}};
  for (const StateTensor& tensor : tensors) {
    specs.push_back(tensor.spec);
    metadata.emplace(tensor.spec.name, checkpoint_digest({}));  // as long as its own
  }
  auto writer = SafetensorsWriter::create(file, std::move(specs), std::move(metadata), problems);
  if (!writer) return false;
  for (const StateTensor& tensor : tensors) {
    auto digest = checkpoint_digest(bytes_of(tensor), [&](std::span<const std::byte> bytes) {
      return !other_failed && writer->write(bytes, problems);
    });
    if (!digest) return false;
    writer->set_metadata(tensor.spec.name, std::move(*digest));
  }
  return !other_failed && writer->publish(problems);
}

/// In how many parts the state lies whose first one is `file`.
std::optional<std::size_t> parts_of(const SafetensorsFile& file, const fs::path& path,
                                    Problems& problems) {
  const auto stated = file.metadata.find(kParts);
  if (stated == file.metadata.end()) return 1;
  std::string_view text = stated->second;
  std::int64_t parts = 0;
  if (take_number(text, parts) && text.empty() && parts >= 1 && parts <= kMostParts) {
    return static_cast<std::size_t>(parts);
  }
  problems.push_back({.file = path.string(),
                      .place = std::string("__metadata__.") + kParts,
                      .found = stated->second,
                      .expected = "a number from 1 to " + std::to_string(kMostParts)});
  return std::nullopt;
}

/// The files of a rank's state, which come first in `listed`.
std::optional<std::vector<SafetensorsFile>> open_listed(const fs::path& folder, int rank,
                                                        std::span<const CheckpointFile> listed,
                                                        Problems& problems) {
  const auto is_listed = [&](const std::string& name, std::size_t part, std::size_t parts) {
    if (part < listed.size() && listed[part].name == name) return true;
    problems.push_back({.file = (folder / kManifestName).string(),
                        .place = "files",
                        .found = part < listed.size() ? listed[part].name : "no further file",
                        .expected = name + ", part " + std::to_string(part + 1) + " of " +
                                    std::to_string(parts) + " of rank " + std::to_string(rank)});
    return false;
  };
  return open_parts(folder, rank, is_listed, problems);
}

}  // namespace

std::string piece_name(std::string_view state, const Box& box) {
  std::string name = std::string(state) + "[";
  for (int dim = 0; dim < box.rank; ++dim) {
    const Interval range = box.dims[static_cast<std::size_t>(dim)];
    if (dim > 0) name += ',';
    name += std::to_string(range.lo) + ':' + std::to_string(range.hi);
  }
  return name + "]";
}

std::optional<PieceName> parse_piece_name(std::string_view name) {
  const std::size_t open = name.rfind('[');
  if (open == std::string_view::npos || !name.ends_with(']')) return std::nullopt;
  PieceName piece{.state = std::string(name.substr(0, open)), .box = {}};
  std::string_view rest = name.substr(open + 1);
  while (rest != "]") {
    if (piece.box.rank == kMaxTensorRank) return std::nullopt;
    if (piece.box.rank > 0 && !take(rest, ',')) return std::nullopt;
    Interval& range = piece.box.dims[static_cast<std::size_t>(piece.box.rank++)];
    if (!take_number(rest, range.lo) || !take(rest, ':') || !take_number(rest, range.hi) ||
        range.lo < 0 || range.hi < range.lo) {
      return std::nullopt;
    }
  }
  return piece;
}

bool write_state(const fs::path& folder, int rank, const std::vector<StateTensor>& tensors,
                 std::int64_t least_part_bytes, Problems& problems) {
  const std::vector<Part> parts = cut_into_parts(tensors, least_part_bytes);
  std::vector<Problems> found(parts.size());
  std::atomic<bool> failed = false;
  share_work(static_cast<std::int64_t>(parts.size()), 1, kMostParts,
             [&](std::int64_t part, std::int64_t /*end*/) {
               const auto at = static_cast<std::size_t>(part);
               const fs::path file = folder / rank_file_name(rank, static_cast<int>(part));
               if (!write_part(file, parts[at], parts.size(), failed, found[at])) failed = true;
             });
  for (const Problems& each : found) problems.insert(problems.end(), each.begin(), each.end());
  return !failed;
}

std::optional<std::vector<SafetensorsFile>> open_parts(const fs::path& folder, int rank,
                                                       const PartIsThere& is_there,
                                                       Problems& problems) {
  std::vector<SafetensorsFile> files;
  std::size_t parts = 1;  // until the first one tells
  for (std::size_t part = 0; part < parts; ++part) {
    const std::string name = rank_file_name(rank, static_cast<int>(part));
    if (!is_there(name, part, parts)) return std::nullopt;
    auto file = open_safetensors(folder / name, problems);
    if (!file) return std::nullopt;
    if (part == 0) {
      const auto stated = parts_of(*file, folder / name, problems);
      if (!stated) return std::nullopt;
      parts = *stated;
    }
    files.push_back(std::move(*file));
  }
  return files;
}

std::optional<OpenCheckpoint> open_checkpoint(const fs::path& folder, Problems& problems) {
  const std::size_t before = problems.size();
  auto manifest = read_manifest(folder, problems);
  if (!manifest) return std::nullopt;
  OpenCheckpoint checkpoint{
      .folder = folder, .manifest = std::move(*manifest), .files = {}, .pieces = {}};
  std::span<const CheckpointFile> left = checkpoint.manifest.files;
  while (!left.empty()) {
    auto parts = open_listed(folder, static_cast<int>(checkpoint.files.size()), left, problems);
    if (!parts) return std::nullopt;
    left = left.subspan(parts->size());
    checkpoint.files.push_back(std::move(*parts));
  }
  for (const std::vector<SafetensorsFile>& parts : checkpoint.files) {
    for (const SafetensorsFile& file : parts) add_pieces(file, checkpoint, problems);
  }
  if (problems.size() != before) return std::nullopt;
  return checkpoint;
}

bool check_digest(const TensorView& view, const std::string& digest, Problems& problems) {
  const std::string found = checkpoint_digest(view.data);
  if (found == digest) return true;
  problems.push_back({.file = view.file,
                      .place = view.name,
                      .found = "xxh3 " + found,
                      .expected = digest,
                      .hint = "the file has changed since it was written"});
  return false;
}

}  // namespace tessera
