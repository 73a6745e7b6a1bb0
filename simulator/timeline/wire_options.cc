#include "simulator/timeline/wire_options.h"

#include <array>
#include <filesystem>
#include <system_error>

#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_yaml.h"
#include "planner/plan/plan.h"

namespace tessera {
namespace {

constexpr std::array kWires{DType::bf16, DType::fp16};

}  // namespace

void read_wire(ObjectReader& reshard, std::optional<DType>& wire, std::int64_t& from_step) {
  if (reshard.find("wire") != nullptr) {
    DType type = DType::bf16;
    reshard.optional("wire", type, kWires);
    wire = type;
  }
  reshard.optional("wire_from_step", from_step, kPositive);
}

WireOptions read_wire_options(const std::filesystem::path& run, Problems& problems) {
  WireOptions options;
  std::error_code error;  // what cannot be looked at is not there
  const bool folder = std::filesystem::is_directory(run, error);
  const std::filesystem::path file = (folder ? run : run.parent_path()) / "run.yaml";
  if (!std::filesystem::is_regular_file(file, error)) return options;
  const auto text = read_text_file(file, std::size_t{1} << 20, problems);
  if (!text) return options;
  const auto document = parse_yaml(*text, file.string(), problems);
  if (!document) return options;
  ObjectReader root(*document, problems);
  auto reshard = root.object("reshard", false);
  if (!reshard) return options;
  read_wire(*reshard, options.wire, options.wire_from_step);
  reshard->optional("incremental", options.incremental);
  return options;
}

std::int64_t reshard_bytes(const Plan& plan, const PlannedReshard& pair, const WireOptions& options,
                           std::int64_t step) {
  const RolePlan* const source = plan.find(pair.from);
  if (source == nullptr || !options.wire || step < options.wire_from_step) {
    return pair.bytes_received;
  }
  return pair.bytes_received / size_of(source->dtypes.wire) * size_of(*options.wire);
}

}  // namespace tessera
