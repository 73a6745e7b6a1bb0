#include "cost_models/layout/parameter_table.h"

#include <algorithm>

#include "cost_models/layout/table/rows.h"

namespace tessera {

std::int64_t Parameter::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t side : shape) product *= side;
  return product;
}

std::optional<int> ParameterTable::find(const std::string& name) const {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

std::int64_t ParameterTable::elements() const {
  std::int64_t sum = 0;
  for (const Parameter& row : rows) sum += row.elements();
  return sum;
}

ParameterTable parameter_table(const ModelSpec& model) {
  Rows rows(model);
  rows.embedding();
  for (std::int64_t layer = 0; layer < model.layers; ++layer) rows.layer(layer);
  rows.head();
  for (std::int64_t layer = 0; layer < held_mtp_layers(model); ++layer) {
    rows.prediction_layer(layer);
  }
  return {.model = model, .rows = rows.take()};
}

std::map<std::string, std::vector<std::int64_t>> checkpoint_tensors(const ParameterTable& table) {
  std::map<std::string, std::vector<std::int64_t>> tensors;
  for (const Parameter& row : table.rows) {
    if (!row.slice) {
      tensors[row.name] = row.shape;
      continue;
    }
    std::vector<std::int64_t>& shape = tensors[row.slice->tensor];
    const auto dim = static_cast<size_t>(row.slice->dim);
    const std::int64_t end = row.slice->offset + row.shape[dim];
    const std::int64_t known = shape.empty() ? 0 : shape[dim];
    shape = row.shape;
    shape[dim] = std::max(known, end);
  }
  return tensors;
}

}  // namespace tessera
