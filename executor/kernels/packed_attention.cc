#include "executor/kernels/packed_attention.h"

// The headers of nvidia-cudnn-frontend 1.32.0 without their JSON library.
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "cost_models/documents/problem.h"

namespace tessera::kernels {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

enum Uid : std::int64_t {
  kQ = 1,
  kK,
  kV,
  kOut,
  kStats,
  kGradient,
  kDq,
  kDk,
  kDv,
  kLengths,
  kKeyLengths,
  kOffsetQ,
  kOffsetK,
  kOffsetV,
  kOffsetDense,
  kOffsetDenseKv,
  kOffsetStats,
};

void check(fe::error_t status, const char* what) {
  if (status.is_bad()) {
    throw Error(ExitCode::internal,
                std::string("cuDNN attention, ") + what + ": " + status.get_message());
  }
}

/// A graph with the tensors that forward and backward share.
struct Builder {
  const AttentionShape& shape;
  fe::graph::Graph graph;

  explicit Builder(const AttentionShape& s) : shape(s) {
    graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
  }

  Tensor integers(const char* name, Uid uid, std::int64_t count) {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(name)
                            .set_uid(uid)
                            .set_dim({count, 1, 1, 1})
                            .set_stride({1, 1, 1, 1})
                            .set_data_type(fe::DataType_t::INT32));
  }
  Tensor offsets(const char* name, Uid uid) { return integers(name, uid, shape.sequences + 1); }

  static bool of_keys(Uid uid) { return uid == kK || uid == kV || uid == kDk || uid == kDv; }
  std::int64_t longest(Uid uid) const { return of_keys(uid) ? shape.longest_keys : shape.longest; }
  std::vector<std::int64_t> dims(Uid uid, std::int64_t heads) const {
    return {shape.sequences, heads, longest(uid), shape.head_dim};
  }
  std::vector<std::int64_t> strides(Uid uid, std::int64_t token) const {
    return {longest(uid) * token, shape.head_dim, token, 1};
  }
  Tensor packed(const char* name, Uid uid, std::int64_t heads, std::int64_t stride,
                const Tensor& offset) {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(name)
                            .set_uid(uid)
                            .set_dim(dims(uid, heads))
                            .set_stride(strides(uid, stride))
                            .set_ragged_offset(offset));
  }
  void describe(const Tensor& tensor, Uid uid, std::int64_t heads, const Tensor& offset) const {
    tensor->set_output(true)
        .set_uid(uid)
        .set_dim(dims(uid, heads))
        .set_stride(strides(uid, heads * shape.head_dim))
        .set_ragged_offset(offset);
  }
  void describe_stats(fe::graph::Tensor_attributes& stats, const Tensor& offset) const {
    stats.set_uid(kStats)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({shape.sequences, shape.heads, shape.longest, 1})
        .set_stride({shape.longest * shape.heads, 1, shape.heads, 1})
        .set_ragged_offset(offset);
  }
  template <typename Options>
  void mask(Options& options) {
    const Tensor lengths = integers("lengths", kLengths, shape.sequences);
    options.set_attn_scale(shape.scale).set_padding_mask(true).set_seq_len_q(lengths);
    if (!shape.causal) {
      options.set_seq_len_kv(integers("key_lengths", kKeyLengths, shape.sequences));
      return;
    }
    options.set_seq_len_kv(lengths)
        .set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
        .set_diagonal_band_right_bound(0);
    if (shape.window > 0) options.set_diagonal_band_left_bound(static_cast<int>(shape.window));
  }
};

std::shared_ptr<fe::graph::Graph> finished(Builder& builder, cudnnHandle_t handle,
                                           const char* what) {
  auto graph = std::make_shared<fe::graph::Graph>(std::move(builder.graph));
  check(graph->build(handle, {fe::HeurMode_t::A}), what);
  return graph;
}

std::shared_ptr<fe::graph::Graph> forward_graph(const AttentionShape& s, cudnnHandle_t handle) {
  Builder b(s);
  const Tensor stats_offset = b.offsets("offset_stats", kOffsetStats);
  auto options = fe::graph::SDPA_attributes().set_name("sdpa").set_generate_stats(true);
  b.mask(options);
  const auto [out, stats] = b.graph.sdpa(
      b.packed("q", kQ, s.heads, s.q_stride, b.offsets("offset_q", kOffsetQ)),
      b.packed("k", kK, s.kv_heads, s.k_stride, b.offsets("offset_k", kOffsetK)),
      b.packed("v", kV, s.kv_heads, s.v_stride, b.offsets("offset_v", kOffsetV)), options);
  b.describe(out, kOut, s.heads, b.offsets("offset_dense", kOffsetDense));
  stats->set_output(true);
  b.describe_stats(*stats, stats_offset);
  return finished(b, handle, "forward graph");
}

