#include "executor/adapters/adapter_reshard.h"

#include "cost_models/adapters.h"
#include "cost_models/layout/model_tensors.h"

namespace tessera {
namespace {

HeldWeights held(const Weights* adapters) {
  if (adapters == nullptr) return {};
  return {.places = &adapters->arena, .memory = adapters->storage.const_data_ptr()};
}

}  // namespace

AdapterReshard::AdapterReshard(const ParameterTable& table, const RankMap& training,
                               const RankMap& rollout, DType dtype, int rank,
                               const ReshardOptions& options)
    : reshard_(table, adapter_map(training), adapter_map(rollout), dtype, ReshardMode::minimal,
               rank, options),
      certificate_(make_certificate(
          model_tensors(table, adapter_map(training), adapter_map(rollout), dtype), rank)) {}

ReshardReport AdapterReshard::run(Communicator& world, const Weights* training,
                                  Weights* rollout) const {
  const void* const source = training != nullptr ? training->storage.const_data_ptr() : nullptr;
  void* const destination = rollout != nullptr ? rollout->storage.mutable_data_ptr() : nullptr;
  return reshard_.run(world, source, destination, /*staging=*/nullptr);
}

CertificateReport AdapterReshard::check(const Weights* training, const Weights* rollout,
                                        MemoryOps& ops, Communicator& host) const {
  return check_weights(certificate_, held(training), held(rollout), std::nullopt, ops, host);
}

}  // namespace tessera
