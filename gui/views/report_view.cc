// SPDX-License-Identifier: GPL-3.0-or-later
// The plan as the command line reports it, and how it was proven.
#include "gui/document/words.h"
#include "gui/explore/shown_answer.h"
#include "gui/translations/said.h"
#include "gui/views/fixed_text.h"
#include "gui/views/view.h"
#include "planner/explain/report.h"
#include "planner/plan/plan.h"
#include "planner/plan/plan_json.h"

namespace tessera::gui {
namespace {

/// Written while it is looked at: a report of many ranks takes a while.
class ReportView : public QPlainTextEdit {
 public:
  explicit ReportView(Session& session) : session_(session) {
    showAsFixedText(*this, Words::tr("Report of the plan and its proof"));
    setLineWrapMode(QPlainTextEdit::WidgetWidth);  // it stands in a narrow column
    connect(&session, &Session::documentChanged, this, &ReportView::write);
  }

 protected:
  void showEvent(QShowEvent* event) override {
    QPlainTextEdit::showEvent(event);
    write();
  }

 private:
  // What is compared is known later than the plan. What is known while the plan does not answer the
  // question is of the question.
  void write() {
    const SharedPlan& plan = session_.plan();
    const bool stale = session_.document().stale();
    if (!plan || !isVisible() || (stale && plan == plan_)) return;
    const QString details = stale ? QString() : shown_answer(session_).details();
    if (plan == plan_ && details == details_) return;
    if (plan != plan_) {
      const auto& calibration = session_.calibration();
      report_ = saidLines(describe(*plan, calibration ? &*calibration : nullptr));
    }
    plan_ = plan;
    details_ = details;
    setPlainText(details_.isEmpty() ? report_ : details_ + "\n\n" + report_);
  }

  Session& session_;
  SharedPlan plan_;  // that it is of
  QString details_, report_;
};

const RegisteredView kReportView(
    {"report", Place::tabs, 2, 1, QT_TRANSLATE_NOOP("Words", "Report"),
     [](Session& session) -> QWidget* { return new ReportView(session); }, nullptr,
     [](Session& session) {
       const auto& plan = session.plan();
       return plan ? to_json(*plan) : std::string();
     }});

}  // namespace
}  // namespace tessera::gui
