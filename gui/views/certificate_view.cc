// SPDX-License-Identifier: GPL-3.0-or-later
// The plan and its certificate as text.
#include <QFontDatabase>
#include <QPlainTextEdit>

#include "gui/views/view.h"
#include "planner/explain/report.h"

namespace tessera::gui {
namespace {

QWidget* makeCertificate(Session& session) {
  auto* text = new QPlainTextEdit;
  text->setReadOnly(true);
  text->setLineWrapMode(QPlainTextEdit::NoWrap);
  text->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  text->setAccessibleName("Plan and certificate");
  QObject::connect(&session, &Session::planSelected, text, [text](const Plan& plan) {
    text->setPlainText(QString::fromStdString(describe(plan)));
  });
  return text;
}

const RegisteredView kCertificateView({"certificate", Place::left, 1, 260,
                                       "<b>Plan and certificate</b>", makeCertificate});

}  // namespace
}  // namespace tessera::gui
