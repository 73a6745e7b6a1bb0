// The way of a model's adapters from training to generation: by the layout algebra no more bytes
// than a rank lacks, and the proof that they have arrived.
//
// The weights that they stand beside have gone once and stay. Made alike on every rank of the run
// from metadata; calls are collective over the run's ranks. Owned by the Worker; one thread.
#pragma once

#include "executor/certificate/certificate.h"
#include "executor/reshard/reshard.h"
#include "executor/weights/weights.h"

namespace tessera {

class AdapterReshard {
 public:
  /// `training` and `rollout` are the maps of the roles; `table` is adapter_table's.
  AdapterReshard(const ParameterTable& table, const RankMap& training, const RankMap& rollout,
                 DType dtype, int rank, const ReshardOptions& options);

  /// Either may be nullptr, where the rank has no such part.
  ReshardReport run(Communicator& world, const Weights* training, Weights* rollout) const;

  /// Digests of what is trained against what the rollout holds.
  CertificateReport check(const Weights* training, const Weights* rollout, MemoryOps& ops,
                          Communicator& host) const;
  const WeightCertificate& certificate() const { return certificate_; }
  const ReshardPlan& plan() const { return reshard_.plan(); }

 private:
  Reshard reshard_;
  WeightCertificate certificate_;
};

}  // namespace tessera
