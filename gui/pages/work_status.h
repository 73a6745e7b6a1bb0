// SPDX-License-Identifier: GPL-3.0-or-later
// What is worked out in the background and takes longer than a moment: what it is, for how long it
// has been, and a button that ends the wait; and what was ended so, with one that goes on with it.
//
// Hidden while there is nothing of the kind. GUI thread.
#pragma once

#include <QElapsedTimer>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QString>
#include <QTimer>
#include <QWidget>
#include <functional>
#include <vector>

namespace tessera::gui {

/// Work of somebody else, who outlives the line.
struct BackgroundWork {
  QString name;  // "Simulating the step"
  std::function<bool()> is_busy;
  std::function<void()> cancel;
  /// It was cancelled, and nothing took its place since.
  std::function<bool()> is_cancelled;
  std::function<void()> go_on;
  /// What it is and how far; where that is not known, empty: its name and for how long.
  std::function<QString()> progress{};
};

class WorkStatus : public QWidget {
  Q_OBJECT

 public:
  explicit WorkStatus(std::vector<BackgroundWork> work, QWidget* parent = nullptr);

  /// Some of the work began or ended.
  void look();
  /// Something takes longer than a moment.
  bool isWaiting() const { return waiting_; }
  /// Ends the wait for all of it.
  void cancel();

 signals:
  /// isWaiting() changed.
  void changed();

 private:
  void goOn();
  const BackgroundWork* first(bool busy) const;

  std::vector<BackgroundWork> work_;
  bool waiting_ = false;
  QElapsedTimer since_;
  QTimer tick_;
  QLabel* says_;
  QProgressBar* moves_;
  QPushButton *cancel_, *go_on_;
};

}  // namespace tessera::gui
