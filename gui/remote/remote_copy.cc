// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/remote/remote_copy.h"

#include <QMetaObject>
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"

namespace tessera::gui {
namespace {

using std::chrono::seconds;

constexpr seconds kPause{1}, kMostPause{16};

}  // namespace

void RemoteCopy::keep(const RemoteName& name, const std::string& token,
                      const std::filesystem::path& cache) {
  end();
  kept_ = true;
  news_ = {name,
           name.run.empty() ? std::filesystem::path() : mirror_folder(name, cache),
           Contact::unreached,
           {}};
  thread_ =
      std::jthread([this, mine = generation_, name, token, cache](const std::stop_token& stop) {
        RunMirror mirror(name, token, cache);
        ask(stop, mine, mirror);
      });
}

void RemoteCopy::end() {
  ++generation_;
  kept_ = false;
  news_ = {};
  telling_ = 0;
  if (thread_.joinable()) {
    thread_.request_stop();
    thread_.join();
  }
  wanted_.clear();
}

void RemoteCopy::tell(RunSignal signal) {
  ++telling_;
  {
    const std::lock_guard lock(mutex_);
    wanted_.push_back(signal);
  }
  wanted_more_.notify_one();
}

/// Until the time is over, or a signal waits; false where it is to stop.
bool RemoteCopy::rest(const std::stop_token& stop, seconds pause) {
  std::unique_lock lock(mutex_);
  wanted_more_.wait_for(lock, stop, pause, [this] { return !wanted_.empty(); });
  return !stop.stop_requested();
}

void RemoteCopy::tellRun(const std::stop_token& stop, quint64 generation, RunMirror& mirror) {
  while (!stop.stop_requested()) {
    std::optional<RunSignal> signal;
    {
      const std::lock_guard lock(mutex_);
      if (wanted_.empty()) return;
      signal = wanted_.front();
      wanted_.pop_front();
    }
    const QString fault = toText(mirror.signal(*signal, stop));
    QMetaObject::invokeMethod(
        this, [this, generation, fault] { takeTold(generation, fault); }, Qt::QueuedConnection);
  }
}

void RemoteCopy::ask(const std::stop_token& stop, quint64 generation, RunMirror& mirror) {
  for (seconds pause = kPause; !stop.stop_requested();) {
    tellRun(stop, generation, mirror);
    const MirrorNews found = mirror.contact(stop);
    if (stop.stop_requested()) return;
    const RemoteNews news{mirror.name(), mirror.folder(), found.contact, toText(found.fault)};
    QMetaObject::invokeMethod(
        this, [this, generation, news] { take(generation, news); }, Qt::QueuedConnection);
    if (news.contact == Contact::denied) return;
    const bool reached = news.contact == Contact::reached;
    if (reached && found.missing_bytes > 0) continue;
    if (reached) pause = kPause;
    if (!rest(stop, pause)) return;
    if (!reached) pause = std::min(2 * pause, kMostPause);
  }
}

void RemoteCopy::take(quint64 generation, const RemoteNews& news) {
  if (generation != generation_) return;  // another run is kept by now
  news_ = news;
  if (news.contact == Contact::denied) {
    kept_ = false;
    telling_ = 0;
  }
  emit contacted();
}

void RemoteCopy::takeTold(quint64 generation, const QString& fault) {
  if (generation != generation_) return;
  telling_ = std::max(0, telling_ - 1);
  emit told(fault);
}

std::filesystem::path copied_once(const RemoteName& name, const std::string& token,
                                  const std::filesystem::path& cache) {
  RunMirror mirror(name, token, cache);
  for (;;) {
    const MirrorNews news = mirror.contact();
    if (news.contact != Contact::reached) {
      throw Error(news.contact == Contact::denied ? ExitCode::bad_input : ExitCode::io,
                  address_of(name) + ": " + news.fault);
    }
    if (news.missing_bytes == 0) return mirror.folder();
  }
}

}  // namespace tessera::gui
