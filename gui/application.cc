// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/application.h"

#include <cstdio>

#include "gui/document/text.h"
#include "gui/document/words.h"

namespace tessera::gui {

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
