#include "simulator/remote/mirror_state.h"

#include <system_error>

#include "cost_models/documents/object_reader.h"
#include "cost_models/documents/problem.h"
#include "cost_models/documents/strict_json.h"
#include "simulator/remote/run_listing.h"

namespace tessera {
namespace {

constexpr std::int64_t kVersion = 1, kOldNs = 30'000'000'000;
constexpr std::string_view kFile = "mirror.json";
constexpr std::size_t kMostBytes = std::size_t{1} << 16;

}  // namespace

bool MirrorState::is_old(std::int64_t now_ns) const {
  return !fault.empty() || now_ns - reached_ns > kOldNs;
}

std::optional<MirrorState> read_mirror_state(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path file = folder / kFile;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  Problems problems;
  const auto text = read_text_file(file, kMostBytes, problems);
  const auto document = text ? parse_json(*text, file.string(), problems) : std::nullopt;
  if (!document) return std::nullopt;
  MirrorState state;
  ObjectReader root(*document, problems);
  std::int64_t version = 0;
  std::string name;
  root.required("tessera_mirror", version, Whole{.least = kVersion, .most = kVersion});
  root.required("of", name);
  root.required("as_of_ns", state.as_of_ns);
  root.required("reached_ns", state.reached_ns);
  root.optional("fault", state.fault);
  root.list("gone", state.gone, {}, false);
  for (ObjectReader& each : root.objects("files")) {
    RunFile copied;
    each.required("name", copied.name);
    each.required("size", copied.size);
    each.required("modified_ns", copied.modified_ns);
    each.required("id", copied.id);
    state.files.push_back(std::move(copied));
  }
  const auto remote = remote_name_from(name);
  if (!problems.empty() || !remote) return std::nullopt;
  state.name = *remote;
  return state;
}

void write_mirror_state(const MirrorState& state, const std::filesystem::path& folder) {
  Node root = map_node();
  add(root, "tessera_mirror", node_of(kVersion));
  add(root, "of", node_of(to_text(state.name)));
  add(root, "as_of_ns", node_of(state.as_of_ns));
  add(root, "reached_ns", node_of(state.reached_ns));
  add(root, "fault", node_of(state.fault));
  if (!state.gone.empty()) add(root, "gone", node_of(state.gone));
  add(root, "files", node_of(state.files));
  write_text_file(folder / kFile, json_text(root));
}

}  // namespace tessera
