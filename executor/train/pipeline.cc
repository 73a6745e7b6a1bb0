#include "executor/train/pipeline.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "cost_models/pipeline/interleave.h"

namespace tessera {
namespace {

/// What travels of a micro-batch: a chunk's rows or their gradient, and the sums of the chunks
/// before it or of all. Without rows, at the model's ends: nothing.
struct Message {
  torch::Tensor rows, sums = {};
};

Message empty_message(const PipelineShape& shape, int micro_batch) {
  const std::int64_t tokens = shape.tokens[static_cast<std::size_t>(micro_batch)];
  Message message{torch::empty({tokens, shape.width}, shape.options)};
  if (shape.sums > 0) {
    message.sums = torch::empty({shape.sums}, shape.options.dtype(torch::kFloat32));
  }
  return message;
}

/// Messages that are sent and received at once.
class Messages {
 public:
  void send(int peer, const Message& message) {
    each_tensor(message, [&](const torch::Tensor& x) {
      kept_.push_back(x.detach().contiguous());
      sends_.push_back({peer, kept_.back().const_data_ptr(), kept_.back().nbytes()});
    });
  }
  void receive(int peer, const Message& message) {
    each_tensor(message, [&](const torch::Tensor& x) {
      receives_.push_back({peer, x.mutable_data_ptr(), x.nbytes()});
    });
  }
  bool any() const { return !sends_.empty() || !receives_.empty(); }
  void run(Communicator& group) const { group.exchange(sends_, receives_); }

 private:
  template <class Visit>
  static void each_tensor(const Message& message, Visit visit) {
    if (!message.rows.defined()) return;
    visit(message.rows);
    if (message.sums.defined()) visit(message.sums);
  }

  std::vector<torch::Tensor> kept_;
  std::vector<SendBlock> sends_;
  std::vector<ReceiveBlock> receives_;
};

/// Sends `out` to the other end of a link and receives `in` from there; either may be nothing.
/// Without a link there is nobody to talk to.
void exchange(Communicator* link, const Message& out, const Message& in) {
  if (link == nullptr) return;
  Messages messages;
  messages.send(1 - link->rank(), out);
  messages.receive(1 - link->rank(), in);
  if (messages.any()) messages.run(*link);
}

struct InFlight {
  torch::Tensor input;
  StageOutput output;

  Message to_next() const { return {output.roots.front(), output.sums}; }
};

/// Of one chunk, from what the one before it has sent.
InFlight run_forward(const StageForward& forward, int micro_batch, int chunk,
                     const Message& given) {
  torch::Tensor input = given.rows;
  if (input.defined()) input.requires_grad_(true);
  InFlight made{input, forward(micro_batch, chunk, input)};
  if (given.sums.defined()) made.output.sums.add_(given.sums);
  return made;
}

/// From what the chunk after it has sent; returns what the one before it needs.
Message run_backward(InFlight piece, const Message& given) {
  if (given.sums.defined()) piece.output.sums.copy_(given.sums);
  torch::autograd::backward(
      piece.output.roots, given.rows.defined() ? std::vector{given.rows} : piece.output.gradients);
  if (!piece.input.defined()) return {};
  return {piece.input.grad(), piece.output.sums};
}

/// The oldest micro-batch's.
InFlight taken(std::deque<InFlight>& in_flight) {
  InFlight oldest = std::move(in_flight.front());
  in_flight.pop_front();
  return oldest;
}

using Piece = std::pair<int, int>;  // chunk, micro-batch

/// Runs this rank's operations of a tick table. `compute` gets an operation and what it consumes
/// (nothing at the model's ends) and returns what travels on.
void run_ticks(const PipelineLinks& links, const PipelineShape& shape, bool training,
               const std::function<Message(const PipelineOp&, const Message&)>& compute) {
  const int count = static_cast<int>(shape.tokens.size());
  std::map<std::pair<bool, Piece>, Message> arrived;
  for (const auto& tick : interleaved_ticks(links.stages, links.chunks, count, training)) {
    Messages messages;
    for (int stage = 0; stage < links.stages; ++stage) {
      const auto& op = tick[static_cast<std::size_t>(stage)];
      if (!op) continue;
      const auto target = consumer(links.stages, links.chunks, stage, *op);
      if (stage == links.stage) {
        const auto input = arrived.extract({op->forward, {op->chunk, op->micro_batch}});
        const Message made = compute(*op, input ? input.mapped() : Message{});
        if (target) messages.send(target->stage, made);
      }
      if (!target || target->stage != links.stage) continue;
      const Message buffer = empty_message(shape, op->micro_batch);
      messages.receive(stage, buffer);
      arrived[{target->op.forward, {target->op.chunk, target->op.micro_batch}}] = buffer;
    }
    if (links.all != nullptr) messages.run(*links.all);
  }
}

void train_interleaved(const PipelineLinks& links, const PipelineShape& shape,
                       const StageForward& forward) {
  std::map<Piece, InFlight> in_flight;
  run_ticks(links, shape, true, [&](const PipelineOp& op, const Message& given) {
    const Piece piece{op.chunk, op.micro_batch};
    if (!op.forward) return run_backward(std::move(in_flight.extract(piece).mapped()), given);
    const InFlight& entry = in_flight[piece] =
        run_forward(forward, op.micro_batch, op.chunk, given);
    return entry.to_next();
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
    return link == nullptr || m >= count ? Message{} : empty_message(shape, m);
  };
  std::deque<InFlight> in_flight;
  const auto begin = [&](int m, const Message& input) {
    in_flight.push_back(run_forward(forward, m, 0, input));
    return next != nullptr ? in_flight.back().to_next() : Message{};
  };

  for (int m = 0; m < ahead; ++m) {
    const Message input = buffer(previous, m);
    exchange(previous, {}, input);
    exchange(next, begin(m, input), {});
  }
  Message input = buffer(previous, ahead);
  exchange(previous, {}, input);
  for (int m = ahead; m < count; ++m) {
    const Message output = begin(m, input);
    const Message output_gradient = buffer(next, m - ahead);
    exchange(next, output, output_gradient);
    const Message input_gradient = run_backward(taken(in_flight), output_gradient);
    input = buffer(previous, m + 1);
    exchange(previous, input_gradient, input);
  }
  for (int m = count - ahead; m < count; ++m) {
    const Message output_gradient = buffer(next, m);
    exchange(next, {}, output_gradient);
    exchange(previous, run_backward(taken(in_flight), output_gradient), {});
  }
}

void infer_pipeline(const PipelineLinks& links, const PipelineShape& shape,
                    const std::function<torch::Tensor(int micro_batch, int chunk,
                                                      const torch::Tensor& input)>& forward) {
  if (links.chunks > 1) {
    run_ticks(links, shape, false, [&](const PipelineOp& op, const Message& input) {
      return Message{forward(op.micro_batch, op.chunk, input.rows)};
    });
    return;
  }
  for (std::size_t m = 0; m < shape.tokens.size(); ++m) {
    const int micro_batch = static_cast<int>(m);
    Message input;
    if (links.previous) input = empty_message(shape, micro_batch);
    exchange(links.previous.get(), {}, input);
    exchange(links.next.get(), {forward(micro_batch, 0, input.rows)}, {});
  }
}

}  // namespace tessera
