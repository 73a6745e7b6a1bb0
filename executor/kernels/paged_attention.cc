#include "executor/kernels/paged_attention.h"

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
  kKeys,
  kValues,
  kOut,
  kQueryLengths,
  kKeyLengths,
  kQueryStarts,
  kTable,
  kValueTable,
};

void check(fe::error_t status, const char* what) {
  if (status.is_bad()) {
    throw Error(ExitCode::internal,
                std::string("cuDNN paged attention, ") + what + ": " + status.get_message());
  }
}

Tensor integers(fe::graph::Graph& graph, const char* name, Uid uid,
                const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& strides) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(name)
                          .set_uid(uid)
                          .set_dim(dims)
                          .set_stride(strides)
                          .set_data_type(fe::DataType_t::INT32));
}

Tensor cache(fe::graph::Graph& graph, const char* name, Uid uid, const PagedShape& s) {
  const std::int64_t head = s.page_tokens * s.head_dim;
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(name)
                          .set_uid(uid)
                          .set_dim({s.pages, s.kv_heads, s.page_tokens, s.head_dim})
                          .set_stride({s.kv_heads * head, head, s.head_dim, 1}));
}

std::shared_ptr<fe::graph::Graph> graph_of(const PagedShape& s, cudnnHandle_t handle) {
  auto graph = std::make_shared<fe::graph::Graph>();
  graph->set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const std::vector<std::int64_t> dims{s.rows, s.heads, s.longest_queries, s.head_dim};
  const std::int64_t token = s.heads * s.head_dim;
  const std::vector<std::int64_t> strides{s.longest_queries * token, s.head_dim, token, 1};
  auto q =
      fe::graph::Tensor_attributes().set_name("q").set_uid(kQ).set_dim(dims).set_stride(strides);
  Tensor starts;
  if (s.longest_queries > 1) {
    starts = integers(*graph, "query_starts", kQueryStarts, {s.rows + 1, 1, 1, 1}, {1, 1, 1, 1});
    q.set_ragged_offset(starts);
  }
  const auto lengths = [&](const char* name, Uid uid) {
    return integers(*graph, name, uid, {s.rows, 1, 1, 1}, {1, 1, 1, 1});
  };
  const auto table = [&](const char* name, Uid uid) {
    return integers(*graph, name, uid, {s.rows, 1, s.row_pages, 1},
                    {s.row_pages, s.row_pages, 1, 1});
  };
  auto options =
      fe::graph::SDPA_attributes()
          .set_name("paged")
          .set_generate_stats(false)
          .set_attn_scale(s.scale)
          .set_padding_mask(true)
          .set_seq_len_q(lengths("query_lengths", kQueryLengths))
          .set_seq_len_kv(lengths("key_lengths", kKeyLengths))
          .set_paged_attention_k_table(table("key_pages", kTable))
          .set_paged_attention_v_table(table("value_pages", kValueTable))
          .set_paged_attention_max_seq_len_kv(static_cast<int>(s.row_pages * s.page_tokens));
  if (s.longest_queries > 1) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::BOTTOM_RIGHT)
        .set_diagonal_band_right_bound(0);
  }
  const auto [out, stats] = graph->sdpa(graph->tensor(q), cache(*graph, "keys", kKeys, s),
                                        cache(*graph, "values", kValues, s), options);
  out->set_output(true).set_uid(kOut).set_dim(dims).set_stride(strides);
  if (starts) out->set_ragged_offset(starts);
  check(graph->build(handle, {fe::HeurMode_t::A}), "graph");
  return graph;
}

void* pointer(const void* p) { return const_cast<void*>(p); }

}  // namespace

struct PagedAttention::Graphs {
  struct Built {
    std::shared_ptr<fe::graph::Graph> graph;
    std::int64_t workspace = 0;
  };
  cudnnHandle_t handle = nullptr;
  std::map<PagedShape, Built> built;

  const Built& find(const PagedShape& shape) {
    Built& entry = built[shape];
    if (!entry.graph) {
      entry.graph = graph_of(shape, handle);
      check(entry.graph->get_workspace_size(entry.workspace), "workspace");
    }
    return entry;
  }
};

PagedAttention::PagedAttention() : graphs_(std::make_unique<Graphs>()) {
  if (cudnnCreate(&graphs_->handle) != CUDNN_STATUS_SUCCESS) {
    throw Error(ExitCode::internal, "cuDNN did not start");
  }
}

PagedAttention::~PagedAttention() { cudnnDestroy(graphs_->handle); }

std::int64_t PagedAttention::workspace_bytes(const PagedShape& shape) {
  return graphs_->find(shape).workspace;
}

void PagedAttention::forward(const PagedShape& shape, const PagedOperands& operands,
                             void* workspace, void* stream) {
  std::unordered_map<std::int64_t, void*> tensors{{kQ, pointer(operands.q)},
                                                  {kKeys, pointer(operands.keys)},
                                                  {kValues, pointer(operands.values)},
                                                  {kOut, operands.out},
                                                  {kQueryLengths, pointer(operands.query_lengths)},
                                                  {kKeyLengths, pointer(operands.key_lengths)},
                                                  {kTable, pointer(operands.page_table)},
                                                  {kValueTable, pointer(operands.page_table)}};
  if (shape.longest_queries > 1) tensors[kQueryStarts] = pointer(operands.query_starts);
  cudnnSetStream(graphs_->handle, static_cast<cudaStream_t>(stream));
  check(graphs_->find(shape).graph->execute(graphs_->handle, tensors, workspace), "execution");
}

}  // namespace tessera::kernels
