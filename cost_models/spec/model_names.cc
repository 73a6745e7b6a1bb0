// Names of what a ModelSpec enumerates, as plan.json writes them.
#include <array>

#include "cost_models/spec/model_spec.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, kEveryFamily.size()> kFamilies{
    "llama",       "mistral",     "qwen2", "qwen3",   "mixtral",  "qwen2_moe", "qwen3_moe",
    "deepseek_v2", "deepseek_v3", "gpt2",  "gpt_oss", "nemotron", "qwen2_5_vl"};
constexpr std::array<std::string_view, 2> kHeads{"language_model", "value"};
constexpr std::array<std::string_view, 4> kScalings{"none", "linear", "llama3", "yarn"};
constexpr std::array<std::string_view, kEveryNorm.size()> kNorms{"rms", "layer_norm",
                                                                 "layer_norm_1p"};
constexpr std::array<std::string_view, kEveryMlp.size()> kMlps{"swiglu", "clamped_swiglu", "gelu",
                                                               "squared_relu"};
constexpr std::array<std::string_view, 2> kScores{"softmax", "sigmoid"};

}  // namespace

std::string_view name_of(ModelFamily family) { return kFamilies[static_cast<std::size_t>(family)]; }
std::string_view name_of(ModelHead head) { return kHeads[static_cast<std::size_t>(head)]; }
std::string_view name_of(RopeScalingKind kind) { return kScalings[static_cast<std::size_t>(kind)]; }
std::string_view name_of(NormKind kind) { return kNorms[static_cast<std::size_t>(kind)]; }
std::string_view name_of(MlpKind kind) { return kMlps[static_cast<std::size_t>(kind)]; }
std::string_view name_of(RouterScore score) { return kScores[static_cast<std::size_t>(score)]; }

}  // namespace tessera
