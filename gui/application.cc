// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/application.h"

#include <QAbstractItemView>
#include <QHeaderView>
#include <QHelpEvent>
#include <QLabel>
#include <QMessageBox>
#include <QTextDocument>
#include <QToolTip>
#include <cstdio>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/views/fixed_text.h"

namespace tessera::gui {
namespace {

// As Qt finds it.
QString tipOf(const QWidget& widget, const QPoint& at) {
  const auto* view = qobject_cast<QAbstractItemView*>(widget.parentWidget());
  if (view == nullptr || view->viewport() != &widget || view->model() == nullptr) {
    return widget.toolTip();
  }
  const auto* header = qobject_cast<const QHeaderView*>(view);
  if (header == nullptr) return view->indexAt(at).data(Qt::ToolTipRole).toString();
  const int section = header->logicalIndexAt(at);
  if (section < 0) return {};
  return view->model()->headerData(section, header->orientation(), Qt::ToolTipRole).toString();
}

}  // namespace

Application::Application(int& argc, char** argv) : QApplication(argc, argv) {
  installEventFilter(this);
}

bool Application::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Polish && qobject_cast<QMessageBox*>(watched->parent()) != nullptr) {
    auto* label = qobject_cast<QLabel*>(watched);
    if (label != nullptr) label->setTextFormat(Qt::PlainText);
  }
  auto* widget = qobject_cast<QWidget*>(watched);
  if (event->type() != QEvent::ToolTip || widget == nullptr) return false;
  const auto* help = static_cast<QHelpEvent*>(event);
  const QString tip = tipOf(*widget, help->pos());
  if (!Qt::mightBeRichText(tip)) return false;
  QToolTip::showText(help->globalPos(), plainTip(tip), widget);
  return true;
}

bool Application::notify(QObject* receiver, QEvent* event) {
  try {
    return QApplication::notify(receiver, event);
  } catch (const Error& error) {
    told(error, error.code());
  } catch (const std::exception& fault) {
    told(fault, ExitCode::internal);
  }
  return false;
}

void Application::told(const std::exception& fault, ExitCode code) {
  if (fault_ == ExitCode::ok) fault_ = code;
  const QString what = faultText(fault);
  std::fprintf(stderr, "%s\n", qPrintable(what));
  if (tell_) tell_(Words::tr("This did not work, and the window goes on: %1").arg(what));
}

}  // namespace tessera::gui
