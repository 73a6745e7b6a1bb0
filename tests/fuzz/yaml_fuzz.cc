// Cluster and workload YAML: a value or problems, never both, never neither.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cost_models/documents/check.h"
#include "cost_models/documents/problem.h"
#include "cost_models/spec/cluster_spec.h"
#include "cost_models/spec/workload.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tessera;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Problems cluster, workload;
  TESSERA_CHECK(parse_cluster_spec(text, "cluster", cluster).has_value() == cluster.empty());
  TESSERA_CHECK(parse_workload(text, "workload", workload).has_value() == workload.empty());
  return 0;
}
