// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/mesh_view.h"

#include <QEvent>
#include <QVBoxLayout>
#include <map>
#include <utility>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

constexpr double kButtonZoom = 2;
constexpr int kScaleSteps = 10;

const RegisteredView kMeshView({"mesh", Place::left, 0, 330, "", [](Session& session) -> QWidget* {
                                  return new MeshView(session);
                                }});

}  // namespace

MeshView::MeshView(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      colouring_(new QComboBox),
      level_(new QLabel),
      farther_(new QPushButton("-")),
      closer_(new QPushButton("+")),
      all_(new QPushButton(Words::tr("All"))),
      canvas_(new MeshCanvas(*session.mesh())),
      legend_(new QLabel) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* top = new QHBoxLayout;
  auto* title = new QLabel(Words::tr("<b>Mesh</b>&nbsp;&nbsp;colour by"));
  title->setBuddy(colouring_);
  top->addWidget(title);
  top->addWidget(colouring_, 1);
  top->addWidget(level_);
  layout->addLayout(top);
  layout->addWidget(canvas_, 1);
  layout->addWidget(legend_);
  legend_->setWordWrap(true);
  colouring_->setAccessibleName(Words::tr("Meaning of the mesh's colours"));
  colouring_->setToolTip(Words::tr("C and Shift+C in the picture go through them"));
  connect(&session, &Session::planSelected, this, &MeshView::planChanged);
  connect(colouring_, &QComboBox::activated, this,
          [this] { setColouring(colouring_->currentData().value<MeshColouring>()); });
  connect(canvas_, &MeshCanvas::chosen, this, [this](int rank) {
    const bool used = rank < session_.mesh()->planRanks();
    session_.look({used ? rank : -1, session_.view().phase});
  });
  connect(canvas_, &MeshCanvas::levelChanged, this, &MeshView::describeLevel);
  connect(canvas_, &MeshCanvas::colouringWanted, this, &MeshView::goToColouring);
  connect(session.mesh(), &QAbstractItemModel::dataChanged, this,
          [this](const QModelIndex&, const QModelIndex&, const QList<int>& what) {
            if (what.contains(Qt::BackgroundRole)) describeColours();
          });
  for (QPushButton* button : {farther_, closer_, all_}) {
    button->setFlat(true);
    button->setFocusPolicy(Qt::NoFocus);  // the picture has keys for them
    button->setFixedWidth(button->fontMetrics().horizontalAdvance(button->text()) + 20);
    top->addWidget(button);
  }
  farther_->setAccessibleName(Words::tr("Farther away"));
  farther_->setToolTip(Words::tr("Farther away (-, PgUp)"));
  closer_->setAccessibleName(Words::tr("Closer"));
  closer_->setToolTip(Words::tr("Closer (+, PgDn)"));
  all_->setToolTip(Words::tr("The whole cluster (Home); F shows the chosen rank"));
  connect(farther_, &QPushButton::clicked, canvas_, [this] { canvas_->zoomBy(1 / kButtonZoom); });
  connect(closer_, &QPushButton::clicked, canvas_, [this] { canvas_->zoomBy(kButtonZoom); });
  connect(all_, &QPushButton::clicked, canvas_, &MeshCanvas::fitAll);
}

void MeshView::planChanged() {
  const MeshColouring kept =
      colouring_->count() > 0 ? session_.mesh()->colouring() : MeshColouring{};
  colouring_->clear();
  colouring_->addItem(Words::tr("roles that share a rank"), QVariant::fromValue(MeshColouring{}));
  for (const Role role : session_.mesh()->roles()) {
    for (const Axis axis : {Axis::tp, Axis::pp, Axis::dp, Axis::model}) {
      const QString what = axis == Axis::model ? Words::tr("model replicas")
                                               : Words::tr("%1 groups").arg(axisName(axis));
      colouring_->addItem(toText(name_of(role)) + ": " + what,
                          QVariant::fromValue(MeshColouring{role, axis}));
    }
  }
  for (const auto& [by, words] :
       {std::pair(MeshBy::memory, Words::tr("memory at the peak, of the limit")),
        std::pair(MeshBy::load, Words::tr("load of the busiest link")),
        std::pair(MeshBy::phase, Words::tr("phase in the run that is followed"))}) {
    colouring_->addItem(words, QVariant::fromValue(MeshColouring{.role = {}, .by = by}));
  }
  setColouring(kept);
}

// From the keys of the picture: round and round.
void MeshView::goToColouring(int step) {
  const int count = colouring_->count();
  if (count == 0) return;
  colouring_->setCurrentIndex((colouring_->currentIndex() + step + count) % count);
  setColouring(colouring_->currentData().value<MeshColouring>());
}

