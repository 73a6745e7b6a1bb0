#include "cost_models/vision/tower.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tessera {
namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

bool is_gated(VisionTower kind) { return kind == VisionTower::qwen2_5 || kind == VisionTower::glm; }

double patches_of_token(const VisionSpec& tower) { return as_double(tower.merge * tower.merge); }

// Rows that pass the blocks: Llama 4 has a class token beside an image's patches.
double rows_of_image(const TowerRank& rank, double tokens) {
  const double patches = tokens * patches_of_token(rank.tower);
  return rank.kind == VisionTower::llama4 ? patches + 1 : patches;
}

// Patches of a window; 0 = every layer sees the whole image.
double window_patches(const VisionSpec& tower) {
  if (tower.window == 0) return 0;
  const double side = std::floor(as_double(tower.window) / as_double(tower.patch * tower.merge));
  const double patches = std::max(1.0, side) * as_double(tower.merge);
  return patches * patches;
}

// Outside the blocks: y[rows, n] = x[rows, k] w[n, k]^T, `rows` for each patch.
struct EndProduct {
  double rows = 1, n = 0, k = 0;
  bool reads_pixels = false;  // nobody asks for the gradient of its input
};

std::vector<EndProduct> end_products(const VisionSpec& tower, VisionTower kind) {
  const double hidden = as_double(tower.hidden), output = as_double(tower.output);
  const double pixels =
      as_double(tower.channels * tower.temporal_patch * tower.patch * tower.patch);
  const double token = 1 / patches_of_token(tower), merged = hidden / token;
  std::vector<EndProduct> products{{1, hidden, pixels, true}};
  switch (kind) {
    case VisionTower::none:
      break;
    case VisionTower::qwen2_5:
    case VisionTower::qwen3:
      for (std::size_t i = 0; i <= tower.deepstack_layers.size(); ++i) {
        products.push_back({token, merged, merged});
        products.push_back({token, output, merged});
      }
      break;
    case VisionTower::glm:
      products.push_back({token, output, merged});  // the convolution that merges
      products.push_back({token, output, output});
      products.push_back({token, 2 * as_double(tower.ffn), output});
      products.push_back({token, output, as_double(tower.ffn)});
      break;
    case VisionTower::llama4:
      products.push_back({token, as_double(tower.projector), merged});
      products.push_back({token, as_double(tower.projector), as_double(tower.projector)});
      products.push_back({token, output, as_double(tower.projector)});
      break;
    case VisionTower::siglip:
      products.push_back({token, output, hidden});
      break;
  }
  return products;
}

ModelSpec blocks_of(const VisionSpec& tower, VisionTower kind) {
  ModelSpec blocks;
  const bool gated = is_gated(kind);
  blocks.layers = tower.layers;
  blocks.hidden = tower.hidden;
  blocks.query_heads = blocks.kv_heads = tower.heads;
  blocks.head_dim = tower.hidden / tower.heads;
  blocks.ffn = kind == VisionTower::glm ? tower.output : tower.ffn;
  blocks.norm = gated ? NormKind::rms : NormKind::layer_norm;
  blocks.mlp = gated ? MlpKind::swiglu : MlpKind::gelu;
  blocks.qkv_bias = blocks.output_bias = blocks.mlp_bias = kind != VisionTower::glm;
  return blocks;
}

// Layers that see so many patches of an image; a patch sees all of them, where one of causal
// attention sees half: as much as of a sequence of twice the length.
struct Seen {
  double layers = 0;
  TokenBatch batch;
};

std::vector<Seen> seen_by_layers(const TowerRank& rank, const ImageBatch& batch) {
  const double rows = rows_of_image(rank, batch.tokens), layers = as_double(rank.tower.layers);
  const auto seeing = [&](double count, double seen) {
    return Seen{count, {batch.images * rows, batch.images, 2 * batch.images * rows * seen}};
  };
  const double window = std::min(window_patches(rank.tower), rows);
  if (window == 0) return {seeing(layers, rows)};
  const double full = as_double(std::ssize(rank.tower.full_attention_layers));
  return {seeing(full, rows), seeing(layers - full, window)};
}

Seconds end_seconds(const TowerRank& rank, const ImageBatch& batch, bool backward,
                    const Calibration& calibration) {
  const double patches = batch.images * batch.tokens * patches_of_token(rank.tower);
  const DType type = rank.blocks.dtype;
  Seconds seconds;
  for (const EndProduct& product : end_products(rank.tower, rank.kind)) {
    const double rows = patches * product.rows;
    if (!backward) {
      seconds += matmul_seconds(rows, product.n, product.k, type, calibration);
      continue;
    }
    seconds += matmul_seconds(product.n, product.k, rows, type, calibration);
    if (!product.reads_pixels) {
      seconds += matmul_seconds(rows, product.k, product.n, type, calibration);
    }
  }
  return calibration.sustained.value * seconds;
}

Bytes rounded(double bytes) {
  return Bytes{static_cast<std::int64_t>(std::ceil(std::min(bytes, 1.0 * (1LL << 56))))};
}

// Bytes of a patch between two blocks.
double stream_bytes(const TowerRank& rank) {
  return as_double(rank.tower.hidden * size_of(rank.blocks.dtype));
}

