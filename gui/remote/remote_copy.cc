// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/remote/remote_copy.h"

#include <QMetaObject>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"

namespace tessera::gui {
namespace {

using std::chrono::seconds;

constexpr seconds kPause{1}, kMostPause{16};

/// False where it is to stop.
bool rest(const std::stop_token& stop, seconds pause) {
  std::mutex mutex;
  std::condition_variable_any woken;
  std::unique_lock lock(mutex);
  woken.wait_for(lock, stop, pause, [] { return false; });
  return !stop.stop_requested();
}

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
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

void RemoteCopy::ask(const std::stop_token& stop, quint64 generation, RunMirror& mirror) {
  for (seconds pause = kPause; !stop.stop_requested();) {
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
  if (news.contact == Contact::denied) kept_ = false;
  emit contacted();
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
