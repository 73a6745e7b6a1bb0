// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/application.h"

#include <cstdio>
#include <exception>
#include <new>

#include "cost_models/documents/problem.h"
#include "gui/document/text.h"
#include "gui/document/words.h"

namespace tessera::gui {

bool Application::notify(QObject* receiver, QEvent* event) {
  try {
    return QApplication::notify(receiver, event);
  } catch (const Error& error) {
    told(error.problems().empty() ? QString(error.what()) : problemsText(error.problems()));
  } catch (const std::bad_alloc&) {
    told(Words::tr("there is not enough memory for it"));
  } catch (const std::exception& error) {
    told(error.what());
  }
  return false;
}

void Application::told(const QString& what) {
  std::fprintf(stderr, "%s\n", qPrintable(what));
  if (tell_) tell_(Words::tr("This did not work, and the window goes on: %1").arg(what));
}

}  // namespace tessera::gui
