// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/dropped_files.h"

#include <QDropEvent>
#include <QMimeData>
#include <QUrl>

#include "gui/document/file_kind.h"
#include "gui/document/text.h"

namespace tessera::gui {
namespace {

QStringList files_of(const QMimeData* data) {
  QStringList files;
  for (const QUrl& url : data->urls()) {
    if (url.isLocalFile()) files << url.toLocalFile();
  }
  return files;
}

class Drops : public QObject {
 public:
  explicit Drops(MainWindow& window) : QObject(&window), window_(window) {}

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    const bool enters = event->type() == QEvent::DragEnter || event->type() == QEvent::DragMove;
    if (!enters && event->type() != QEvent::Drop) return QObject::eventFilter(watched, event);
    auto* drop = static_cast<QDropEvent*>(event);
    const QStringList files = files_of(drop->mimeData());
    if (files.isEmpty()) {
      drop->ignore();
      return true;
    }
    drop->setDropAction(Qt::CopyAction);  // whatever is offered: the files stay where they are
    drop->accept();
    if (enters) return true;
    // Whoever they come from does not wait until they are read.
    QMetaObject::invokeMethod(
        this, [this, files] { openFiles(window_, files); }, Qt::QueuedConnection);
    return true;
  }

 private:
  MainWindow& window_;
};

void open_one(MainWindow& window, FileKind kind, const QString& path, bool& has_run) {
  switch (kind) {
    case FileKind::plan:
      if (window.openPlan(path)) window.showPage(&window.explore());
      break;
    case FileKind::project:
      window.changeProject(path);
      break;
    case FileKind::script:
      window.importPlan(path);
      break;
    case FileKind::trace:
      window.openTrace(path);
      break;
    case FileKind::run:
      if (has_run) {
        window.session().run()->addOther(run_of(path.toStdString()));
      } else {
        has_run = window.openRun(QString::fromStdString(run_of(path.toStdString()).string()));
      }
      break;
    case FileKind::model:
    case FileKind::cluster:
    case FileKind::workload:
    case FileKind::topology:
      window.explore().form()->choose(kind, path);
      window.showPage(&window.explore());
      break;
  }
}

}  // namespace

void takeDroppedFiles(MainWindow& window) {
  for (QWidget* child : window.findChildren<QWidget*>()) child->setAcceptDrops(false);
  window.setAcceptDrops(true);
  window.installEventFilter(new Drops(window));
}

void openFiles(MainWindow& window, const QStringList& paths) {
  Problems problems;
  bool has_run = false;
  for (const QString& path : paths) {
    if (const auto kind = kind_of(path.toStdString(), problems)) {
      open_one(window, *kind, path, has_run);
    }
  }
  if (problems.empty()) return;
  const QString others = window.session().document().file_problems;
  window.tell((others + "\n" + problemsText(problems)).trimmed());
}

}  // namespace tessera::gui
