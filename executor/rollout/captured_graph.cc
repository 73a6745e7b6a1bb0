#include "executor/rollout/captured_graph.h"

#include "executor/tensor/torch.h"

#include <ATen/cuda/CUDAGraph.h>

namespace tessera {

struct CapturedGraph::Recorded {
  at::cuda::CUDAGraph graph;
};

CapturedGraph::CapturedGraph(const std::function<void()>& run, const CapturedGraph* beside)
    : recorded_(std::make_unique<Recorded>()) {
  const auto pool =
      beside != nullptr ? beside->recorded_->graph.pool() : at::cuda::graph_pool_handle();
  // Other threads of the process may go on allocating.
  recorded_->graph.capture_begin(pool, cudaStreamCaptureModeThreadLocal);
  run();
  recorded_->graph.capture_end();
}

CapturedGraph::~CapturedGraph() = default;

void CapturedGraph::replay() { recorded_->graph.replay(); }

}  // namespace tessera
