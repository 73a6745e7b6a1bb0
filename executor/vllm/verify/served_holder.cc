#include <set>
#include <utility>

#include "executor/vllm/served_certificate.h"
#include "executor/vllm/verify/weight_holder.h"

namespace tessera {
namespace {

using Parts = std::vector<VllmPart>;  // by row

/// The shape of every parameter of a worker, by name, as its parts and its padding fill it.
std::map<std::string, std::vector<std::int64_t>> shapes_of(const Parts& parts) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const VllmPart& part : parts) {
    std::vector<std::int64_t>& shape = shapes[part.parameter];
    std::vector<std::int64_t> own;
    for (int dim = 0; dim < part.box.rank; ++dim) {
      own.push_back(part.box.dims[static_cast<std::size_t>(dim)].size());
    }
    own.at(0) += part.zeros;
    if (shape.empty()) {
      shape = std::move(own);
    } else {
      shape[0] += own[0];
    }
  }
  return shapes;
}

/// What one worker holds of a row, beside what the workers before it have told.
void add_worker(HeldTensor& tensor, const VllmPart& part, std::size_t worker,
                const std::map<std::string, ServedParameter>& held,
                const std::vector<std::int64_t>& expected) {
  tensor.boxes.push_back(part.box);
  const auto found = held.find(part.parameter);
  if (found == held.end()) {
    tensor.held = false;
    return;
  }
  if (found->second.shape != expected && tensor.fits) {
    tensor.fits = false;
    tensor.shape = part.parameter + " " + in_words(found->second.shape) + " instead of " +
                   in_words(expected) + " on worker " + std::to_string(worker);
  }
  tensor.type = found->second.type;
}

}  // namespace

WeightHolder served_holder(VllmServer& server, const ServerDescription& description,
                           const ParameterTable& table, double timeout_s) {
  WeightHolder made{
      .name = server.address(), .serves = true, .tensors = {}, .others = {}, .digests = {}};
  WeightCertificate names;  // what rectangles are named by
  for (const Parameter& row : table.rows) {
    names.names.push_back(row.name);
    names.shapes.push_back(row.shape);
    made.tensors.push_back(
        {.held = true, .fits = true, .shape = in_words(row.shape), .type = {}, .boxes = {}});
  }
  std::vector<Parts> workers;
  std::set<std::string> others;
  for (std::size_t worker = 0; worker < description.parameters.size(); ++worker) {
    const auto& held = description.parameters[worker];
    workers.push_back(vllm_parts(table, description.layout.tp, static_cast<int>(worker)));
    const auto shapes = shapes_of(workers.back());
    for (const VllmPart& part : workers.back()) {
      add_worker(made.tensors[static_cast<std::size_t>(part.row)], part, worker, held,
                 shapes.at(part.parameter));
    }
    for (const auto& [name, parameter] : held) {
      if (!shapes.contains(name)) others.insert(name);
    }
  }
  made.others.assign(others.begin(), others.end());
  made.digests = [&server, timeout_s, names = std::move(names),
                  workers = std::move(workers)](std::span<const HeldPiece> pieces) {
    std::vector<std::vector<ServedRectangle>> lists(workers.size());
    for (const HeldPiece& piece : pieces) {
      const auto worker = static_cast<std::size_t>(piece.worker);
      lists[worker].push_back(
          rectangle_of(names, workers[worker], {.tensor = piece.row, .box = piece.box}));
    }
    const WorkerReplies replies =
        server.call_workers("tessera_rectangle_digests", {rectangles_json(lists)}, timeout_s);
    std::vector<std::vector<std::uint64_t>> told;
    for (std::size_t worker = 0; worker < lists.size(); ++worker) {
      told.push_back(digests_in(replies.at(worker), lists[worker].size()));
    }
    std::vector<std::uint64_t> digests;
    std::vector<std::size_t> next(workers.size());
    for (const HeldPiece& piece : pieces) {
      const auto worker = static_cast<std::size_t>(piece.worker);
      digests.push_back(told[worker][next[worker]++]);
    }
    return digests;
  };
  return made;
}

}  // namespace tessera
