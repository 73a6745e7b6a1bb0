#include "executor/checkpoint/state_file.h"

#include <charconv>
#include <utility>

#include "cost_models/documents/problem.h"
#include "executor/threads/shared_work.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int kDigestThreads = 4;

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

/// The header has them, so that they come before the first byte is written: by several threads,
/// which read faster than a disk writes.
std::vector<std::string> digests_of(const std::vector<StateTensor>& tensors) {
  std::vector<std::string> digests(tensors.size());
  share_work(static_cast<std::int64_t>(tensors.size()), 1, kDigestThreads,
             [&](std::int64_t begin, std::int64_t end) {
               for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end);
                    ++i)
                 digests[i] = checkpoint_digest(bytes_of(tensors[i]));
             });
  return digests;
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

bool write_state_file(const fs::path& file, const std::vector<StateTensor>& tensors,
                      Problems& problems) {
  std::vector<TensorSpec> specs;
  std::map<std::string, std::string> metadata;
  const std::vector<std::string> digests = digests_of(tensors);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    specs.push_back(tensors[i].spec);
    metadata.emplace(tensors[i].spec.name, digests[i]);
  }
  auto writer = SafetensorsWriter::create(file, specs, metadata, problems);
  if (!writer) return false;
  for (const StateTensor& tensor : tensors) {
    if (!writer->write(bytes_of(tensor), problems)) return false;
  }
  return writer->publish(problems);
}

std::optional<OpenCheckpoint> open_checkpoint(const fs::path& folder, Problems& problems) {
  const std::size_t before = problems.size();
  auto manifest = read_manifest(folder, problems);
  if (!manifest) return std::nullopt;
  OpenCheckpoint checkpoint{
      .folder = folder, .manifest = std::move(*manifest), .files = {}, .pieces = {}};
  for (const CheckpointFile& each : checkpoint.manifest.files) {
    if (auto file = open_safetensors(folder / each.name, problems)) {
      checkpoint.files.push_back(std::move(*file));
    }
  }
  if (problems.size() != before) return std::nullopt;
  for (const SafetensorsFile& file : checkpoint.files) add_pieces(file, checkpoint, problems);
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
