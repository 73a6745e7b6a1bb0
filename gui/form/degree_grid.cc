// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/form/degree_grid.h"

#include <QAbstractItemView>
#include <QKeyEvent>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/form/marked_value.h"

namespace tessera::gui {
namespace {

constexpr std::array kFields{Field::tp, Field::pp, Field::dp, Field::gpus};
constexpr std::array kMoreFields{Field::zero, Field::cp, Field::ep, Field::tokens};
constexpr int kPauseMs = 250;

/// "actor.tp".
std::string nameOf(const DegreeGrid::Key& key) {
  return std::string(name_of(key.first)) + "." + std::string(name_of(key.second));
}

std::string wordOf(const DegreeGrid::Key& key, const QString& value) {
  return nameOf(key) + "=" + value.toStdString();
}

QStringList valuesOf(Field field) {
  if (field == Field::zero) return {"", "0", "1", "2", "3"};
  if (field == Field::tokens) return {"", "4096", "8192", "16384", "32768", "65536"};
  return {"", "1", "2", "4", "8", "16", "32", "64"};
}

/// A rollout is served: it has neither stages nor anything that trains.
bool hasField(Role role, Field field) {
  const bool trains =
      field == Field::pp || field == Field::zero || field == Field::cp || field == Field::tokens;
  return role != Role::rollout || !trains;
}

}  // namespace

DegreeGrid::DegreeGrid(QWidget* parent)
    : QWidget(parent), more_(new QToolButton), rest_(new QWidget), why_(new QLabel) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* grid = new QGridLayout;
  layout->addLayout(grid);
  addRoles(grid, kFields);
  more_->setText(Words::tr("ZeRO, cp, ep, tokens"));
  more_->setToolTip(
      Words::tr("ZeRO stage, context and expert parallelism, tokens of a micro-batch"));
  more_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  more_->setAutoRaise(true);
  more_->setCheckable(true);
  layout->addWidget(more_);
  auto* rest_grid = new QGridLayout(rest_);
  rest_grid->setContentsMargins(0, 0, 0, 0);
  addRoles(rest_grid, kMoreFields);
  layout->addWidget(rest_);
  showRest(false);
  connect(more_, &QToolButton::toggled, this, &DegreeGrid::showRest);
  why_->setWordWrap(true);
  why_->setTextFormat(Qt::PlainText);
  why_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  why_->setAccessibleName(Words::tr("Why a degree cannot be"));
  why_->setObjectName("why");
  why_->hide();
  layout->addWidget(why_);
  pause_.setSingleShot(true);
  pause_.setInterval(kPauseMs);
  connect(&pause_, &QTimer::timeout, this, &DegreeGrid::look);
  connect(&checks_, &SettingChecks::changed, this, &DegreeGrid::checked);
}

void DegreeGrid::addRoles(QGridLayout* grid, std::span<const Field> fields) {
  for (std::size_t c = 0; c < fields.size(); ++c) {
    grid->addWidget(new QLabel(toText(name_of(fields[c]))), 0, static_cast<int>(c) + 1,
                    Qt::AlignHCenter);
  }
  for (std::size_t r = 0; r < kEveryRole.size(); ++r) {
    const int row = static_cast<int>(r) + 1;
    grid->addWidget(new QLabel(toText(name_of(kEveryRole[r]))), row, 0);
    for (std::size_t c = 0; c < fields.size(); ++c) {
      if (!hasField(kEveryRole[r], fields[c])) continue;
      grid->addWidget(addBox({kEveryRole[r], fields[c]}), row, static_cast<int>(c) + 1);
    }
  }
}

QComboBox* DegreeGrid::addBox(const Key& key) {
  auto* box = new QComboBox;
  box->setEditable(true);
  box->setCompleter(nullptr);  // 3 is 3, not the beginning of 32
  box->setInsertPolicy(QComboBox::NoInsert);
  box->addItems(valuesOf(key.second));
  box->view()->setMinimumWidth(box->fontMetrics().horizontalAdvance("0000000"));
  box->setMinimumContentsLength(2);
  box->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  box->setAccessibleName(QString::fromStdString(nameOf(key)));
  box->installEventFilter(this);  // it has the focus for its line, too
  box->view()->installEventFilter(this);
  boxes_[key] = box;
  connect(box, &QComboBox::currentTextChanged, this, &DegreeGrid::changed);
  connect(box, &QComboBox::textHighlighted, this,
          [this, key](const QString& value) { say(key, value); });
  return box;
}

DegreeGrid::Degrees DegreeGrid::degrees() const {
  Degrees degrees;
  for (const auto& [key, box] : boxes_) {
    const QString text = box->currentText().trimmed();
    if (!text.isEmpty()) degrees[key] = text;
  }
  return degrees;
}

void DegreeGrid::setDegrees(const Degrees& degrees) {
  for (auto& [key, box] : boxes_) {
    const auto found = degrees.find(key);
    const QSignalBlocker quiet(box);
    box->setCurrentText(found == degrees.end() ? QString() : found->second);
  }
  const bool more = std::any_of(degrees.begin(), degrees.end(), [](const auto& degree) {
    return std::find(kMoreFields.begin(), kMoreFields.end(), degree.first.second) !=
           kMoreFields.end();
  });
  if (more) showRest(true);  // what is fixed is in sight
}

