// A model's config.json.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/model_spec.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera;
  Problems problems;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto model = parse_model_spec(text, "config.json", problems);
  TESSERA_CHECK(model.has_value() == problems.empty());
  if (model) TESSERA_CHECK(parameter_count(*model) > 0);
  return 0;
}
