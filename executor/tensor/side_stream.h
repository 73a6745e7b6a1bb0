// A second stream for collectives that run beside the computation.
//
// On a GPU, work on the side stream starts once the given moment of the computation is reached, and
// the computation waits for it by event; the host waits for neither. Without a side stream (CPU, or
// none given) everything happens in program order and all of this is nothing.
#pragma once

#include "executor/tensor/torch.h"

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace tessera {

/// How long the computation stood still for work of the side stream: marked by events, read later.
class StreamWaits {
 public:
  void add(std::shared_ptr<c10::Event> begin, std::shared_ptr<c10::Event> end);
  /// Sum of all waits since the last call. Precondition: the streams are synchronised.
  double take_seconds();

 private:
  std::vector<std::pair<std::shared_ptr<c10::Event>, std::shared_ptr<c10::Event>>> marks_;
};

class SideStream {
 public:
  /// A moment on either stream.
  struct Moment {
    std::shared_ptr<c10::Event> event;
  };

  SideStream() = default;
  explicit SideStream(c10::Stream stream) : stream_(stream) {}
  /// From now on the computation's waits are noted in `waits`; copies made later share it.
  void measure(std::shared_ptr<StreamWaits> waits) { waits_ = std::move(waits); }
  bool exists() const { return stream_.has_value(); }

  /// Now, on the stream that torch currently uses.
  Moment now() const;
  /// The current stream waits for the moment.
  void wait(const Moment& moment) const;
  /// The host waits for the moment.
  static void synchronize(const Moment& moment);
  /// Runs `work` with the side stream current, after `start`; returns its end.
  Moment run(const Moment& start, const std::function<void()>& work) const;

 private:
  std::optional<c10::Stream> stream_;
  std::shared_ptr<StreamWaits> waits_;
};

}  // namespace tessera
