// The decoder behind generation's interface (token_model.h): passes become batches on the device,
// and drawn tokens come back one pass late.
//
// On a GPU a pass that only decodes is padded to one of few numbers of rows and replayed as a CUDA
// graph: the first pass of a size runs and is then captured. Weights and the cache keep their
// addresses as long as the graphs live. Calls are collective over the tensor-parallel group, and
// passes over the expert-parallel one: its ranks agree on each pass, and where all only decode they
// pad it alike and replay it together. Experts whose products are not grouped ones have messages
// and products of sizes that the host waits for: without graphs there. Owned by one rank's rollout;
// one thread.
#pragma once

#include "executor/tensor/torch.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "executor/model/paged_decoder.h"
#include "executor/rollout/pass_tensors.h"
#include "executor/rollout/sample_rows.h"
#include "executor/rollout/token_model.h"

namespace tessera {

class CapturedGraph;

/// The shape of a cache: texts of at most row_pages pages, `slots` of them at a time.
struct CacheShape {
  std::int64_t pages = 0, page_tokens = 64, row_pages = 0, slots = 0;
  auto operator<=>(const CacheShape&) const = default;
};

class PagedModel : public TokenModel {
 public:
  /// Keeps references. `memory` as PagedDecoder::place takes it; the model adds one page to the
  /// shape's for rows that pad a batch: it must hold cache_pages(shape).
  PagedModel(const Weights& weights, const ParallelGroups& groups, const CacheShape& shape,
             const torch::Tensor& memory, SumOrder order = SumOrder::fastest);
  ~PagedModel() override;

  static std::int64_t cache_pages(const CacheShape& shape) { return shape.pages + 1; }

  const CacheShape& shape() const { return shape_; }
  /// Passes that are launched from now on draw so.
  void set_sampling(const SamplingOptions& sampling) { sampling_ = sampling; }
  /// And note the experts of their tokens, or not. Precondition of noting: the model has some.
  void note_experts(bool note) { notes_experts_ = note; }

  std::int64_t page_tokens() const override { return shape_.page_tokens; }
  void launch(const Pass& pass) override;
  std::vector<Draw> collect() override;
  std::span<const std::int16_t> routed_experts() const override { return routed_experts_; }
  /// After the last pass: takes part in those of replicas that share experts, until all have ended.
  void join_others();

  /// Rows to which a pass of `rows` decoding sequences is padded on a GPU.
  static std::int64_t padded_rows(std::int64_t rows);

 private:
  struct Captured;  // passes of one size as a graph
  struct Launched;  // results on their way to the host

  /// On the device; undefined where there are none.
  struct Results {
    DrawnRows drawn;
    torch::Tensor experts;  // int16 [layers with experts, tokens, experts a token]
  };

  /// What the ranks that share experts do next; a rank without others agrees with itself.
  struct Agreed {
    bool works = false;     // one of them has a pass
    bool even = false;      // all only decode, and all have grouped products
    std::int64_t rows = 0;  // the most that one of them decodes
  };
  Agreed agree(bool works, bool decodes_only, std::int64_t rows) const;
  PassArrays packed(const Pass& pass, std::int64_t padded) const;
  /// Runs a pass, as a graph where that may be; nothing waits for the device.
  Results computed(const PassArrays& host, bool even);
  Results replay(const PassArrays& host);
  Results run(const PassTensors& inputs, bool even);
  torch::Tensor room_for_experts(std::int64_t tokens) const;
  /// From the hidden states before the head.
  DrawnRows draw(const torch::Tensor& hidden, const PassTensors& inputs);

  const Weights& weights_;
  const ParallelGroups& groups_;
  CacheShape shape_;
  SumOrder order_;
  SamplingOptions sampling_;
  PagedDecoder decoder_;
  bool grouped_;               // the experts' products, where there are experts
  torch::Tensor last_tokens_;  // int64 [slots + 1]; the last is of rows that pad
  bool notes_experts_ = false;
  std::vector<std::int16_t> routed_experts_;  // of the last pass that was collected
  /// By decode rows, whether experts are noted, and sampling. They share one memory pool.
  std::map<std::tuple<std::int64_t, bool, SamplingOptions>, std::unique_ptr<Captured>> graphs_;
  const CapturedGraph* first_graph_ = nullptr;
  std::deque<Launched> launched_;
};

}  // namespace tessera
