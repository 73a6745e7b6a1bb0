// SPDX-License-Identifier: GPL-3.0-or-later
// The plan as the command line reports it, and how it was proven.
#include <QFontDatabase>
#include <QPlainTextEdit>

#include "gui/document/headline.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"
#include "gui/views/view.h"
#include "planner/explain/report.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"

namespace tessera::gui {
namespace {

QWidget* makeReport(Session& session) {
  auto* text = new QPlainTextEdit;
  text->setReadOnly(true);
  text->setTabChangesFocus(true);
  text->setLineWrapMode(QPlainTextEdit::NoWrap);
  text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  text->setAccessibleName(Words::tr("Report of the plan and its proof"));
  const Session* shown = &session;
  QObject::connect(shown, &Session::planSelected, text, [=](const Plan& plan) {
    const auto& calibration = shown->calibration();
    const std::string report = describe(plan, calibration ? &*calibration : nullptr);
    text->setPlainText(proof_text(plan, shown->document().seconds, shown->fixed()) + "\n\n" +
                       saidLines(report));
  });
  return text;
}

const RegisteredView kReportView({"report", Place::tabs, 2, 1, QT_TRANSLATE_NOOP("Words", "Report"),
                                  makeReport, nullptr, [](Session& session) {
                                    const auto& plan = session.plan();
                                    return plan ? to_json(*plan) : std::string();
                                  }});

}  // namespace
}  // namespace tessera::gui
