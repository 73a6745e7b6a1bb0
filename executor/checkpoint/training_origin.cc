#include "executor/checkpoint/training_origin.h"

#include <array>
#include <utility>

#include "cost_models/documents/document.h"
#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "executor/checkpoint/data_nodes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tessera {
namespace {

constexpr std::int64_t kOriginVersion = 1;
constexpr std::size_t kLargestOrigin = std::size_t{1} << 20;

TrainingOrigin read_origin(ObjectReader& root) {
  TrainingOrigin origin;
  std::int64_t version = kOriginVersion;
  root.required("tessera_training", version);
  if (version != kOriginVersion) root.refuse("tessera_training", "version 1");
  root.required("seed", origin.seed, kNotNegative);
  root.required("steps", origin.steps, kNotNegative);
  root.required("prompts_taken", origin.prompts, kNotNegative);
  origin.data = read_data(root);
  root.refuse_unknown_keys();
  return origin;
}

}  // namespace

std::string to_json(const TrainingOrigin& origin) {
  Node root = map_node();
  add(root, "tessera_training", node_of(kOriginVersion));
  add(root, "seed", node_of(origin.seed));
  add(root, "steps", node_of(origin.steps));
  add(root, "prompts_taken", node_of(origin.prompts));
  add(root, "data", node_of_data(origin.data));
  return json_text(root);
}

std::optional<TrainingOrigin> read_training_origin(const std::filesystem::path& folder,
                                                   Problems& problems) {
  const std::filesystem::path file = folder / kTrainingOriginName;
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  const std::size_t before = problems.size();
  const auto text = read_text_file(file, kLargestOrigin, problems);
  if (!text) return std::nullopt;
  const auto document = parse_json(*text, file.string(), problems);
  if (!document) return std::nullopt;
  ObjectReader reader(*document, problems);
  TrainingOrigin origin = read_origin(reader);
  if (problems.size() != before) return std::nullopt;
  return origin;
}

std::int64_t next_seed(const TrainingOrigin& origin) {
  const std::array<std::int64_t, 2> trained = {origin.seed, origin.steps};
  return static_cast<std::int64_t>(XXH3_64bits(trained.data(), sizeof trained) >> 32);
}

bool continues(const TrainingOrigin& origin, const CheckpointData& data) {
  const CheckpointData& then = origin.data;
  return then.prompts == data.prompts && then.seed == data.seed && then.shuffle == data.shuffle &&
         then.digest == data.digest;
}

}  // namespace tessera
