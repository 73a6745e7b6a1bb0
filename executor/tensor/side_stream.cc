#include "executor/tensor/side_stream.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace tessera {
namespace {

std::shared_ptr<c10::Event> mark(const c10::Stream& stream) {
  auto event = std::make_shared<c10::Event>(stream.device_type(), c10::EventFlag::BACKEND_DEFAULT);
  event->record(stream);
  return event;
}

}  // namespace

void StreamWaits::add(std::shared_ptr<c10::Event> begin, std::shared_ptr<c10::Event> end) {
  marks_.emplace_back(std::move(begin), std::move(end));
}

double StreamWaits::take_seconds() {
  double milliseconds = 0;
  for (const auto& [begin, end] : marks_) milliseconds += begin->elapsedTime(*end);
  marks_.clear();
  return milliseconds * 1e-3;
}

SideStream::Moment SideStream::now() const {
  if (!stream_) return {};
  const c10::impl::VirtualGuardImpl guard(stream_->device_type());
  auto event = std::make_shared<c10::Event>(stream_->device_type());
  event->record(guard.getStream(stream_->device()));
  return {std::move(event)};
}

void SideStream::wait(const Moment& moment) const {
  if (!stream_ || !moment.event) return;
  const c10::impl::VirtualGuardImpl guard(stream_->device_type());
  const c10::Stream current = guard.getStream(stream_->device());
  if (!waits_ || current == *stream_) return moment.event->block(current);
  auto begin = mark(current);
  moment.event->block(current);
  waits_->add(std::move(begin), mark(current));
}

void SideStream::synchronize(const Moment& moment) {
  if (moment.event) moment.event->synchronize();
}

SideStream::Moment SideStream::run(const Moment& start, const std::function<void()>& work) const {
  if (!stream_) {
    work();
    return {};
  }
  const c10::StreamGuard guard(*stream_);
  wait(start);
  work();
  return now();
}

}  // namespace tessera
