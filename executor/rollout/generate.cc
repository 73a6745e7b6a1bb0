#include "executor/rollout/generate.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <utility>

#include "cost_models/documents/out_of_memory.h"
#include "cost_models/documents/problem.h"
#include "executor/comm/groups.h"
#include "executor/model/ordered_attention.h"
#include "executor/rl/sampling.h"
#include "executor/rollout/paged_model.h"
#include "executor/storage/releasable_memory.h"
#include "executor/weights/parallel_ops.h"

namespace tessera {
namespace {

/// Tokens of a page: cuDNN's kernels are fastest at 64; small pages waste less of small texts.
constexpr std::int64_t kDevicePage = 64, kHostPage = 16;
/// Pages by which the longest text that fits grows: few lengths, few captures.
constexpr std::int64_t kPagesStep = 8;

/// FNV-1a over all response tokens and lengths, 62 bits.
std::int64_t digest_of(std::span<const Sequence> sequences) {
  std::uint64_t digest = 0xcbf29ce484222325ull;
  const auto mix = [&](std::uint64_t x) { digest = (digest ^ x) * 0x100000001b3ull; };
  for (const Sequence& s : sequences) {
    mix(s.response.size());
    for (const std::int32_t token : s.response) mix(static_cast<std::uint32_t>(token));
  }
  return static_cast<std::int64_t>(digest >> 2);
}

void check_agreement(std::span<const Sequence> sequences, const Weights& weights,
                     const ParallelGroups& groups) {
  if (groups.tp == nullptr) return;
  const std::int64_t digest = digest_of(sequences);
  torch::Tensor bounds = torch::tensor({digest, -digest}, torch::kLong).to(weights.device());
  all_reduce_(bounds, groups.tp.get(), ReduceOp::max);
  const torch::Tensor host = bounds.cpu();
  if (host[0].item<std::int64_t>() == -host[1].item<std::int64_t>()) return;
  throw Error(ExitCode::internal,
              "tensor-parallel ranks of one rollout replica drew different tokens");
}

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// What a step needs: the memory of cache_tokens, where that is less than max_sequences of its
/// longest texts need, and never less than one of them needs.
CacheShape shape_for(std::span<const TokenPrompt> prompts, const RolloutOptions& options,
                     std::int64_t page_tokens) {
  std::int64_t samples = 0, longest = 0;
  for (const TokenPrompt& prompt : prompts) {
    samples += prompt.samples;
    longest = std::max(longest, static_cast<std::int64_t>(prompt.tokens.size()));
  }
  longest += options.max_response_tokens;
  // A replica that has none, and joins the passes of others, has a cache all the same.
  const std::int64_t slots = std::clamp<std::int64_t>(samples, 1, options.max_sequences);
  const std::int64_t row_pages = divided_up(longest, page_tokens);
  const std::int64_t most = slots * longest;
  const std::int64_t tokens =
      options.cache_tokens > 0 ? std::min(options.cache_tokens, most) : most;
  return {.pages = std::max(tokens / page_tokens, row_pages),
          .page_tokens = page_tokens,
          .row_pages = divided_up(row_pages, kPagesStep) * kPagesStep,
          .slots = slots};
}

bool holds(const CacheShape& shape, const CacheShape& wanted) {
  return shape.pages >= wanted.pages && shape.row_pages >= wanted.row_pages &&
         shape.slots >= wanted.slots;
}

std::unique_ptr<ReleasableMemory> make_memory(std::int64_t bytes, torch::Device device) {
  return device.is_cuda() ? make_releasable_device_memory(bytes, device.index())
                          : make_releasable_host_memory(bytes);
}

/// torch keeps memory that it does not use: where it is needed it is given back.
template <typename Allocate>
auto with_room(torch::Device device, Allocate allocate) {
  try {
    return allocate();
  } catch (const OutOfMemory&) {
    if (!device.is_cuda()) throw;
    c10::cuda::CUDACachingAllocator::emptyCache();
    return allocate();
  }
}

}  // namespace

struct RolloutEngine::Cache {
  std::unique_ptr<ReleasableMemory> memory;
  torch::Tensor tensor;  // over it
  std::unique_ptr<PagedModel> model;
};

RolloutEngine::RolloutEngine(const Weights& weights, const ParallelGroups& groups, SumOrder order)
    : weights_(weights), groups_(groups), order_(order) {
  if (order == SumOrder::fixed) require_fixed_order(weights);
}
RolloutEngine::~RolloutEngine() = default;

/// The cache of the last call where it is large enough, else a new one; mapped and finite.
RolloutEngine::Cache& RolloutEngine::cache_for(std::span<const TokenPrompt> prompts,
                                               const RolloutOptions& options) {
  const torch::Device device = weights_.device();
  CacheShape wanted = shape_for(prompts, options, device.is_cuda() ? kDevicePage : kHostPage);
  if (cache_ && holds(cache_->model->shape(), wanted)) {
    with_room(device, [&] { cache_->memory->map(); });
    cache_->tensor.zero_();
    return *cache_;
  }
  cache_.reset();
  cache_ = std::make_unique<Cache>();
  const std::int64_t page = PagedDecoder(weights_, groups_).page_bytes(wanted.page_tokens);
  const std::int64_t bytes = page * PagedModel::cache_pages(wanted);
  cache_->memory = with_room(device, [&] { return make_memory(bytes, device); });
  cache_->tensor =
      torch::from_blob(cache_->memory->data(), {bytes / size_of(weights_.dtype)},
                       torch::TensorOptions().dtype(scalar_type(weights_.dtype)).device(device));
  cache_->model = std::make_unique<PagedModel>(weights_, groups_, wanted, cache_->tensor, order_);
  return *cache_;
}

Rollout RolloutEngine::generate(std::int64_t step, std::span<const TokenPrompt> prompts,
                                const RolloutOptions& options, const AfterPass& after_pass) {
  Rollout rollout;
  const auto samples = [](const TokenPrompt& prompt) { return prompt.samples > 0; };
  if (groups_.ep != nullptr || std::any_of(prompts.begin(), prompts.end(), samples)) {
    const torch::NoGradGuard no_grad;
    Cache& cache = cache_for(prompts, options);
    rollout.kv_cache_bytes = cache.memory->bytes();
    cache.model->set_sampling(options.sampling);
    cache.model->note_experts(options.note_experts);
    RolloutOptions limited = options;
    limited.max_sequences = std::min(options.max_sequences, cache.model->shape().slots);
    RequestQueue queue(*cache.model, step, limited, cache.model->shape().pages);
    try {
      rollout.sequences = generate_all(queue, prompts, after_pass);
    } catch (const NoDraw&) {
      cache.model->join_others();  // whose experts need this rank
      throw;
    }
    cache.model->join_others();
    rollout.counts = queue.counts();
    const bool measures = options.measure_order && order_ == SumOrder::fixed;
    if (measures && !std::exchange(cost_known_, true)) {
      rollout.order_cost =
          measure_order_cost(weights_, groups_, cache.model->shape(), cache.tensor);
    }
    cache.memory->release();
  }
  check_agreement(rollout.sequences, weights_, groups_);
  return rollout;
}

}  // namespace tessera
