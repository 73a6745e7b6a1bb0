#include "executor/train/pipeline.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

#include "cost_models/pipeline/interleave.h"

namespace tessera {
namespace {

/// Sends `out` to the other end of a link and receives `in` from there; either may be undefined.
/// Without a link there is nobody to talk to.
void exchange(Communicator* link, const torch::Tensor& out, const torch::Tensor& in) {
  if (link == nullptr || (!out.defined() && !in.defined())) return;
  const int peer = 1 - link->rank();
  const torch::Tensor sent = out.defined() ? out.detach().contiguous() : out;
  const std::array<SendBlock, 1> sends{SendBlock{
      peer, sent.defined() ? sent.const_data_ptr() : nullptr, sent.defined() ? sent.nbytes() : 0}};
  const std::array<ReceiveBlock, 1> receives{ReceiveBlock{
      peer, in.defined() ? in.mutable_data_ptr() : nullptr, in.defined() ? in.nbytes() : 0}};
  link->exchange(std::span(sends).first(sent.defined() ? 1 : 0),
                 std::span(receives).first(in.defined() ? 1 : 0));
}

struct InFlight {
  torch::Tensor input;
  StageOutput output;
};

/// Consumes the oldest micro-batch; returns the gradient of its input (undefined on stage 0).
torch::Tensor backward(std::deque<InFlight>& in_flight, const torch::Tensor& output_gradient) {
  const InFlight oldest = std::move(in_flight.front());
  in_flight.pop_front();
  std::vector<torch::Tensor> gradients = oldest.output.gradients;
  if (output_gradient.defined()) gradients = {output_gradient};
  torch::autograd::backward(oldest.output.roots, gradients);
  return oldest.input.defined() ? oldest.input.grad() : torch::Tensor();
}

using Piece = std::pair<int, int>;  // chunk, micro-batch

/// Messages of one tick between all ranks of the pipeline.
class TickExchange {
 public:
  explicit TickExchange(Communicator* all) : all_(all) {}
  void send(int stage, const torch::Tensor& x) {
    kept_.push_back(x.detach().contiguous());
    sends_.push_back({stage, kept_.back().const_data_ptr(), kept_.back().nbytes()});
  }
  void receive(int stage, const torch::Tensor& x) {
    receives_.push_back({stage, x.mutable_data_ptr(), x.nbytes()});
  }
  void run() {
    if (all_ != nullptr) all_->exchange(sends_, receives_);
  }

