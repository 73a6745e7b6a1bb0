#include "cost_models/spec/families.h"

#include <iterator>

#include "cost_models/spec/enum_names.h"
#include "cost_models/spec/families/further_text_rows.h"
#include "cost_models/spec/families/hybrid_rows.h"
#include "cost_models/spec/families/text_rows.h"

namespace tessera {
namespace {

constexpr std::size_t kText = std::size(kTextFamilies);
constexpr std::size_t kTexts = kText + std::size(kFurtherTextFamilies);
constexpr std::size_t kRows = kTexts + std::size(kHybridFamilies);

constexpr const FamilyFacts& row(std::size_t i) {
  if (i < kText) return kTextFamilies[i];
  return i < kTexts ? kFurtherTextFamilies[i - kText] : kHybridFamilies[i - kTexts];
}

static_assert(has_enumerators<ModelFamily, kRows>(), "a ModelFamily has no row");
static_assert(kRows == kEveryFamily.size());

constexpr bool rows_stand_in_their_order() {
  for (std::size_t i = 0; i < kEveryFamily.size(); ++i) {
    if (row(i).family != kEveryFamily[i] || row(i).name.empty()) return false;
  }
  return true;
}
static_assert(rows_stand_in_their_order(), "a row is not in its enumerator's place");

}  // namespace

std::string_view name_of(ModelFamily family) { return facts_of(family).name; }

const FamilyFacts& facts_of(ModelFamily family) { return row(static_cast<std::size_t>(family)); }

const FamilyFacts* facts_of(std::string_view model_type) {
  for (std::size_t i = 0; i < kRows; ++i) {
    const FamilyFacts& facts = row(i);
    if (facts.name == model_type || (!facts.alias.empty() && facts.alias == model_type)) {
      return &facts;
    }
  }
  return nullptr;
}

}  // namespace tessera
