// SPDX-License-Identifier: GPL-3.0-or-later
// The plan as the command line reports it, and how it was proven.
#include <QFontDatabase>
#include <QPlainTextEdit>
#include <memory>

#include "gui/document/words.h"
#include "gui/explore/shown_answer.h"
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
  Session* shown = &session;
  // What is compared is known later than the plan.
  const auto above = std::make_shared<QString>(), below = std::make_shared<QString>();
  const auto show = [=] {
    if (!shown->plan()) return;
    const QString details = shown_answer(*shown).details();
    if (*above == details) return;
    *above = details;
    text->setPlainText(details + "\n\n" + *below);
  };
  QObject::connect(shown, &Session::planSelected, text, [=](const Plan& plan) {
    const auto& calibration = shown->calibration();
    *below = saidLines(describe(plan, calibration ? &*calibration : nullptr));
    above->clear();
    show();
  });
  QObject::connect(shown, &Session::documentChanged, text, show);
  return text;
}

const RegisteredView kReportView({"report", Place::tabs, 2, 1, QT_TRANSLATE_NOOP("Words", "Report"),
                                  makeReport, nullptr, [](Session& session) {
                                    const auto& plan = session.plan();
                                    return plan ? to_json(*plan) : std::string();
                                  }});

}  // namespace
}  // namespace tessera::gui
