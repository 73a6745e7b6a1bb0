#include "cost_models/spec/enum_names.h"
#include "simulator/reshard/methods.h"

namespace tessera {
namespace {

constexpr auto kNames = enum_names<ReshardMethod>({{ReshardMethod::gather_all, "gather_all"},
                                                   {ReshardMethod::gather_model, "gather_model"},
                                                   {ReshardMethod::micro_dp, "micro_dp"},
                                                   {ReshardMethod::full_tensor, "full_tensor"},
                                                   {ReshardMethod::per_tensor, "per_tensor"},
                                                   {ReshardMethod::verl_buckets, "verl_buckets"},
                                                   {ReshardMethod::nemo_buckets, "nemo_buckets"},
                                                   {ReshardMethod::broadcast, "broadcast"},
                                                   {ReshardMethod::copy_engine, "copy_engine"},
                                                   {ReshardMethod::window, "window"},
                                                   {ReshardMethod::send_recv, "send_recv"}});
static_assert(kNames.pairs.size() == kReshardMethods.size());

constexpr auto kMeanings = enum_names<ReshardMethod>(
    {{ReshardMethod::gather_all,
      "DeepSpeed-Chat: trained by ZeRO-3 over all GPUs, each gathers the model"},
     {ReshardMethod::gather_model,
      "HybridFlow-V: each gathers the model in its tensor x pipeline group"},
     {ReshardMethod::micro_dp, "HybridFlow: strided groups, micro data-parallel gathers"},
     {ReshardMethod::full_tensor, "FSDP's full_tensor of fp32 shards, tensor by tensor"},
     {ReshardMethod::per_tensor, "gathered and loaded tensor by tensor, in the weights' type"},
     {ReshardMethod::verl_buckets,
      "verl: gathered whole, packed into a bucket, opened by CUDA IPC"},
     {ReshardMethod::nemo_buckets, "NeMo RL: gathered whole into the halves of a buffer"},
     {ReshardMethod::broadcast, "verl's checkpoint engine: to GPUs of the rollout's own"},
     {ReshardMethod::copy_engine, "Tessera: what is missing, read by copy engines"},
     {ReshardMethod::window, "Tessera: what is missing, through NCCL's windows"},
     {ReshardMethod::send_recv, "Tessera: what is missing, in messages"}});

constexpr auto kOverlaps =
    enum_names<ReshardMethod>({{ReshardMethod::gather_all, "nothing"},
                               {ReshardMethod::gather_model, "nothing"},
                               {ReshardMethod::micro_dp, "nothing"},
                               {ReshardMethod::full_tensor, "nothing"},
                               {ReshardMethod::per_tensor, "nothing"},
                               {ReshardMethod::verl_buckets, "nothing"},
                               {ReshardMethod::nemo_buckets, "loading beside the next gather"},
                               {ReshardMethod::broadcast, "gathering beside the broadcast"},
                               {ReshardMethod::copy_engine, "any kernels, the optimizer's too"},
                               {ReshardMethod::window, "any kernels"},
                               {ReshardMethod::send_recv, "nothing"}});

}  // namespace

std::string_view name_of(ReshardMethod method) { return kNames[method]; }
std::string_view meaning_of(ReshardMethod method) { return kMeanings[method]; }
std::string_view overlap_of(ReshardMethod method) { return kOverlaps[method]; }

}  // namespace tessera
