// SPDX-License-Identifier: GPL-3.0-or-later
// What the run printed: the end of its log, which goes on while one looks at the end of it.
#include <QFontDatabase>
#include <QPlainTextEdit>
#include <QScrollBar>

#include "gui/document/words.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

class LogView : public QPlainTextEdit {
 public:
  explicit LogView(Session& session) : run_(*session.run()) {
    setReadOnly(true);
    setTabChangesFocus(true);
    setLineWrapMode(NoWrap);
    setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    setAccessibleName(Words::tr("Log of the run"));
    setPlaceholderText(
        Words::tr("No log is here. What a run prints is read from a file beside its "
                  "folder, of the same name with .log behind it."));
    connect(&run_, &RunFollower::folderChanged, this, &LogView::showLog);
    connect(&run_, &RunFollower::polled, this, &LogView::showLog);
  }

 protected:
  void showEvent(QShowEvent* event) override {
    QPlainTextEdit::showEvent(event);
    showLog();
  }

 private:
  void showLog() {
    if (!isVisible() || run_.log() == shown_) return;
    shown_ = run_.log();
    QScrollBar* bar = verticalScrollBar();
    const int at = bar->value();
    const bool follows = at == bar->maximum();
    setPlainText(shown_);
    bar->setValue(follows ? bar->maximum() : at);
  }

  RunFollower& run_;
  QString shown_;
};

const RegisteredView kLogView({"log", Place::run_tabs, 2, 1, QT_TRANSLATE_NOOP("Words", "Log"),
                               [](Session& session) -> QWidget* { return new LogView(session); }});

}  // namespace
}  // namespace tessera::gui