std::shared_ptr<fe::graph::Graph> backward_graph(const AttentionShape& s, cudnnHandle_t handle) {
  Builder b(s);
  const Tensor dense = b.offsets("offset_dense", kOffsetDense);
  const Tensor dense_kv = b.offsets("offset_dense_kv", kOffsetDenseKv);
  const std::int64_t width = s.heads * s.head_dim;
  auto stats = fe::graph::Tensor_attributes().set_name("stats");
  b.describe_stats(stats, b.offsets("offset_stats", kOffsetStats));
  auto options = fe::graph::SDPA_backward_attributes().set_name("sdpa_backward");
  b.mask(options);
  options.set_max_total_seq_len_q(s.tokens).set_max_total_seq_len_kv(s.keys);
  options.set_deterministic_algorithm(s.deterministic);
  const auto [dq, dk, dv] = b.graph.sdpa_backward(
      b.packed("q", kQ, s.heads, s.q_stride, b.offsets("offset_q", kOffsetQ)),
      b.packed("k", kK, s.kv_heads, s.k_stride, b.offsets("offset_k", kOffsetK)),
      b.packed("v", kV, s.kv_heads, s.v_stride, b.offsets("offset_v", kOffsetV)),
      b.packed("out", kOut, s.heads, width, dense),
      b.packed("gradient", kGradient, s.heads, width, dense), b.graph.tensor(stats), options);
  b.describe(dq, kDq, s.heads, dense);
  b.describe(dk, kDk, s.kv_heads, dense_kv);
  b.describe(dv, kDv, s.kv_heads, dense_kv);
  return finished(b, handle, "backward graph");
}

void* pointer(const void* p) { return const_cast<void*>(p); }

}  // namespace

struct PackedAttention::Graphs {
  struct Built {
    std::shared_ptr<fe::graph::Graph> graph;
    std::int64_t workspace = 0;
  };
  cudnnHandle_t handle = nullptr;
  std::map<std::pair<AttentionShape, bool>, Built> built;

  const Built& find(const AttentionShape& shape, bool backward) {
    Built& entry = built[{shape, backward}];
    if (!entry.graph) {
      entry.graph = backward ? backward_graph(shape, handle) : forward_graph(shape, handle);
      check(entry.graph->get_workspace_size(entry.workspace), "workspace");
    }
    return entry;
  }
  void run(const Built& entry, std::unordered_map<std::int64_t, void*>& tensors, bool causal,
           const AttentionBatch& batch, void* workspace, void* stream) {
    tensors[kLengths] = pointer(batch.lengths);
    if (!causal) tensors[kKeyLengths] = pointer(batch.key_lengths);
    tensors[kOffsetQ] = pointer(batch.q);
    tensors[kOffsetK] = pointer(batch.k);
    tensors[kOffsetV] = pointer(batch.v);
    tensors[kOffsetDense] = pointer(batch.dense);
    tensors[kOffsetStats] = pointer(batch.stats);
    cudnnSetStream(handle, static_cast<cudaStream_t>(stream));
    check(entry.graph->execute(handle, tensors, workspace), "execution");
  }
};

PackedAttention::PackedAttention() : graphs_(std::make_unique<Graphs>()) {
  if (cudnnCreate(&graphs_->handle) != CUDNN_STATUS_SUCCESS) {
    throw Error(ExitCode::internal, "cuDNN did not start");
  }
}

PackedAttention::~PackedAttention() { cudnnDestroy(graphs_->handle); }

bool PackedAttention::available() { return cudnnGetVersion() >= 91000; }

std::int64_t PackedAttention::workspace_bytes(const AttentionShape& shape, bool backward) {
  return graphs_->find(shape, backward).workspace;
}

void PackedAttention::forward(const AttentionShape& shape, const AttentionBatch& batch,
                              const void* q, const void* k, const void* v, void* out, void* stats,
                              void* workspace, void* stream) {
  std::unordered_map<std::int64_t, void*> tensors{
      {kQ, pointer(q)}, {kK, pointer(k)}, {kV, pointer(v)}, {kOut, out}, {kStats, stats}};
  graphs_->run(graphs_->find(shape, false), tensors, shape.causal, batch, workspace, stream);
}

void PackedAttention::backward(const AttentionShape& shape, const AttentionBatch& batch,
                               const void* q, const void* k, const void* v, const void* out,
                               const void* stats, const void* gradient, void* d_q, void* d_k,
                               void* d_v, void* workspace, void* stream) {
  std::unordered_map<std::int64_t, void*> tensors{{kQ, pointer(q)},
                                                  {kK, pointer(k)},
                                                  {kV, pointer(v)},
                                                  {kOut, pointer(out)},
                                                  {kStats, pointer(stats)},
                                                  {kGradient, pointer(gradient)},
                                                  {kDq, d_q},
                                                  {kDk, d_k},
                                                  {kDv, d_v},
                                                  {kOffsetDenseKv, pointer(batch.dense_kv)}};
  graphs_->run(graphs_->find(shape, true), tensors, shape.causal, batch, workspace, stream);
}

}  // namespace tessera::kernels
