// Names of model families, heads and rope scalings, as plan.json writes them.
#include <array>

#include "cost_models/spec/model_spec.h"

namespace tessera {
namespace {

constexpr std::array<std::string_view, 4> kFamilies{"llama", "mistral", "qwen2", "qwen3"};
constexpr std::array<std::string_view, 2> kHeads{"language_model", "value"};
constexpr std::array<std::string_view, 4> kScalings{"none", "linear", "llama3", "yarn"};

}  // namespace

std::string_view name_of(ModelFamily family) { return kFamilies[static_cast<std::size_t>(family)]; }
std::string_view name_of(ModelHead head) { return kHeads[static_cast<std::size_t>(head)]; }
std::string_view name_of(RopeScalingKind kind) { return kScalings[static_cast<std::size_t>(kind)]; }

}  // namespace tessera
