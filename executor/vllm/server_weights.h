// What the workers of one server hold, beside a certificate: digests by block, and by the parts of
// a block that differs.
//
// Owned by who speaks for the server; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "executor/certificate/block_digests.h"
#include "executor/certificate/certificate.h"
#include "executor/vllm/served_certificate.h"
#include "executor/vllm/server.h"

namespace tessera {

class ServerWeights {
 public:
  /// `certificates`: of each worker's rank, by tp_rank, alike but for what they need.
  ServerWeights(const ParameterTable& table, std::vector<WeightCertificate> certificates);

  /// Blocks of the certificate that worker `tp_rank` must hold.
  std::span<const int> needed(int tp_rank) const { return certificate(tp_rank).needed; }
  const VllmPart& part(int tp_rank, int tensor) const {
    return parts_[static_cast<std::size_t>(tp_rank)][static_cast<std::size_t>(tensor)];
  }
  /// By worker the digests of what it needs. `told`: whether the server knows its rectangles from a
  /// call before.
  std::vector<std::vector<std::uint64_t>> digests(VllmServer& server, double timeout_s);
  /// A server that started anew knows nothing.
  void forget() { told_ = false; }
  /// Of any parts of blocks that the worker holds.
  std::vector<std::uint64_t> digests_of(VllmServer& server, int tp_rank,
                                        std::span<const CertificateBlock> blocks,
                                        double timeout_s) const;

 private:
  const WeightCertificate& certificate(int tp_rank) const {
    return certificates_[static_cast<std::size_t>(tp_rank)];
  }

  std::vector<WeightCertificate> certificates_;
  std::vector<std::vector<VllmPart>> parts_;
  bool told_ = false;
};

}  // namespace tessera
