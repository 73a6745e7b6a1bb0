// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run_views/remote_dialog.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QVBoxLayout>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "simulator/remote/serve_token.h"

namespace tessera::gui {
namespace {

constexpr int kTypingMs = 300;

}  // namespace

RemoteDialog::RemoteDialog(const QString& address, const std::string& token, QWidget* parent)
    : QDialog(parent),
      address_(new QLineEdit(address)),
      token_(new QLineEdit(QString::fromStdString(token))),
      runs_(new QListWidget),
      problem_(new QLabel) {
  setWindowTitle(Words::tr("Open a remote run"));
  resize(560, 320);
  address_->setAccessibleName(Words::tr("Address"));
  address_->setPlaceholderText(Words::tr("127.0.0.1:PORT, where the tunnel ends here"));
  token_->setAccessibleName(Words::tr("Token"));
  token_->setEchoMode(QLineEdit::Password);
  token_->setPlaceholderText(Words::tr("as tessera serve said it; or set %1").arg(kTokenVariable));
  runs_->setAccessibleName(Words::tr("Runs that are served there"));
  problem_->setAccessibleName(Words::tr("What is missing"));
  problem_->setTextFormat(Qt::PlainText);
  problem_->setWordWrap(true);
  auto* form = new QFormLayout;
  form->addRow(Words::tr("&Address"), address_);
  form->addRow(Words::tr("&Token"), token_);
  form->addRow(Words::tr("&Runs"), runs_);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  buttons->button(QDialogButtonBox::Cancel)->setAutoDefault(false);  // Enter is for the other one
  open_ = buttons->addButton(Words::tr("&Open"), QDialogButtonBox::AcceptRole);
  open_->setDefault(true);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form, 1);
  layout->addWidget(problem_);
  layout->addWidget(buttons);
  typing_.setSingleShot(true);
  typing_.setInterval(kTypingMs);
  connect(&typing_, &QTimer::timeout, this, &RemoteDialog::ask);
  connect(address_, &QLineEdit::textChanged, this, &RemoteDialog::edited);
  connect(token_, &QLineEdit::textChanged, this, &RemoteDialog::edited);
  connect(runs_, &QListWidget::currentRowChanged, this,
          [this](int row) { open_->setEnabled(row >= 0); });
  connect(runs_, &QListWidget::itemActivated, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  edited();
}

RemoteName RemoteDialog::name() const {
  RemoteName name =
      remote_name_from(address_->text().trimmed().toStdString()).value_or(RemoteName{});
  if (const QListWidgetItem* run = runs_->currentItem()) name.run = run->text().toStdString();
  return name;
}

std::string RemoteDialog::token() const { return token_->text().trimmed().toStdString(); }

// What was listed before is of another address or token.
void RemoteDialog::edited() {
  asking_.cancel();
  runs_->clear();
  open_->setEnabled(false);
  const QString address = address_->text().trimmed();
  const auto name = remote_name_from(address.toStdString());
  wanted_ = name ? QString::fromStdString(name->run) : QString();
  if (address.isEmpty()) {
    problem_->setText(Words::tr("An address is missing: 127.0.0.1:PORT."));
  } else if (!name) {
    problem_->setText(Words::tr("%1 is no 127.0.0.1:PORT or 127.0.0.1:PORT/RUN.").arg(address));
  } else if (token().empty()) {
    problem_->setText(Words::tr("A token is missing: 64 hexadecimal digits."));
  } else if (!is_token(token())) {
    problem_->setText(Words::tr("That is no token: it has %1 letters, not 64 hexadecimal digits.")
                          .arg(token_->text().trimmed().size()));
  } else {
    problem_->setText(Words::tr("Asking %1").arg(toText(address_of(*name))));
    typing_.start();
    return;
  }
  typing_.stop();
}

void RemoteDialog::ask() {
  stop_.request_stop();  // whoever was asked before
  stop_ = std::stop_source();
  asking_.start([port = name().port, token = token(),
                 stop = stop_.get_token()] { return served_runs(port, token, stop); },
                [this](const ServedRuns& runs) { take(runs); });
}

void RemoteDialog::take(const ServedRuns& runs) {
  problem_->setText(runs.contact != Contact::reached ? runs.fault
                    : runs.names.isEmpty()           ? Words::tr("No run is served there.")
                                                     : QString());
  runs_->addItems(runs.names);
  const int wanted = static_cast<int>(runs.names.indexOf(wanted_));
  if (!runs.names.isEmpty()) runs_->setCurrentRow(wanted < 0 ? 0 : wanted);
}

}  // namespace tessera::gui
