#include "executor/vllm/server_weights.h"

#include <utility>

namespace tessera {

ServerWeights::ServerWeights(const ParameterTable& table,
                             std::vector<WeightCertificate> certificates)
    : certificates_(std::move(certificates)) {
  const int tp = static_cast<int>(certificates_.size());
  for (int tp_rank = 0; tp_rank < tp; ++tp_rank) parts_.push_back(vllm_parts(table, tp, tp_rank));
}

std::vector<std::vector<std::uint64_t>> ServerWeights::digests(VllmServer& server,
                                                               double timeout_s) {
  if (!told_) {
    std::vector<std::vector<ServedRectangle>> lists(certificates_.size());
    for (std::size_t worker = 0; worker < certificates_.size(); ++worker) {
      const WeightCertificate& each = certificates_[worker];
      for (const int block : each.needed) {
        lists[worker].push_back(
            rectangle_of(each, parts_[worker], each.blocks[static_cast<std::size_t>(block)]));
      }
    }
    server.call_workers("tessera_keep_rectangles", {rectangles_json(lists)}, timeout_s);
    told_ = true;
  }
  std::vector<std::vector<std::uint64_t>> digests;
  for (const std::string& reply : server.call_workers("tessera_kept_digests", {}, timeout_s)) {
    digests.push_back(digests_in(reply, certificates_.at(digests.size()).needed.size()));
  }
  digests.resize(certificates_.size());
  return digests;
}

std::vector<std::uint64_t> ServerWeights::digests_of(VllmServer& server, int tp_rank,
                                                     std::span<const CertificateBlock> blocks,
                                                     double timeout_s) const {
  const auto worker = static_cast<std::size_t>(tp_rank);
  std::vector<std::vector<ServedRectangle>> lists(certificates_.size());
  for (const CertificateBlock& block : blocks) {
    lists[worker].push_back(rectangle_of(certificates_[worker], parts_[worker], block));
  }
  const WorkerReplies replies =
      server.call_workers("tessera_rectangle_digests", {rectangles_json(lists)}, timeout_s);
  return digests_in(replies.at(worker), blocks.size());
}

}  // namespace tessera
