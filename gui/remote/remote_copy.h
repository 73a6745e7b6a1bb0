// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps the copy of a run of another host up (simulator/remote/run_mirror.h), and tells that run
// what it is to do, in a thread of its own.
//
// One owner, the window's thread, which hears of every contact by its event loop. Ending waits
// until the request that is on its way has ended: 50 ms.
#pragma once

#include <QObject>
#include <QString>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "simulator/remote/run_mirror.h"

namespace tessera::gui {

/// How the last contact went.
struct RemoteNews {
  RemoteName name;               // with its run, once that is known
  std::filesystem::path folder;  // of the copy; empty while the run is not known
  Contact contact = Contact::unreached;
  QString fault;  // in words, unless reached
};

class RemoteCopy : public QObject {
  Q_OBJECT

 public:
  explicit RemoteCopy(QObject* parent = nullptr) : QObject(parent) {}
  ~RemoteCopy() override { end(); }

  /// Asks from now on, once a second; where nobody answers after 1 s to 16 s. A token that is
  /// refused ends it. What was kept before is kept no more.
  void keep(const RemoteName& name, const std::string& token, const std::filesystem::path& cache);
  void end();
  bool isKept() const { return kept_; }
  /// As `tessera signal` does on the run's host, before the next contact; told() says how it went.
  /// Precondition: isKept().
  void tell(RunSignal signal);
  /// What it was told is not done yet.
  bool isTelling() const { return telling_ > 0; }
  /// Of the run that is kept.
  const RemoteNews& news() const { return news_; }

 signals:
  /// A contact has ended, whichever way.
  void contacted();
  /// `fault` says why the run did not hear of it; empty = it did.
  void told(const QString& fault);

 private:
  void ask(const std::stop_token& stop, quint64 generation, RunMirror& mirror);
  void tellRun(const std::stop_token& stop, quint64 generation, RunMirror& mirror);
  bool rest(const std::stop_token& stop, std::chrono::seconds pause);
  void take(quint64 generation, const RemoteNews& news);
  void takeTold(quint64 generation, const QString& fault);

  quint64 generation_ = 0;
  bool kept_ = false;
  int telling_ = 0;
  RemoteNews news_;
  std::mutex mutex_;
  std::condition_variable_any wanted_more_;
  std::deque<RunSignal> wanted_;  // under the mutex: the thread takes them
  std::jthread thread_;           // last: it ends before anything else goes
};

/// The copy as the server has the run now; its folder. Throws Error: bad_input where the token is
/// refused, else io.
std::filesystem::path copied_once(const RemoteName& name, const std::string& token,
                                  const std::filesystem::path& cache);

}  // namespace tessera::gui