// What transformers' block keeps of a patch. Norms of gated towers keep their input in fp32, its
// normalised value and their output, others their input in fp32 (autocast) and their output; the
// residual stream twice; queries, keys and values as one projection, queries and keys after their
// rotation (SigLIP's have none), and attention's output; of the MLP what its activation reads and
// makes, and their product.
double block_bytes(const TowerRank& rank) {
  const double hidden = as_double(rank.tower.hidden), ffn = as_double(rank.blocks.model.ffn);
  const double norms = is_gated(rank.kind) ? 2 * 4 : 2 * 3, stream = 2;
  const double attention = rank.kind == VisionTower::siglip ? 3 + 1 : 3 + 2 + 1;
  const double mlp = is_gated(rank.kind) ? 4 : 2;
  return size_of(rank.blocks.dtype) * ((norms + stream + attention) * hidden + mlp * ffn);
}

// Outside the blocks, of an image: each product's output, and what is made of it.
double end_bytes(const TowerRank& rank, double tokens) {
  double elements = 0;
  for (const EndProduct& product : end_products(rank.tower, rank.kind)) {
    elements += 2 * product.rows * product.n;
  }
  return size_of(rank.blocks.dtype) * tokens * patches_of_token(rank.tower) * elements;
}

}  // namespace

std::optional<TowerRank> tower_rank(const ModelSpec& model, DType type,
                                    const EngineTraits& traits) {
  if (!model.vision) return std::nullopt;
  const VisionTower kind = facts_of(model.family).vision;
  TowerRank rank{.blocks = {.model = blocks_of(*model.vision, kind), .dtype = type},
                 .tower = *model.vision,
                 .kind = kind};
  rank.blocks.traits = traits;
  return rank;
}

ImageBatch images_of(const Workload& workload, double sequences) {
  return {sequences * workload.images.per_prompt, as_double(workload.images.tokens)};
}

double tower_flops(const ModelSpec& model, double tokens) {
  const auto rank = tower_rank(model, model.dtype, {});
  if (!rank) return 0;
  double flops = 0;
  for (const EndProduct& product : end_products(rank->tower, rank->kind)) {
    flops += 2 * tokens * patches_of_token(rank->tower) * product.rows * product.n * product.k;
  }
  flops += rows_of_image(*rank, tokens) * forward_flops_per_token(rank->blocks.model, 0);
  for (const Seen& seen : seen_by_layers(*rank, {1, tokens})) {
    flops += seen.layers * 2 * as_double(rank->tower.hidden) * seen.batch.squared;
  }
  return flops;
}

double forward_flops_per_sequence(const ModelSpec& model, const Workload& workload, double tokens) {
  const ImageBatch batch = images_of(workload, 1);
  const double images = batch.images > 0 ? batch.images * tower_flops(model, batch.tokens) : 0;
  return tokens * forward_flops_per_token(model, tokens) + images;
}

Work tower_forward(const TowerRank& rank, const ImageBatch& batch, const Calibration& calibration) {
  if (batch.images <= 0) return {};
  Work work{end_seconds(rank, batch, false, calibration), {}};
  for (const Seen& seen : seen_by_layers(rank, batch)) {
    work += seen.layers * layer_forward(rank.blocks, seen.batch, calibration);
  }
  return work;
}

Work tower_backward(const TowerRank& rank, const ImageBatch& batch, Recompute recompute,
                    const Calibration& calibration) {
  if (batch.images <= 0) return {};
  Work work{end_seconds(rank, batch, true, calibration), {}};
  for (const Seen& seen : seen_by_layers(rank, batch)) {
    work += seen.layers * layer_backward(rank.blocks, seen.batch, recompute, calibration);
  }
  return work;
}

MemoryUse tower_training_memory(const TowerRank& rank, const ImageBatch& batch, Recompute recompute,
                                double in_flight) {
  const double rows = batch.images * rows_of_image(rank, batch.tokens);
  if (rows <= 0) return {};
  StageLoad load{
      .tokens = rows, .sequence = rows_of_image(rank, batch.tokens), .in_flight = in_flight};
  load.layers[static_cast<std::size_t>(LayerKind::dense)] = rank.tower.layers;
  MemoryUse use = training_memory(rank.blocks, load, recompute);
  if (rank.blocks.traits.kernels.account == ActivationAccount::transformers) {
    const double whole = rows * block_bytes(rank);
    const bool checkpointed = recompute == Recompute::full;
    const double each = checkpointed ? rows * stream_bytes(rank) : whole;
    use.activations = rounded(as_double(rank.tower.layers) * each + (checkpointed ? whole : 0));
  }
  use.activations += rounded(batch.images * end_bytes(rank, batch.tokens) * in_flight);
  return use;
}

MemoryUse beside_tower(MemoryUse model, const TowerRank& rank, const ImageBatch& batch,
                       Recompute recompute, double in_flight) {
  const double rows = batch.images * rows_of_image(rank, batch.tokens);
  if (rows <= 0) return model;
  if (in_flight > 0) {
    const MemoryUse tower = tower_training_memory(rank, batch, recompute, in_flight);
    model.activations += tower.activations;
    model.workspace = std::max(model.workspace, tower.workspace);
  } else {
    const MemoryUse tower = inference_memory(rank.blocks, false, rows);
    model.activations = std::max(model.activations, tower.activations);
    model.workspace = std::max(model.workspace, tower.workspace);
  }
  return model;
}

}  // namespace tessera
