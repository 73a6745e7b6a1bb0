// SPDX-License-Identifier: GPL-3.0-or-later
// The timeline that one moves about in: W A S D and F, the wheel, search, areas, folded groups.
//
// Keeps no facts of its own but where one looks; what is chosen it says and is told. GUI thread.
#pragma once

#include <QAbstractScrollArea>
#include <QPoint>
#include <memory>
#include <optional>
#include <vector>

#include "gui/step_views/timeline_painter.h"

namespace tessera::gui {

class TimelineCanvas : public QAbstractScrollArea {
  Q_OBJECT

 public:
  explicit TimelineCanvas(QWidget* parent = nullptr);

  /// Another timeline, all of it in sight; nullptr = none, and `why` is shown.
  void setTimeline(std::shared_ptr<const TimelineIndex> timeline, const QString& why);
  /// What contains `part` stays bright, all else fades.
  void setSearch(const QString& part);
  /// Spans that were found; of folded groups those of one rank.
  std::size_t matches() const;
  /// Chooses the next one found (step 1) or the one before (-1) in time.
  void goToMatch(int step);
  /// Shows what another view chose.
  void look(const ViewState& view);
  void fitAll();
  /// The area, else the chosen span, else all.
  void fitChosen();
  /// A line of the group for each of its ranks, or one for all.
  void fold(int group, bool folded);
  void choose(std::optional<std::size_t> span);

  const TimelinePicture& picture() const { return picture_; }
  /// What is known of a span or of a gap, a line for each fact.
  QString describe(std::size_t span) const;
  QString describe(const LaneGap& gap) const;

 signals:
  /// By the user.
  void chosen(const tessera::gui::ViewState& view);
  /// The area, the rows or the timeline.
  void areaChanged();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;
  bool viewportEvent(QEvent* event) override;

 private:
  enum class Drag { none, pressed, area, pan };

  void setAxis(const TimeAxis& axis);
  void zoom(double factor);
  void pan(double pixels);
  void layRows();
  void scrollTo(int row);
  int rowOf(std::size_t span) const;
  std::optional<std::size_t> spanAt(QPoint point) const;
  std::optional<LaneGap> gapAt(QPoint point) const;
  const RankGroup* groupAt(int row) const;
  void stepSpan(int step);
  void dragTo(QPoint point);
  void clicked(QPoint point);

  std::shared_ptr<const TimelineIndex> timeline_;
  QString why_;
  TimelinePicture picture_;
  std::vector<bool> unfolded_;  // by group
  bool fitted_ = true;          // all is in sight, and stays so when the size changes
  Drag drag_ = Drag::none;
  QPoint from_, pointer_{-1, -1};
};

}  // namespace tessera::gui
