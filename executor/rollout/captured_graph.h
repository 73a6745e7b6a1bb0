// Operations on the current CUDA stream, captured once and replayed as one launch.
//
// Every tensor that the operations read or write keeps its address; tensors that they allocate live
// in a pool of the graph, or in the pool of another graph when the two are never replayed at the
// same time. One thread; the stream must not be the default one.
#pragma once

#include <functional>
#include <memory>

namespace tessera {

class CapturedGraph {
 public:
  /// Records what `run` enqueues, without executing it. `beside` (nullptr: none) gives its
  /// pool, which lives as long as any graph in it.
  CapturedGraph(const std::function<void()>& run, const CapturedGraph* beside);
  ~CapturedGraph();

  void replay();

 private:
  struct Recorded;
  std::unique_ptr<Recorded> recorded_;
};

}  // namespace tessera
