#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "cost_models/spec/enum_names.h"
#include "executor/certificate/compare_weights.h"

namespace tessera {
namespace {

constexpr auto kFaults = enum_names<TensorFault>({{TensorFault::only_in_a, "only_in_a"},
                                                  {TensorFault::only_in_b, "only_in_b"},
                                                  {TensorFault::shape, "shape"},
                                                  {TensorFault::dtype, "dtype"},
                                                  {TensorFault::values, "values"}});

/// "worker 1 of B, " where a server holds the values.
std::string where_of(const TensorComparison& each) {
  std::string text;
  if (each.worker_a >= 0) text += "worker " + std::to_string(each.worker_a) + " of A, ";
  if (each.worker_b >= 0) text += "worker " + std::to_string(each.worker_b) + " of B, ";
  return text;
}

/// "3 elements differ, " where they were counted.
std::string count_of(const TensorComparison& each) {
  if (each.elements == 0) return "differs, ";
  return std::to_string(each.elements) +
         (each.elements == 1 ? " element differs, " : " elements differ, ");
}

/// Tensors with a difference: several workers may differ in one.
std::int64_t differing_tensors(const WeightComparison& comparison) {
  std::set<std::string> names;
  for (const TensorComparison& each : comparison.differences) names.insert(each.name);
  return std::ssize(names);
}

std::string words_of(const TensorComparison& each) {
  switch (each.fault) {
    case TensorFault::only_in_a:
      return "only in A";
    case TensorFault::only_in_b:
      return "only in B";
    case TensorFault::shape:
    case TensorFault::dtype:
      return each.a + " in A, " + each.b + " in B";
    case TensorFault::values:
      return where_of(each) + count_of(each) + "bytes " + std::to_string(each.bytes.offset) +
             " to " + std::to_string(each.bytes.offset + each.bytes.bytes - 1) + " of " +
             std::to_string(each.tensor_bytes);
  }
  return "";
}

}  // namespace

std::string to_text(const WeightComparison& comparison) {
  std::string text;
  for (const TensorComparison& each : comparison.differences) {
    text += each.name + ": " + words_of(each) + "\n";
  }
  if (!comparison.differences.empty()) {
    std::int64_t all = comparison.tensors;
    for (const TensorComparison& each : comparison.differences) {
      all += each.fault == TensorFault::only_in_a || each.fault == TensorFault::only_in_b ? 1 : 0;
    }
    return text + std::to_string(differing_tensors(comparison)) + " of " + std::to_string(all) +
           (all == 1 ? " tensor differs\n" : " tensors differ\n");
  }
  char size[40];
  std::snprintf(size, sizeof size, "%.4g", static_cast<double>(comparison.bytes) * 1e-9);
  return "equal: " + std::to_string(comparison.tensors) + " tensors, " + size + " GB\n";
}

std::string to_json(const WeightComparison& comparison) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const TensorComparison& each : comparison.differences) {
    nlohmann::ordered_json entry{{"tensor", each.name},
                                 {"fault", std::string(kFaults[each.fault])}};
    if (each.fault == TensorFault::values) {
      entry["first_byte"] = each.bytes.offset;
      entry["bytes"] = each.bytes.bytes;
      if (each.elements > 0) entry["elements"] = each.elements;
      entry["tensor_bytes"] = each.tensor_bytes;
      if (each.worker_a >= 0) entry["worker_a"] = each.worker_a;
      if (each.worker_b >= 0) entry["worker_b"] = each.worker_b;
    } else if (!each.a.empty()) {
      entry["a"] = each.a;
      entry["b"] = each.b;
    }
    list.push_back(std::move(entry));
  }
  return nlohmann::ordered_json{{"equal", comparison.differences.empty()},
                                {"a", comparison.a},
                                {"b", comparison.b},
                                {"tensors", comparison.tensors},
                                {"bytes", comparison.bytes},
                                {"differences", list}}
             .dump(2) +
         "\n";
}

}  // namespace tessera
