// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/report/report.h"

#include "cost_models/documents/document.h"
#include "cost_models/documents/utc_now.h"
#include "gui/document/headline.h"
#include "gui/document/words.h"
#include "gui/report/markup.h"
#include "gui/report/sections.h"
#include "gui/report/style.h"
#include "planner/plan/plan.h"

namespace tessera::gui {
namespace {

constexpr const char* kNothingIsFetched =
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'";

QString last_of(const std::string& path) {
  return QString::fromStdString(path).section('/', -1, -1, QString::SectionSkipEmpty);
}

QString title_of_report(Session& session) {
  const Document& document = session.document();
  if (document.valid()) {
    return planTitle(*document.plan);
  }
  if (document.infeasible()) {
    return Words::tr("%1 on %2")
        .arg(last_of(document.question.model), last_of(document.question.cluster));
  }
  return last_of(session.run()->folder().string());
}

void add_head(Markup& to, const QString& title) {
  to.open("head");
  to.empty("meta", {{"charset", "utf-8"}});
  to.empty("meta", {{"http-equiv", "Content-Security-Policy"}, {"content", kNothingIsFetched}});
  to.empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  to.element("title", title + " - Tessera");
  to.element("style", report_style());
  to.close();
}

}  // namespace

bool has_report(Session& session) {
  const Document& document = session.document();
  return document.valid() || document.infeasible() || !session.run()->folder().empty();
}

QString report_of(Session& session, const QString& written) {
  const Document& document = session.document();
  const QString title = title_of_report(session);
  Markup to;
  to.open("html", {{"xmlns", "http://www.w3.org/1999/xhtml"}, {"lang", Words::tr("en")}});
  add_head(to, title);
  to.open("body");
  to.element("h1", title);
  if (document.valid()) {
    add_plan(to, session);
  } else if (document.infeasible()) {
    add_shortage(to, document);
  }
  if (!session.run()->folder().empty()) add_run(to, session);
  QString from = Words::tr("Written %1").arg(written);
  if (document.valid()) {
    const Provenance& made = document.plan->provenance;
    from +=
        Words::tr("; planned %1 by Tessera %2 with the constants %3")
            .arg(QString::fromStdString(made.created), QString::fromStdString(made.tessera_version),
                 QString::fromStdString(made.calibration));
  }
  to.element("footer", from + ".");
  to.close();
  to.close();
  return to.page() + "\n";
}

void write_report(Session& session, const QString& file) {
  const QString page = report_of(session, QString::fromStdString(utc_now()));
  write_text_file(file.toStdString(), page.toStdString());
}

}  // namespace tessera::gui
