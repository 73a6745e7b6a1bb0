// SPDX-License-Identifier: GPL-3.0-or-later
// The samples of the run that is followed, read in the background once somebody looks at them.
//
// Owns the model it fills. GUI thread.
#pragma once

#include <QObject>
#include <filesystem>
#include <memory>
#include <optional>

#include "gui/samples/sample_model.h"
#include "gui/samples/sample_reader.h"
#include "gui/threads/newest.h"

namespace tessera::gui {

class SampleFollower : public QObject {
  Q_OBJECT

 public:
  explicit SampleFollower(QObject* parent = nullptr);

  /// Another run's folder; nothing of it is read before want().
  void follow(const std::filesystem::path& run);
  /// Somebody looks at the samples.
  void want();
  /// The last step whose samples are kept; nullopt = the newest, which are followed.
  void showUpTo(std::optional<std::int64_t> step);
  const std::optional<std::int64_t>& upTo() const { return up_to_; }
  /// Reads what is new, where it is wanted.
  void poll();

  SampleModel* model() { return &model_; }
  bool isBusy() const { return work_.isBusy(); }
  /// Of which run; empty = none.
  const std::filesystem::path& folder() const { return run_; }
  /// "20,000 samples of steps 3,100 to 3,412; earlier ones: choose a step".
  QString extent() const;
  /// What is wrong with the file, place by place; empty = nothing that was read.
  const QString& problems() const { return problems_; }

 signals:
  /// Other samples, or problems, or what is read began or ended.
  void changed();

 private:
  void begin();
  void take(SampleNews news);

  std::filesystem::path run_;
  std::optional<std::int64_t> up_to_;
  std::shared_ptr<SampleReader> reader_;
  SampleModel model_;
  bool wanted_ = false, read_ = false, earlier_ = false, later_ = false;
  QString problems_;
  Newest<SampleNews> work_;  // last: its work ends before anything else goes
};

}  // namespace tessera::gui