// Whoever fills a form blocks the button's signal.
void DegreeGrid::showRest(bool shown) {
  rest_->setVisible(shown);
  more_->setChecked(shown);
  more_->setArrowType(shown ? Qt::DownArrow : Qt::RightArrow);
}

void DegreeGrid::setRoles(const std::vector<Role>& roles) {
  for (auto& [key, box] : boxes_) {
    const bool present = std::find(roles.begin(), roles.end(), key.first) != roles.end();
    const QSignalBlocker quiet(box);
    if (!present) box->setCurrentText({});
    box->setEnabled(present);
  }
}

void DegreeGrid::setQuestion(const PlanQuery& question) {
  question_ = question;
  checks_.setQuestion(question);
  if (looked_at_) pause_.start();
}

// The values of the box that has the focus.
void DegreeGrid::look() {
  if (!looked_at_) return;
  const QComboBox* box = boxes_.at(*looked_at_);
  std::vector<std::string> values;
  for (int item = 1; item < box->count(); ++item) {
    values.push_back(box->itemText(item).toStdString());
  }
  checks_.setQuestion(question_);
  checks_.want(nameOf(*looked_at_), values);
}

void DegreeGrid::checked(const QString& name) {
  for (const auto& [key, box] : boxes_) {
    if (name.isEmpty() || name.toStdString() == nameOf(key)) mark(key);
  }
  if (!looked_at_) return;
  const QComboBox* box = boxes_.at(*looked_at_);
  const QString pointed =
      box->view()->isVisible() ? box->view()->currentIndex().data().toString() : box->currentText();
  all_ ? sayAll(*looked_at_) : say(*looked_at_, pointed);
}

void DegreeGrid::mark(const Key& key) {
  QComboBox* box = boxes_.at(key);
  const QSignalBlocker quiet(box);
  const QString typed = box->currentText();
  QStringList all;
  for (int item = 1; item < box->count(); ++item) {
    const std::string word = wordOf(key, box->itemText(item));
    const auto why = checks_.against(word);
    const QString sentence = why && !why->isEmpty() ? refusedSentence(word, *why) : QString();
    markValue(*box, item, sentence);
    if (!sentence.isEmpty()) all << sentence;
  }
  box->setToolTip(all.join("\n"));
  // A box whose chosen item changes writes that item over what was typed since.
  if (box->currentText() != typed) box->setEditText(typed);
}

void DegreeGrid::say(const Key& key, const QString& value) {
  all_ = false;
  if (!checks_.refused().isEmpty()) return tell(checks_.refused());
  const std::string word = wordOf(key, value);
  const auto why = checks_.against(word);
  tell(why && !why->isEmpty() ? refusedSentence(word, *why) : QString());
}

void DegreeGrid::sayAll(const Key& key) {
  all_ = true;
  if (!checks_.refused().isEmpty()) return tell(checks_.refused());
  const QComboBox* box = boxes_.at(key);
  QStringList lines, open;
  for (int item = 1; item < box->count(); ++item) {
    const std::string word = wordOf(key, box->itemText(item));
    const auto why = checks_.against(word);
    if (!why) open << box->itemText(item);
    if (why && !why->isEmpty()) lines << refusedSentence(word, *why);
  }
  if (!open.isEmpty()) lines << Words::tr("still checking %1").arg(open.join(", "));
  tell(lines.isEmpty() ? Words::tr("Every value of %1 can be.").arg(box->accessibleName())
                       : lines.join("\n"));
}

void DegreeGrid::tell(const QString& text) {
  why_->setText(text);
  why_->setVisible(!text.isEmpty());
}

std::optional<DegreeGrid::Key> DegreeGrid::keyOf(const QObject* part) const {
  for (const auto& [key, box] : boxes_) {
    if (part == box || part == box->view()) return key;
  }
  return std::nullopt;
}

bool DegreeGrid::eventFilter(QObject* watched, QEvent* event) {
  const auto key = keyOf(watched);
  if (!key) return QWidget::eventFilter(watched, event);
  const auto asks = [&] { return static_cast<QKeyEvent*>(event)->key() == Qt::Key_Question; };
  if (event->type() == QEvent::ShortcutOverride && asks()) {
    event->accept();  // here it asks why, not for the keys
    return true;
  }
  if (event->type() == QEvent::KeyPress && asks()) {
    sayAll(*key);
    return true;
  }
  if (event->type() == QEvent::FocusIn && looked_at_ != key) {
    looked_at_ = key;
    tell({});
    pause_.start();
  }
  const auto leaves = [&] {
    const Qt::FocusReason reason = static_cast<QFocusEvent*>(event)->reason();
    return reason == Qt::TabFocusReason || reason == Qt::BacktabFocusReason ||
           reason == Qt::MouseFocusReason || reason == Qt::ShortcutFocusReason;
  };
  if (event->type() == QEvent::FocusOut && leaves()) {
    looked_at_.reset();
    tell({});
  }
  return QWidget::eventFilter(watched, event);
}

void DegreeGrid::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) checked({});
}

}  // namespace tessera::gui
