#include "executor/train/pipeline.h"

#include <algorithm>
#include <array>
#include <deque>

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

}  // namespace

PipelineLinks make_links(Communicator* pp) {
  PipelineLinks links;
  if (pp == nullptr) return links;
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
    in_flight.push_back({input, forward(m, input)});
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

void infer_pipeline(
    const PipelineLinks& links, const PipelineShape& shape,
    const std::function<torch::Tensor(int micro_batch, const torch::Tensor& input)>& forward) {
  for (std::size_t m = 0; m < shape.tokens.size(); ++m) {
    torch::Tensor input;
    if (links.previous) {
      input = torch::empty({shape.tokens[m], shape.width}, shape.options);
      exchange(links.previous.get(), {}, input);
    }
    exchange(links.next.get(), forward(static_cast<int>(m), input), {});
  }
}

}  // namespace tessera
