#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "executor/checkpoint/atomic_file.h"
#include "executor/checkpoint/model_folder.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// The tensors [first, last) of the list that go into one file.
struct Shard {
  std::size_t first = 0, last = 0;
};

/// Cuts the list in order; a tensor larger than `limit` gets a file of its own. A file also ends
/// where a wider type follows a narrower one, so that every tensor stays aligned to its type.
std::vector<Shard> shards_of(std::span<const TensorSpec> tensors, std::int64_t limit) {
  std::vector<Shard> shards;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const bool wider = i > 0 && size_of(tensors[i].dtype) > size_of(tensors[i - 1].dtype);
    if (shards.empty() || wider || bytes + tensors[i].bytes() > limit) {
      shards.push_back({i, i});
      bytes = 0;
    }
    shards.back().last = i + 1;
    bytes += tensors[i].bytes();
  }
  return shards;
}

std::string shard_name(std::size_t index, std::size_t count) {
  if (count == 1) return "model.safetensors";
  char text[64];
  std::snprintf(text, sizeof text, "model-%05zu-of-%05zu.safetensors", index + 1, count);
  return text;
}

std::string torch_name(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return "float32";
    case DType::bf16:
      return "bfloat16";
    case DType::fp16:
      return "float16";
    default:
      return std::string(name_of(dtype));
  }
}

/// The original with the type of the first floating tensor as `dtype` (and `torch_dtype`,
/// where it has one).
std::optional<std::string> adjusted_config(const ModelFolderContents& contents,
                                           const std::string& file, Problems& problems) {
  auto document = parse_json(contents.config_json, file, problems);
  if (!document) return std::nullopt;
  Node& config = document->root;
  if (!config.is(Node::Kind::map)) {
    problems.push_back({.file = file, .found = describe(config), .expected = "an object"});
    return std::nullopt;
  }
  if (contents.tensors.empty()) return json_text(config);
  const std::string dtype = torch_name(contents.tensors.front().dtype);
  bool stated = false;
  for (std::size_t i = 0; i < config.keys.size(); ++i) {
    if (config.keys[i] != "dtype" && config.keys[i] != "torch_dtype") continue;
    config.items[i] = node_of(dtype);
    stated = true;
  }
  if (!stated) add(config, "dtype", node_of(dtype));
  return json_text(config);
}

bool write_index(const fs::path& folder, std::span<const TensorSpec> tensors,
                 std::span<const Shard> shards, Problems& problems) {
  std::int64_t elements = 0, bytes = 0;
  Node map = map_node();
  for (std::size_t s = 0; s < shards.size(); ++s) {
    for (std::size_t i = shards[s].first; i < shards[s].last; ++i) {
      add(map, tensors[i].name, node_of(shard_name(s, shards.size())));
      elements += tensors[i].elements();
      bytes += tensors[i].bytes();
    }
  }
  Node metadata = map_node();
  add(metadata, "total_parameters", node_of(elements));
  add(metadata, "total_size", node_of(bytes));
  Node index = map_node();
  add(index, "metadata", std::move(metadata));
  add(index, "weight_map", std::move(map));
  return write_file_atomically(folder / "model.safetensors.index.json", json_text(index), problems);
}

bool write_shards(const fs::path& folder, const ModelFolderContents& contents,
                  const TensorSource& source, Problems& problems) {
  const auto shards = shards_of(contents.tensors, contents.max_shard_bytes);
  for (std::size_t s = 0; s < shards.size(); ++s) {
    const auto tensors =
        std::span(contents.tensors).subspan(shards[s].first, shards[s].last - shards[s].first);
    if (!write_tensor_file(folder / shard_name(s, shards.size()), tensors, shards[s].first, source,
                           problems)) {
      return false;
    }
  }
  return shards.size() <= 1 || write_index(folder, contents.tensors, shards, problems);
}

}  // namespace

bool write_tensor_file(const fs::path& file, std::span<const TensorSpec> tensors, std::size_t first,
                       const TensorSource& source, Problems& problems) {
  auto writer = SafetensorsWriter::create(file, {tensors.begin(), tensors.end()},
                                          {{"format", "pt"}}, problems);
  if (!writer) return false;
  std::vector<std::byte> buffer;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    buffer.resize(static_cast<std::size_t>(tensors[i].bytes()));
    if (!source(first + i, buffer, problems) || !writer->write(buffer, problems)) return false;
  }
  return writer->publish(problems);
}

bool write_extra_files(const fs::path& folder, const std::map<std::string, std::string>& files,
                       Problems& problems) {
  return std::ranges::all_of(files, [&](const auto& file) {
    return write_file_atomically(folder / file.first, file.second, problems);
  });
}

bool copy_tokenizer_files(const fs::path& from, const fs::path& to, Problems& problems) {
  for (const char* name :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
        "vocab.json", "merges.txt", "chat_template.jinja", "generation_config.json"}) {
    std::error_code error;
    if (!fs::exists(from / name, error)) continue;
    const auto file = MappedFile::open(from / name, problems);
    if (!file) return false;
    const std::string_view text(reinterpret_cast<const char*>(file->bytes().data()),
                                file->bytes().size());
    if (!write_file_atomically(to / name, text, problems)) return false;
  }
  return true;
}

bool write_model_folder(const fs::path& folder, const ModelFolderContents& contents,
                        const TensorSource& source, Problems& problems) {
  const auto fill = [&](const fs::path& partial) {
    const auto config = adjusted_config(contents, (folder / "config.json").string(), problems);
    return config && (!contents.weights || write_shards(partial, contents, source, problems)) &&
           (contents.tokenizer_from.empty() ||
            copy_tokenizer_files(contents.tokenizer_from, partial, problems)) &&
           write_extra_files(partial, contents.extra_files, problems) &&
           write_file_atomically(partial / "config.json", *config, problems);
  };
  return write_folder_atomically(folder, fill, problems);
}

}  // namespace tessera
