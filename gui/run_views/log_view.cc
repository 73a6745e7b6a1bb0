// SPDX-License-Identifier: GPL-3.0-or-later
// The end of the run's logs, of every step and of what it printed, which goes on while one looks at
// the end of it.
#include <QComboBox>
#include <QScrollBar>
#include <QVBoxLayout>
#include <algorithm>
#include <vector>

#include "gui/document/words.h"
#include "gui/views/fixed_text.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

/// A log that there is, and what it is.
struct Log {
  QString title;
  const QString* text = nullptr;
};

class LogView : public QWidget {
 public:
  explicit LogView(Session& session)
      : run_(*session.run()), which_(new QComboBox), text_(new QPlainTextEdit) {
    which_->setAccessibleName(Words::tr("Which log"));
    which_->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    which_->hide();
    showAsFixedText(*text_, Words::tr("Log of the run"));
    text_->setPlaceholderText(Words::tr(
        "No log is here. Every step has a line in log.txt of the run's folder. What a run prints "
        "is read from a file beside its folder: of the same name with .log behind it, or the one "
        "of its Slurm job."));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(2);
    layout->addWidget(which_, 0, Qt::AlignLeft);
    layout->addWidget(text_, 1);
    QScrollBar* bar = text_->verticalScrollBar();
    connect(bar, &QScrollBar::valueChanged, this,
            [this, bar](int value) { at_end_ = value == bar->maximum(); });
    connect(bar, &QScrollBar::rangeChanged, this, [this, bar](int, int most) {
      if (at_end_) bar->setValue(most);  // the text has found its room, or got another one
    });
    connect(which_, &QComboBox::currentIndexChanged, this, &LogView::showOther);
    connect(&run_, &RunFollower::folderChanged, this, &LogView::showOther);
    connect(&run_, &RunFollower::polled, this, &LogView::showLog);
  }

 protected:
  void showEvent(QShowEvent* event) override {
    QWidget::showEvent(event);
    showLog();
  }

 private:
  // That of every step first: it goes on.
  std::vector<Log> logs() const {
    std::vector<Log> logs;
    if (!run_.stepLog().isEmpty())
      logs.push_back({Words::tr("log.txt: every step"), &run_.stepLog()});
    if (!run_.log().isEmpty()) {
      logs.push_back({Words::tr("%1: what the run printed").arg(run_.logFile()), &run_.log()});
    }
    return logs;
  }

  // The one that was chosen stays while it is there.
  void offer(const std::vector<Log>& logs) {
    QStringList titles, known;
    for (const Log& log : logs) titles << log.title;
    for (int i = 0; i < which_->count(); ++i) known << which_->itemText(i);
    which_->setVisible(!logs.empty());
    if (titles == known) return;
    const QSignalBlocker quiet(which_);
    const QString chosen = which_->currentText();
    which_->clear();
    which_->addItems(titles);
    which_->setCurrentIndex(std::max(0, static_cast<int>(titles.indexOf(chosen))));
  }

  // From its end on.
  void showOther() {
    at_end_ = true;
    showLog();
  }

  void showLog() {
    if (!isVisible()) return;
    const std::vector<Log> all = logs();
    offer(all);
    const int at = which_->currentIndex();
    const QString now = at < 0 ? QString() : *all[static_cast<std::size_t>(at)].text;
    if (now == shown_) return;
    shown_ = now;
    QScrollBar* bar = text_->verticalScrollBar();
    const int before = bar->value();
    const bool follows = at_end_;
    text_->setPlainText(shown_);
    at_end_ = follows;
    bar->setValue(follows ? bar->maximum() : before);
  }

  RunFollower& run_;
  QComboBox* which_;
  QPlainTextEdit* text_;
  QString shown_;
  bool at_end_ = true;  // it is looked at, and what is added comes into sight
};

const RegisteredView kLogView({"log", Place::run_tabs, 2, 1, QT_TRANSLATE_NOOP("Words", "Log"),
                               [](Session& session) -> QWidget* { return new LogView(session); }});

}  // namespace
}  // namespace tessera::gui
