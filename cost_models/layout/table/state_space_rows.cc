// State-space mixers in the parameter table.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "cost_models/layout/table/rows.h"

namespace tessera {

// Cut by groups, each with its heads: gate and input by heads, the groups' two vectors by groups,
// steps by heads (Megatron-LM's MambaMixer).
void Rows::state_space(const StateSpaceSpec& mixer) {
  const std::string name(names_.attention);
  const std::int64_t h = model_.hidden, inner = mixer.inner(), vectors = mixer.vectors();
  const auto by_groups = [&](Parameter row, int dim = 0) {
    add(cut(std::move(row), dim, SplitUnit::linear_heads, mixer.groups));
  };
  struct Part {
    const char* name;
    std::int64_t size;
  };
  const auto sides = [&](const std::string& tensor, const std::vector<Part>& parts,
                         const std::vector<std::int64_t>& rest, bool decayed) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Parameter row = vector(name + tensor, parts[i].size);
      row.shape.insert(row.shape.end(), rest.begin(), rest.end());
      row.decayed = decayed;
      row.part = static_cast<int>(i);
      by_groups(sliced(std::move(row), parts[i].name, 0, offset));
      offset += parts[i].size;
    }
  };
  const std::vector<Part> mixed{{"x", inner}, {"b", vectors}, {"c", vectors}};
  by_groups(vector(name + "dt_bias", mixer.heads));
  by_groups(vector(name + "A_log", mixer.heads));
  by_groups(vector(name + "D", mixer.heads));
  sides("conv1d.weight", mixed, {1, mixer.kernel}, true);
  if (mixer.conv_bias) sides("conv1d.bias", mixed, {}, false);
  sides("in_proj.weight",
        {{"z", inner}, {"x", inner}, {"b", vectors}, {"c", vectors}, {"dt", mixer.heads}}, {h},
        true);
  by_groups(vector(name + "norm.weight", inner));
  by_groups(matrix(name + "out_proj.weight", h, inner), 1);
}

}  // namespace tessera
