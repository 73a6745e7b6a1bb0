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
#include "gui/translations/language.h"

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

constexpr char kWhyNot[] = "why_not";  // a property of actions

bool canBeDone(const QListWidgetItem* item) {
  return item != nullptr && item->flags().testFlag(Qt::ItemIsEnabled);
}

/// Up and down move in the list while the cursor stays in the line, past what cannot be done.
class Arrows : public QObject {
 public:
  Arrows(QListWidget* list, QObject* parent) : QObject(parent), list_(list) {}

 protected:
  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() != QEvent::KeyPress) return false;
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key != Qt::Key_Up && key != Qt::Key_Down) return false;
    const int by = key == Qt::Key_Down ? 1 : -1;
    int row = list_->currentRow() + by;
    while (list_->item(row) != nullptr && !canBeDone(list_->item(row))) row += by;
    if (list_->item(row) != nullptr) list_->setCurrentRow(row);
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

// In a menu within a menu an action is told by that, too: "Language: English".
QString spelled(const QAction& action, QString (*as)(const QString&)) {
  QString name = as(action.text());
  for (const QObject* place : action.associatedObjects()) {
    const auto* menu = qobject_cast<const QMenu*>(place);
    if (menu != nullptr && qobject_cast<const QMenu*>(menu->parentWidget()) != nullptr) {
      name = Words::tr("%1: %2").arg(as(menu->title()), name);
    }
  }
  static const QRegularExpression access_key(R"(\(&.\))");  // "打开(&O)"
  return name.remove(access_key).remove('&').remove("...");
}

QString asShown(const QString& text) { return text; }

void fill(QListWidget& list, const QList<QAction*>& commands, const QString& typed) {
  list.clear();
  QListWidgetItem* first = nullptr;
  for (QAction* action : commands) {
    const QString name = nameOf(*action), why = whyNot(*action);
    const bool told = action->isEnabled() || !why.isEmpty();
    if (!told || !(isMeant(name, typed) || isMeant(spelled(*action, englishOf), typed))) continue;
    const QString keys = action->shortcut().toString(QKeySequence::NativeText);
    QString text = keys.isEmpty() ? name : name + "    " + keys;
    if (!action->isEnabled()) text += "    " + why;
    auto* item = new QListWidgetItem(text, &list);
    item->setData(Qt::UserRole, QVariant::fromValue(action));
    item->setToolTip(why);
    if (!action->isEnabled()) item->setFlags(Qt::NoItemFlags);
    if (first == nullptr && action->isEnabled()) first = item;
  }
  list.setCurrentItem(first);
}

}  // namespace

QList<QAction*> commandsOf(const QMenuBar& menus) {
  QList<QAction*> commands;
  collect(menus.actions(), commands);
  return commands;
}

QString nameOf(const QAction& action) { return spelled(action, asShown); }

void allow(QAction& action, bool allowed, const QString& otherwise) {
  action.setEnabled(allowed);
  action.setProperty(kWhyNot, allowed ? QString() : otherwise);
}

QString whyNot(const QAction& action) {
  return action.isEnabled() ? QString() : action.property(kWhyNot).toString();
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
  dialog.resize(560, 400);
  line->installEventFilter(new Arrows(list, &dialog));
  QObject::connect(line, &QLineEdit::textChanged, list,
                   [=](const QString& part) { fill(*list, commands, part); });
  const auto take = [&dialog, list] {
    if (canBeDone(list->currentItem())) dialog.accept();
  };
  QObject::connect(line, &QLineEdit::returnPressed, &dialog, take);
  QObject::connect(list, &QListWidget::itemActivated, &dialog, take);
  fill(*list, commands, {});
  if (dialog.exec() != QDialog::Accepted || !canBeDone(list->currentItem())) return;
  list->currentItem()->data(Qt::UserRole).value<QAction*>()->trigger();
}

}  // namespace tessera::gui
