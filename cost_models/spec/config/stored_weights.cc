// How a checkpoint stores its weights where it is not in one type: quantization_config.
#include <algorithm>
#include <string>
#include <utility>

#include "cost_models/documents/printed.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/config/model_config.h"

namespace tessera {
namespace {

/// Weights of whole numbers in groups that share a scale of 16 bits, as compressed-tensors'
/// pack-quantized, GPTQ and AWQ store them.
struct PackedWeights {
  std::int64_t bits = 0, group = 0;  // group: elements with one scale; 0 = a row or a tensor
  bool zero_points = false;          // of `bits` a group, beside the scale
};

std::int64_t whole(const Node* node) {
  return node != nullptr && node->is(Node::Kind::integer) && node->integer > 0 ? node->integer : 0;
}

bool is(const Node* node, bool value) {
  return node != nullptr && node->is(Node::Kind::boolean) && node->boolean == value;
}

// compressed-tensors: {"config_groups": {NAME: {"weights": {"num_bits", "group_size",
// "symmetric"}}}}; the first group's stand for all.
PackedWeights packed_in_groups(const Node& stored) {
  const Node* const groups = stored.find("config_groups");
  const Node* const weights =
      groups != nullptr && !groups->items.empty() ? groups->items.front().find("weights") : nullptr;
  if (weights == nullptr) return {};
  return {.bits = whole(weights->find("num_bits")),
          .group = whole(weights->find("group_size")),
          .zero_points = is(weights->find("symmetric"), false)};
}

PackedWeights packed(const Node& stored, const std::string& method) {
  if (method == "compressed-tensors") return packed_in_groups(stored);
  // GPTQ's zero points are there with symmetric weights, too (qzeros).
  return {.bits = whole(stored.find("bits")),
          .group = whole(stored.find("group_size")),
          .zero_points = method == "gptq" || !is(stored.find("zero_point"), false)};
}

// "compressed-tensors, 4 bits in groups of 32: 4.5 bits a weight with scales".
std::string described(const std::string& method, const PackedWeights& weights) {
  std::string text = method.empty() ? "no quant_method" : "method " + method;
  if (weights.bits == 0) return text;
  text += ", " + std::to_string(weights.bits) + " bits";
  if (weights.group == 0) return text;
  const auto group = static_cast<double>(weights.group);
  const double shared = 16.0 + (weights.zero_points ? static_cast<double>(weights.bits) : 0.0);
  return text + printed(" in groups of %lld: %.4g bits a weight with its scales",
                        static_cast<long long>(weights.group),
                        static_cast<double>(weights.bits) + shared / group);
}

}  // namespace

// Checkpoints in fp8 (DeepSeek-V3's) are planned as what training and rollout hold: the weights in
// torch_dtype; their scales are no parameters. Weights of fewer bits no trainer here holds, nor do
// servers take them from one: verl 0.9.1's rollouts know fp8, torchao and ascend
// (workers/rollout/vllm_rollout/vllm_async_server.py), its Megatron asserts that there is no
// quantization_config (models/mcore/config_converter.py).
void check_stored_weights(ObjectReader& root) {
  if (!root.has("quantization_config")) return;
  const std::size_t before = root.problems().size();
  auto stored = root.object("quantization_config");
  std::string method;
  if (stored) stored->optional("quant_method", method);
  if (root.problems().size() != before || method == "fp8") return;
  const PackedWeights weights = packed(*root.find("quantization_config"), method);
  const bool narrow = weights.bits > 0 && weights.bits < 8;
  root.refuse("quantization_config", described(method, weights),
              "fp8, whose weights are planned in torch_dtype",
              narrow ? "no trainer updates such weights, and verl's servers take them from none: "
                       "store them in bf16 (dequantized), and leave the key out"
                     : "to plan the weights in the file's dtype, leave the key out");
}

}  // namespace tessera
