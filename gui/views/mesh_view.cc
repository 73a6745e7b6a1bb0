// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/views/mesh_view.h"

#include <QVBoxLayout>

#include "gui/document/text.h"
#include "gui/document/words.h"
#include "gui/models/colours.h"
#include "gui/views/view.h"

namespace tessera::gui {
namespace {

constexpr double kButtonZoom = 2;

QString swatch(const QColor& colour, const QString& text) {
  return QString("<span style='color:%1'>&#9632;</span>&nbsp;%2").arg(colour.name(), text);
}

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
  auto* title = new QLabel("<b>Mesh</b>&nbsp;&nbsp;colour by");
  title->setBuddy(colouring_);
  top->addWidget(title);
  top->addWidget(colouring_, 1);
  top->addWidget(level_);
  layout->addLayout(top);
  layout->addWidget(canvas_, 1);
  layout->addWidget(legend_);
  legend_->setWordWrap(true);
  colouring_->setAccessibleName("Meaning of the mesh's colours");
  connect(&session, &Session::planSelected, this, &MeshView::planChanged);
  connect(colouring_, &QComboBox::activated, this,
          [this] { setColouring(colouring_->currentData().value<MeshColouring>()); });
  connect(canvas_, &MeshCanvas::chosen, this, [this](int rank) {
    session_.look({rank, session_.view().phase});
  });
  connect(canvas_, &MeshCanvas::levelChanged, this, &MeshView::describeLevel);
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
  colouring_->addItem("roles that share a rank", QVariant::fromValue(MeshColouring{}));
  for (const Role role : session_.mesh()->roles()) {
    for (const Axis axis : {Axis::tp, Axis::pp, Axis::dp, Axis::model}) {
      const QString what = axis == Axis::model ? "model replicas" : axisName(axis) + " groups";
      colouring_->addItem(toText(name_of(role)) + ": " + what,
                          QVariant::fromValue(MeshColouring{role, axis}));
    }
  }
  setColouring(kept);
}

void MeshView::setColouring(const MeshColouring& colouring) {
  session_.mesh()->setColouring(colouring);
  for (int i = 0; i < colouring_->count(); ++i) {
    if (colouring_->itemData(i).value<MeshColouring>() == session_.mesh()->colouring()) {
      colouring_->setCurrentIndex(i);
    }
  }
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
  QString text = Words::tr("strip: %1&nbsp;&nbsp; fill: %2 (%3)")
                     .arg(roles.join("&nbsp; "), colouring_->currentText())
                     .arg(mesh.groupCount());
  if (!types.isEmpty()) text += Words::tr("&nbsp;&nbsp; line below: %1").arg(types.join("&nbsp; "));
  legend_->setText(text);
}

}  // namespace tessera::gui
