#include "executor/train/side_stream.h"

#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace tessera {

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
  moment.event->block(guard.getStream(stream_->device()));
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
