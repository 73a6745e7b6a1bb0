// SPDX-License-Identifier: GPL-3.0-or-later
// tessera-gui: the window, or its views as pictures without one.
#include <QApplication>
#include <QStyleFactory>
#include <cstdio>
#include <cstdlib>

#include "gui/pages/arguments.h"
#include "gui/pages/export_views.h"
#include "gui/pages/main_window.h"

namespace {

constexpr double kExportWaitSeconds = 120;

int export_all(tessera::gui::MainWindow& window, const QString& folder) {
  using tessera::ExitCode;
  if (!tessera::gui::waitForPlans(window.session(), kExportWaitSeconds)) {
    throw tessera::Error(ExitCode::internal, "the search did not end");
  }
  const QStringList written = tessera::gui::exportViews(window, folder);
  for (const QString& file : written) std::printf("%s\n", qPrintable(file));
  return static_cast<int>(written.isEmpty() ? ExitCode::check_failed : ExitCode::ok);
}

}  // namespace

int main(int argc, char** argv) {
  // Without a display pictures can still be made, and --help read.
  const bool no_display = !qEnvironmentVariableIsSet("DISPLAY") &&
                          !qEnvironmentVariableIsSet("WAYLAND_DISPLAY") &&
                          !qEnvironmentVariableIsSet("QT_QPA_PLATFORM");
  if (no_display) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  QApplication::setApplicationName("tessera-gui");
  QApplication::setApplicationVersion(TESSERA_VERSION);
  QApplication::setStyle(QStyleFactory::create("Fusion"));
  const auto arguments = tessera::gui::parse_arguments(QApplication::arguments());
  if (no_display && arguments.export_folder.isEmpty()) {
    std::fputs(
        "tessera-gui: no display (neither DISPLAY nor WAYLAND_DISPLAY is set); --export FOLDER "
        "makes "
        "pictures without one\n",
        stderr);
    return static_cast<int>(tessera::ExitCode::missing);
  }
  tessera::gui::MainWindow window;
  QString problems;
  QObject::connect(&window.session(), &tessera::gui::Session::problemsFound,
                   [&](const QString& text) { problems += text + "\n"; });
  try {
    if (!arguments.plan.isEmpty()) window.openPlan(arguments.plan);
    if (!arguments.run.isEmpty()) window.openRun(arguments.run);
    // Pictures of something else than was asked for help nobody.
    if (!arguments.export_folder.isEmpty() && !problems.isEmpty()) {
      std::fputs(qPrintable(problems), stderr);
      return static_cast<int>(tessera::ExitCode::bad_input);
    }
    if (arguments.has_query || !window.session().plan()) {
      window.explore().form()->setQuery(arguments.query);
    }
    if (arguments.export_folder.isEmpty()) {
      window.show();
      const int code = QApplication::exec();
      std::quick_exit(code);  // a search that still runs is not waited for
    }
    const int code = export_all(window, arguments.export_folder);
    std::fputs(qPrintable(problems), stderr);
    return problems.isEmpty() ? code : static_cast<int>(tessera::ExitCode::bad_input);
  } catch (const tessera::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