 private:
  Communicator* all_;
  std::vector<torch::Tensor> kept_;
  std::vector<SendBlock> sends_;
  std::vector<ReceiveBlock> receives_;
};

/// Runs this rank's operations of a tick table. `compute` gets an operation and what it consumes
/// (undefined at the model's ends) and returns what travels on.
void run_ticks(const PipelineLinks& links, const PipelineShape& shape, bool training,
               const std::function<torch::Tensor(const PipelineOp&, torch::Tensor)>& compute) {
  const int count = static_cast<int>(shape.tokens.size());
  std::map<std::pair<bool, Piece>, torch::Tensor> arrived;
  for (const auto& tick : interleaved_ticks(links.stages, links.chunks, count, training)) {
    TickExchange messages(links.all);
    for (int stage = 0; stage < links.stages; ++stage) {
      const auto& op = tick[static_cast<std::size_t>(stage)];
      if (!op) continue;
      const auto target = consumer(links.stages, links.chunks, stage, *op);
      torch::Tensor made;
      if (stage == links.stage) {
        const auto input = arrived.extract({op->forward, {op->chunk, op->micro_batch}});
        made = compute(*op, input ? input.mapped() : torch::Tensor());
        if (target) messages.send(target->stage, made);
      }
      if (!target || target->stage != links.stage) continue;
      const torch::Tensor buffer = torch::empty(
          {shape.tokens[static_cast<std::size_t>(op->micro_batch)], shape.width}, shape.options);
      messages.receive(stage, buffer);
      arrived[{target->op.forward, {target->op.chunk, target->op.micro_batch}}] = buffer;
    }
    messages.run();
  }
}

void train_interleaved(const PipelineLinks& links, const PipelineShape& shape,
                       const StageForward& forward) {
  std::map<Piece, InFlight> in_flight;
  run_ticks(links, shape, true, [&](const PipelineOp& op, torch::Tensor given) {
    const Piece piece{op.chunk, op.micro_batch};
    if (op.forward) {
      if (given.defined()) given.requires_grad_(true);
      const InFlight& entry = in_flight[piece] = {given, forward(op.micro_batch, op.chunk, given)};
      return entry.output.roots.front();
    }
    const InFlight entry = std::move(in_flight.extract(piece).mapped());
    torch::autograd::backward(entry.output.roots,
                              given.defined() ? std::vector{given} : entry.output.gradients);
    return entry.input.defined() ? entry.input.grad() : torch::Tensor();
  });
}

}  // namespace

PipelineLinks make_links(Communicator* pp, int chunks) {
  PipelineLinks links;
  links.chunks = chunks;
  if (pp == nullptr) return links;
  links.all = pp;
  links.stage = pp->rank();
  links.stages = pp->size();
  for (int first = 0; first + 1 < links.stages; ++first) {
    std::unique_ptr<Communicator> pair = pp->split(std::array{first, first + 1});
    if (links.stage == first) links.next = std::move(pair);
    if (links.stage == first + 1) links.previous = std::move(pair);
  }
  return links;
}

void train_pipeline(const PipelineLinks& links, const PipelineShape& shape,
                    const StageForward& forward) {
  if (links.chunks > 1) return train_interleaved(links, shape, forward);
  const int count = static_cast<int>(shape.tokens.size());
  const int ahead = std::min(links.stages - links.stage - 1, count);
  Communicator* const previous = links.previous.get();
  Communicator* const next = links.next.get();
  const auto buffer = [&](const Communicator* link, int m) {
    if (link == nullptr || m >= count) return torch::Tensor();
    return torch::empty({shape.tokens[static_cast<std::size_t>(m)], shape.width}, shape.options);
  };
  std::deque<InFlight> in_flight;
  const auto run_forward = [&](int m, torch::Tensor input) {
    if (input.defined()) input.requires_grad_(true);
    in_flight.push_back({input, forward(m, 0, input)});
    return next != nullptr ? in_flight.back().output.roots.front() : torch::Tensor();
  };

  for (int m = 0; m < ahead; ++m) {
    const torch::Tensor input = buffer(previous, m);
    exchange(previous, {}, input);
    exchange(next, run_forward(m, input), {});
  }
  torch::Tensor input = buffer(previous, ahead);
  exchange(previous, {}, input);
  for (int m = ahead; m < count; ++m) {
    const torch::Tensor output = run_forward(m, input);
    const torch::Tensor output_gradient = buffer(next, m - ahead);
    exchange(next, output, output_gradient);
    const torch::Tensor input_gradient = backward(in_flight, output_gradient);
    input = buffer(previous, m + 1);
    exchange(previous, input_gradient, input);
  }
  for (int m = count - ahead; m < count; ++m) {
    const torch::Tensor output_gradient = buffer(next, m);
    exchange(next, {}, output_gradient);
    exchange(previous, backward(in_flight, output_gradient), {});
  }
}

void infer_pipeline(const PipelineLinks& links, const PipelineShape& shape,
                    const std::function<torch::Tensor(int micro_batch, int chunk,
                                                      const torch::Tensor& input)>& forward) {
  if (links.chunks > 1) {
    run_ticks(links, shape, false, [&](const PipelineOp& op, const torch::Tensor& input) {
      return forward(op.micro_batch, op.chunk, input);
    });
    return;
  }
  for (std::size_t m = 0; m < shape.tokens.size(); ++m) {
    torch::Tensor input;
    if (links.previous) {
      input = torch::empty({shape.tokens[m], shape.width}, shape.options);
      exchange(links.previous.get(), {}, input);
    }
    exchange(links.next.get(), forward(static_cast<int>(m), 0, input), {});
  }
}

}  // namespace tessera