// What the colours are of is worked out once they are asked for.
void MeshView::want() {
  const MeshBy by = session_.mesh()->colouring().by;
  if (by == MeshBy::memory) session_.peaks()->want();
  if (by == MeshBy::load) session_.timeline()->want();
}

void MeshView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange && session_.plan()) describeColours();
}

void MeshView::setColouring(const MeshColouring& colouring) {
  session_.mesh()->setColouring(colouring);
  for (int i = 0; i < colouring_->count(); ++i) {
    if (colouring_->itemData(i).value<MeshColouring>() == session_.mesh()->colouring()) {
      colouring_->setCurrentIndex(i);
    }
  }
  want();
  describeColours();
  describeLevel();
}

// One row per node needs no zoom, and large clusters say what they are seen as.
void MeshView::describeLevel() {
  static constexpr const char* kNames[] = {QT_TRANSLATE_NOOP("Words", "pods"),
                                           QT_TRANSLATE_NOOP("Words", "nodes"),
                                           QT_TRANSLATE_NOOP("Words", "GPUs")};
  const auto level = static_cast<std::size_t>(canvas_->level());
  const bool large = canvas_->layout().nodes() > MeshLayout::kFewNodes;
  level_->setText(large ? Words::tr("seen as %1").arg(Words::tr(kNames[level])) : QString());
}

void MeshView::describeColours() {
  const MeshModel& mesh = *session_.mesh();
  QStringList roles, types;
  for (const Role role : mesh.roles()) roles << swatch(colourOf(role), toText(name_of(role)));
  for (int type = 0; type < mesh.typeCount(); ++type) {
    types << swatch(colourOfType(type), mesh.typeName(type));
  }
  QString text = Words::tr("strip: %1&nbsp;&nbsp; fill: %2").arg(roles.join("&nbsp; "), fillText());
  if (!types.isEmpty()) text += Words::tr("&nbsp;&nbsp; line below: %1").arg(types.join("&nbsp; "));
  legend_->setText(text);
}

QString MeshView::fillText() const {
  const MeshModel& mesh = *session_.mesh();
  const MeshBy by = mesh.colouring().by;
  if (by == MeshBy::groups) {
    return QString("%1 (%2)").arg(colouring_->currentText()).arg(mesh.groupCount());
  }
  if (!mesh.hasColours()) return whyNoColours();
  return by == MeshBy::phase ? phasesText() : scaleText();
}

// The scale with both its ends.
QString MeshView::scaleText() const {
  const MeshModel& mesh = *session_.mesh();
  const bool memory = mesh.colouring().by == MeshBy::memory;
  QString blocks;
  for (int step = 0; step <= kScaleSteps; ++step) {
    const QColor colour =
        colourOfShare(static_cast<double>(step) / kScaleSteps, themeOf(palette()));
    blocks += QString("<span style='color:%1'>&#9608;</span>").arg(colour.name());
  }
  const QString most = QString::number(100 * mesh.most(), 'f', memory ? 0 : 1);
  return memory
             ? Words::tr("0 % %1 %2 % of what plans may use, at the rank's peak").arg(blocks, most)
             : Words::tr("0 % %1 %2 % of what the rank's busiest link carries in a step")
                   .arg(blocks, most);
}

// Phases that ranks work on now, with how many do.
QString MeshView::phasesText() const {
  std::map<Phase, int> working;
  int bad = 0, ended = 0;
  for (const RankNow& rank : session_.mesh()->now()) {
    if (rank.phase) {
      ++working[*rank.phase];
    } else {
      ++(rank.bad ? bad : ended);
    }
  }
  QStringList texts;
  const auto tell = [&](const QColor& colour, const QString& name, int count) {
    if (count > 0) texts << swatch(colour, QString("%1 (%2)").arg(name).arg(count));
  };
  for (const auto& [phase, count] : working) {
    tell(colourOf(phase), toText(name_of(phase)), count);
  }
  tell(colourOfBad(), Words::tr("lost or failed"), bad);
  tell(colourOfIdle(), Words::tr("in no phase"), ended);
  return texts.join("&nbsp; ");
}

QString MeshView::whyNoColours() const {
  switch (session_.mesh()->colouring().by) {
    case MeshBy::memory:
      return session_.peaks()->whyNone(Words::tr("counting the memory of every rank"));
    case MeshBy::load:
      return session_.timeline()->whyNone(Words::tr("simulating the step"));
    default:
      break;
  }
  const auto ranks = session_.run()->ranks()->rows().size();
  if (session_.run()->folder().empty()) return Words::tr("no run is followed (Ctrl+R)");
  return Words::tr("the run has %1 ranks, this plan %2")
      .arg(ranks)
      .arg(session_.mesh()->planRanks());
}

}  // namespace tessera::gui
