#include "executor/data/init_model.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "cost_models/documents/preset.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "executor/checkpoint/model_folder.h"
#include "executor/checkpoint/tensor_box.h"
#include "executor/data/counter_random.h"
#include "executor/data/digit_tasks.h"
#include "executor/threads/shared_work.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestConfig = std::size_t{16} << 20;
constexpr double kTransformersRange = 0.02;  // initializer_range where a config states none
constexpr std::int64_t kChunk = 1 << 16;     // elements drawn before they are converted

void set(Node& map, std::string_view key, Node value) {
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    if (map.keys[i] == key) {
      map.items[i] = std::move(value);
      return;
    }
  }
  add(map, key, std::move(value));
}

std::optional<double> initializer_range(const Document& config, Problems& problems) {
  const Node* node = config.root.find("initializer_range");
  if (node == nullptr) return kTransformersRange;
  const bool numeric = node->is(Node::Kind::number) || node->is(Node::Kind::integer);
  if (numeric && node->number >= 0) return node->number;
  problems.push_back({.file = config.file,
                      .place = "/initializer_range",
                      .found = describe(*node),
                      .expected = "a number of at least 0"});
  return std::nullopt;
}

/// The folder and config.json behind a folder, a config.json or a preset's name.
std::optional<fs::path> config_file(const fs::path& config, Problems& problems) {
  const auto found = find_config(config, "models", "", problems);
  if (!found) return std::nullopt;
  return fs::is_directory(*found) ? *found / "config.json" : *found;
}

/// One tensor's bytes as `dtype`, drawn by several threads in chunks that depend on nothing else.
void draw(const Parameter& row, double range, std::uint64_t seed, DType dtype, int threads,
          std::span<std::byte> out) {
  share_work(row.elements(), kChunk, threads, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> chunk(static_cast<std::size_t>(end - begin));
    initial_values(row, range, seed, begin, chunk);
    convert_elements(chunk.data(), DType::fp32, out.data() + begin * size_of(dtype), dtype,
                     end - begin);
  });
}

/// The tensors of the file: the parts of a fused one together, under its name. Elements are drawn
/// independently, so that the order of the parts in it does not matter.
std::vector<Parameter> saved_tensors(const ParameterTable& table) {
  const auto shapes = checkpoint_tensors(table);
  std::set<std::string> fused;
  std::vector<Parameter> tensors;
  for (const Parameter& row : table.rows) {
    if (row.slice && !fused.insert(row.slice->tensor).second) continue;
    Parameter tensor = row;
    if (row.slice) tensor.name = row.slice->tensor;
    tensor.shape = shapes.at(tensor.name);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

bool use_digit_tokenizer(Document& config, const ModelSpec& model, Problems& problems) {
  if (model.vocab < kDigitVocabulary) {
    problems.push_back({.file = config.file,
                        .place = "/vocab_size",
                        .found = std::to_string(model.vocab),
                        .expected = "at least 16, the tokens of the digit tokenizer"});
    return false;
  }
  set(config.root, "bos_token_id", {});
  set(config.root, "eos_token_id", node_of(kDigitEndToken));
  set(config.root, "pad_token_id", node_of(kDigitPadToken));
  return true;
}

}  // namespace

void initial_values(const Parameter& parameter, double initializer_range, std::uint64_t seed,
                    std::int64_t first, std::span<float> values) {
  if (parameter.name.ends_with("norm.weight") || parameter.name.ends_with(".bias")) {
    std::ranges::fill(values, parameter.name.ends_with(".bias") ? 0.0f : 1.0f);
    return;
  }
  const std::uint64_t stream = XXH3_64bits(parameter.name.data(), parameter.name.size());
  std::int64_t block = -1;
  std::array<float, 4> normals{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::int64_t element = first + static_cast<std::int64_t>(i);
    if (element / 4 != block) {
      block = element / 4;
      normals = normal_block(seed, stream, static_cast<std::uint64_t>(block));
    }
    values[i] =
        static_cast<float>(initializer_range) * normals[static_cast<std::size_t>(element % 4)];
  }
}

std::optional<double> initializer_range_of(const fs::path& folder, Problems& problems) {
  const fs::path file = folder / "config.json";
  const auto text = read_text_file(file, kLargestConfig, problems);
  if (!text) return std::nullopt;
  const auto document = parse_json(*text, file.string(), problems);
  return document ? initializer_range(*document, problems) : std::nullopt;
}

bool init_model(const fs::path& config, const fs::path& folder, const InitModelOptions& options,
                Problems& problems) {
  const auto file = config_file(config, problems);
  if (!file) return false;
  const auto text = read_text_file(*file, kLargestConfig, problems);
  if (!text) return false;
  const auto model = parse_model_spec(*text, file->string(), problems);
  auto document = parse_json(*text, file->string(), problems);
  if (!model || !document) return false;
  const auto range = initializer_range(*document, problems);
  if (!range) return false;
  if (options.digit_tokenizer && !use_digit_tokenizer(*document, *model, problems)) return false;

  const std::vector<Parameter> tensors = saved_tensors(parameter_table(*model));
  ModelFolderContents contents;
  contents.config_json = json_text(document->root);
  contents.max_shard_bytes = options.max_shard_bytes;
  contents.weights = options.weights;
  if (!options.digit_tokenizer) contents.tokenizer_from = file->parent_path();
  const DType dtype = options.dtype.value_or(model->dtype);
  for (const Parameter& row : tensors) contents.tensors.push_back({row.name, dtype, row.shape});
  if (options.digit_tokenizer) {
    contents.extra_files = {{"tokenizer.json", digit_tokenizer_json()},
                            {"tokenizer_config.json", digit_tokenizer_config_json()}};
  }
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = options.threads > 0 ? options.threads : cores;
  const TensorSource source = [&](std::size_t index, std::span<std::byte> out, Problems&) {
    draw(tensors[index], *range, options.seed, dtype, threads, out);
    return true;
  };
  return write_model_folder(folder, contents, source, problems);
}

}  // namespace tessera
