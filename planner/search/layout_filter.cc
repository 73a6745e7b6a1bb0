#include "planner/search/layout_filter.h"

#include <algorithm>

#include "planner/request/settings_of_candidate.h"

namespace tessera {
namespace {

bool has(const Candidate& layout, const FieldValues& values) {
  return std::all_of(values.begin(), values.end(), [&](const auto& entry) {
    return value_of(layout, entry.first) == entry.second;
  });
}

}  // namespace

FieldValues values_of(const Candidate& candidate, std::span<const Field> fields) {
  FieldValues values;
  for (const Field field : fields) values[field] = value_of(candidate, field);
  return values;
}

bool LayoutFilter::operator()(const Candidate& layout) const {
  return has(layout, required) &&
         std::none_of(excluded.begin(), excluded.end(),
                      [&](const FieldValues& values) { return has(layout, values); });
}

}  // namespace tessera
