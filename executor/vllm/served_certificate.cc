#include "executor/vllm/served_certificate.h"

#include <nlohmann/json.hpp>

#include "cost_models/documents/problem.h"
#include "cost_models/layout/sharding.h"

namespace tessera {
namespace {

using nlohmann::json;

const VllmPart& part_of(std::span<const VllmPart> parts, int tensor) {
  return parts[static_cast<std::size_t>(tensor)];
}

/// The element's row-major place in the box.
std::int64_t place_in(const Box& box, const Box& element) {
  std::int64_t place = 0;
  for (int dim = 0; dim < box.rank; ++dim) {
    const auto d = static_cast<std::size_t>(dim);
    place = place * box.dims[d].size() + element.dims[d].lo - box.dims[d].lo;
  }
  return place;
}

}  // namespace

std::vector<ShardedTensor> served_tensors(const ParameterTable& table, const RankMap* training,
                                          DType dtype, std::span<const std::vector<int>> ranks) {
  std::vector<ShardedTensor> tensors;
  for (const Parameter& row : table.rows) {
    ShardedTensor tensor{.name = row.name,
                         .shape = row.shape,
                         .element_bytes = Bytes{size_of(dtype)},
                         .outer_dim = std::max(0, row.split_dim),
                         .source = {},
                         .destination = {}};
    if (training == nullptr) tensor.source.push_back({0, whole(row.shape)});
    for (std::size_t i = 0; training != nullptr && i < training->ranks.size(); ++i) {
      const auto box = stored_box(row, training->layout, training->coords[i]);
      if (box) tensor.source.push_back({training->ranks[i], *box});
    }
    tensors.push_back(std::move(tensor));
  }
  for (const std::vector<int>& server : ranks) {
    const int tp = static_cast<int>(server.size());
    for (int tp_rank = 0; tp_rank < tp; ++tp_rank) {
      for (const VllmPart& part : vllm_parts(table, tp, tp_rank)) {
        if (volume(part.box) == 0) continue;
        tensors[static_cast<std::size_t>(part.row)].destination.push_back(
            {server[static_cast<std::size_t>(tp_rank)], part.box});
      }
    }
  }
  return tensors;
}

ServedRectangle rectangle_of(const WeightCertificate& certificate, std::span<const VllmPart> parts,
                             const CertificateBlock& block) {
  const VllmPart& part = part_of(parts, block.tensor);
  const auto cut = static_cast<std::size_t>(part.dim);
  const std::int64_t first = part.at + block.box.dims[cut].lo - part.box.dims[cut].lo;
  const Interval along{first, first + block.box.dims[cut].size()};
  const bool vector = block.box.rank < 2;
  const Interval other = vector ? Interval{0, 1} : block.box.dims[1 - cut];
  const std::int64_t pitch =
      vector ? 1 : certificate.shapes[static_cast<std::size_t>(block.tensor)][1];
  return {.parameter = part.parameter,
          .rows = cut == 0 ? along : other,
          .columns = cut == 0 ? other : along,
          .tensor = certificate.names[static_cast<std::size_t>(block.tensor)],
          .corner = block.box.dims[0].lo * pitch + (vector ? 0 : block.box.dims[1].lo),
          .pitch = pitch};
}

std::string rectangles_json(std::span<const std::vector<ServedRectangle>> workers) {
  json lists = json::array();
  for (const std::vector<ServedRectangle>& worker : workers) {
    json list = json::array();
    for (const ServedRectangle& each : worker) {
      list.push_back({each.parameter, each.rows.lo, each.rows.hi, each.columns.lo, each.columns.hi,
                      each.tensor, each.corner, each.pitch});
    }
    lists.push_back(std::move(list));
  }
  return lists.dump();
}

std::vector<std::uint64_t> digests_in(const std::string& reply, std::size_t count) {
  std::vector<std::uint64_t> digests;
  try {
    const json told = json::parse(reply);
    for (const json& word : told.at("digests")) {
      digests.push_back(std::stoull(word.get<std::string>()));
    }
  } catch (const std::exception&) {
    digests.clear();
  }
  if (digests.size() == count) return digests;
  throw Error(ExitCode::check_failed, "a worker of vLLM told " + std::to_string(digests.size()) +
                                          " digests, expected " + std::to_string(count));
}

ByteRange bytes_between(const VllmPart& part, const Box& first, const Box& last,
                        std::int64_t element_bytes) {
  const std::int64_t from = place_in(part.box, first), to = place_in(part.box, last);
  return {std::min(from, to) * element_bytes, (std::abs(to - from) + 1) * element_bytes};
}

}  // namespace tessera
