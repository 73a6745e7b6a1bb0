#include "executor/config/run_config_reshard.h"
#include "cost_models/layout/reshard_transport.h"

#include <string>

#include "executor/config/run_config_readers.h"
#include "planner/plan/plan.h"
#include "simulator/timeline/wire_options.h"

namespace tessera {
namespace {

/// Refusals of what cannot be together.
class Clashes {
 public:
  explicit Clashes(ObjectReader& reader) : reader_(reader) {}

  void refuse_if(bool is, const char* key, const char* expected) {
    if (is) reader_.refuse(key, expected);
  }
  /// Refuses options that only a minimal reshard by the executor has.
  void refuse_options(const ReshardConfig& reshard, const char* expected) {
    const bool any = reshard.wire || reshard.verify || reshard.incremental || reshard.overlap;
    refuse_if(any,
              reshard.wire          ? "wire"
              : reshard.verify      ? "verify"
              : reshard.incremental ? "incremental"
                                    : "overlap",
              expected);
  }
  /// Ways of moving.
  void refuse_paths(const char* expected) {
    for (const char* key : {"transport", "bucket_bytes"}) {
      refuse_if(reader_.find(key) != nullptr, key, expected);
    }
  }

 private:
  ObjectReader& reader_;
};

/// A plan that keeps the rollout's memory fits without it, too.
bool read_unmap(ObjectReader& reader, const PlannedReshard& planned) {
  std::string storage = planned.keep ? "keep" : "unmap";
  reader.optional("storage", storage);
  if (storage != "unmap" && (storage != "keep" || !planned.keep)) {
    reader.refuse("storage", planned.keep ? "keep or unmap" : "unmap, as the plan's memory needs");
  }
  return storage == "unmap";
}

void read_path(ObjectReader& reader, const PlannedReshard& planned, ReshardConfig& reshard) {
  reader.optional("transport", reshard.transport, kTransports);
  if (planned.transport != ReshardTransport::automatic && reshard.transport != planned.transport) {
    reader.refuse("transport", std::string(name_of(planned.transport)) + ", the plan's",
                  "--reshard-transport replaces the plan's");
  }
  reader.optional("bucket_bytes", reshard.bucket_bytes, kNotNegative);
  if (planned.bucket_bytes > 0 && reshard.bucket_bytes != planned.bucket_bytes) {
    reader.refuse("bucket_bytes", std::to_string(planned.bucket_bytes) + ", the plan's");
  }
}

void read_options(ObjectReader& reader, ReshardConfig& reshard) {
  read_wire(reader, reshard.wire, reshard.wire_from_step);
  reader.optional("verify", reshard.verify);
  reader.optional("incremental", reshard.incremental);
  reader.optional("overlap", reshard.overlap);
  reader.optional("preload", reshard.preload);
  if (reshard.preload && !reshard.unmap) {
    reader.refuse("preload", "storage unmap: what is kept needs no mapping");
  }
}

/// Refuses options that a reshard cannot have at once.
void refuse_combinations(ObjectReader& reader, const Plan& plan, const PlannedReshard& planned,
                         const ReshardConfig& reshard) {
  Clashes clashes(reader);
  if (planned.mode == ReshardMode::full) {
    clashes.refuse_options(reshard, "a minimal reshard: whole tensors are gathered as they are");
    return clashes.refuse_paths("a minimal reshard: whole tensors are gathered by messages");
  }
  const RolePlan* actor = plan.find(planned.from);
  if (actor != nullptr && actor->offload.parameters) {
    clashes.refuse_options(reshard, "an actor whose parameters stay on the device");
    clashes.refuse_paths("an actor whose parameters stay on the device");
  }
  using enum ReshardTransport;
  const ReshardTransport by = reshard.transport;
  const bool gathers = by == all_gather || by == window;
  const bool reads = by == automatic || by == copy_engine || by == host;
  clashes.refuse_if(reshard.wire && actor != nullptr && actor->dtypes.param != DType::fp32, "wire",
                    "an actor with fp32 weights: others travel as they are");
  clashes.refuse_if(reader.find("wire_from_step") != nullptr && !reshard.wire, "wire_from_step",
                    "no 'wire_from_step' without 'wire'");
  clashes.refuse_if(reshard.wire && gathers, "wire", "a transport that does not gather");
  clashes.refuse_if(reshard.incremental && gathers, "incremental",
                    "a transport that does not gather");
  clashes.refuse_if(reshard.incremental && reshard.wire, "incremental",
                    "no 'wire': what did not change is found in the weights as they are");
  clashes.refuse_if(reshard.incremental && reshard.unmap, "incremental",
                    "storage keep: memory that was given back has lost what did not change");
  clashes.refuse_if(reshard.overlap && (reshard.wire || reshard.incremental || reshard.verify),
                    "overlap",
                    "none of 'wire', 'incremental', 'verify', which need finished weights");
  clashes.refuse_if(reshard.overlap && plan.world_size() > plan.cluster.gpus_per_node, "overlap",
                    "ranks of one host, which read one another's memory");
  clashes.refuse_if(reshard.overlap && !reads, "overlap",
                    "transport automatic, copy_engine or host, which read peers' memory");
}

}  // namespace

ReshardConfig read_reshard(ObjectReader& root, const Plan& plan) {
  if (plan.reshard.empty()) {
    if (root.find("reshard") != nullptr) {
      root.refuse("reshard", "no 'reshard'", "the plan moves no weights");
    }
    return {};
  }
  const PlannedReshard& planned = plan.reshard.front();
  ReshardConfig reshard{
      .transport = planned.transport, .bucket_bytes = planned.bucket_bytes, .unmap = !planned.keep};
  auto reader = root.object("reshard", false);
  if (!reader) return reshard;
  fixed(*reader, "mode", std::string(name_of(planned.mode)), "reshard.mode");
  reshard.unmap = read_unmap(*reader, planned);
  read_path(*reader, planned, reshard);
  read_options(*reader, reshard);
  refuse_combinations(*reader, plan, planned, reshard);
  reader->refuse_unknown_keys();
  return reshard;
}

}  // namespace tessera
