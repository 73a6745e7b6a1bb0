// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/pages/command_palette.h"

#include <QDialog>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QRegularExpression>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/document/words.h"

namespace tessera::gui {
namespace {

void collect(const QList<QAction*>& actions, QList<QAction*>& commands) {
  for (QAction* action : actions) {
    if (action->menu() != nullptr) {
      collect(action->menu()->actions(), commands);
    } else if (!action->isSeparator()) {
      commands << action;
    }
  }
}

/// Up and down move in the list while the cursor stays in the line.
class Arrows : public QObject {
 public:
  Arrows(QListWidget* list, QObject* parent) : QObject(parent), list_(list) {}

 protected:
  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() != QEvent::KeyPress) return false;
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key != Qt::Key_Up && key != Qt::Key_Down) return false;
    const int row = list_->currentRow() + (key == Qt::Key_Down ? 1 : -1);
    list_->setCurrentRow(qBound(0, row, list_->count() - 1));
    return true;
  }

 private:
  QListWidget* list_;
};

// Words in any order: "plan save".
bool isMeant(const QString& name, const QString& typed) {
  const QStringList words = typed.split(' ', Qt::SkipEmptyParts);
  return std::all_of(words.begin(), words.end(),
                     [&](const QString& word) { return name.contains(word, Qt::CaseInsensitive); });
}

void fill(QListWidget& list, const QList<QAction*>& commands, const QString& typed) {
  list.clear();
  for (QAction* action : commands) {
    const QString name = nameOf(*action);
    if (!action->isEnabled() || !isMeant(name, typed)) continue;
    const QString keys = action->shortcut().toString(QKeySequence::NativeText);
    auto* item = new QListWidgetItem(keys.isEmpty() ? name : name + "    " + keys, &list);
    item->setData(Qt::UserRole, QVariant::fromValue(action));
  }
  list.setCurrentRow(0);
}

}  // namespace

QList<QAction*> commandsOf(const QMenuBar& menus) {
  QList<QAction*> commands;
  collect(menus.actions(), commands);
  return commands;
}

// In a menu within a menu an action is told by that, too: "Language: English".
QString nameOf(const QAction& action) {
  QString name = action.text();
  for (const QObject* place : action.associatedObjects()) {
    const auto* menu = qobject_cast<const QMenu*>(place);
    if (menu != nullptr && qobject_cast<const QMenu*>(menu->parentWidget()) != nullptr) {
      name = Words::tr("%1: %2").arg(menu->title(), name);
    }
  }
  static const QRegularExpression access_key(R"(\(&.\))");  // "打开(&O)"
  return name.remove(access_key).remove('&').remove("...");
}

void runCommand(QWidget& parent, const QList<QAction*>& commands) {
  QDialog dialog(&parent);
  dialog.setWindowTitle(Words::tr("Do anything"));
  auto* line = new QLineEdit;
  line->setPlaceholderText(Words::tr("Part of a command's name"));
  line->setAccessibleName(Words::tr("Command"));
  auto* list = new QListWidget;
  list->setAccessibleName(Words::tr("Commands"));
  auto* layout = new QVBoxLayout(&dialog);
  layout->addWidget(line);
  layout->addWidget(list);
  dialog.resize(420, 340);
  line->installEventFilter(new Arrows(list, &dialog));
  QObject::connect(line, &QLineEdit::textChanged, list,
                   [=](const QString& part) { fill(*list, commands, part); });
  QObject::connect(line, &QLineEdit::returnPressed, &dialog, &QDialog::accept);
  QObject::connect(list, &QListWidget::itemActivated, &dialog, &QDialog::accept);
  fill(*list, commands, {});
  if (dialog.exec() != QDialog::Accepted || list->currentItem() == nullptr) return;
  list->currentItem()->data(Qt::UserRole).value<QAction*>()->trigger();
}

}  // namespace tessera::gui
