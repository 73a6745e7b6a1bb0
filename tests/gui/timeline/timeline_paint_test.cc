// SPDX-License-Identifier: GPL-3.0-or-later
// What the timeline's pixels show is what its slabs say.
#include <gtest/gtest.h>

#include <QApplication>
#include <QImage>
#include <cstdint>
#include <random>
#include <string>

#include "gui/models/colours.h"
#include "gui/step_views/timeline_painter.h"

namespace tessera::gui {
namespace {

constexpr int kWidth = 300;  // of the time

/// Two streams of a rank: short spans that share pixels, with gaps, and a long one now and then.
TimelineIndex random_index() {
  std::mt19937 random(11);
  Simulation simulation;
  for (const Stream stream : {Stream::compute, Stream::communication}) {
    std::int64_t now = 0;
    for (int i = 0; i < 4000; ++i) {
      const std::int64_t length = 1 + random() % (i % 200 == 0 ? 4000 : 12);
      const Phase phase = i % 700 < 350 ? Phase::gen : Phase::update_actor;
      simulation.timeline.spans.push_back({now, now + length, 0, stream, phase, 0, -1,
                                           i % 5 == 0 ? "gather" : "F" + std::to_string(i % 9), 0,
                                           0});
      now += length + (random() % 3 == 0 ? random() % 90 : 0);
    }
  }
  return index_of(std::move(simulation));
}

QColor expected(const TimelinePicture& picture, const Slab& slab) {
  const bool found =
      picture.matches.empty() || picture.matches[slab.last] > picture.matches[slab.first];
  const double strength = (0.4 + 0.6 * slab.cover) * (found ? 1 : 0.22);
  const QColor base = picture.palette.color(QPalette::Base);
  const QColor full = colourOf(picture.index->span(slab.first).phase);
  const auto mix = [&](int a, int b) { return static_cast<int>(a + strength * (b - a)); };
  return {mix(base.red(), full.red()), mix(base.green(), full.green()),
          mix(base.blue(), full.blue())};
}

/// Every slab of one pixel that has it for itself, in the middle of its row, and what is between;
/// the number of slabs that were looked at.
int compare(const TimelinePicture& picture, const QImage& image) {
  constexpr int kOff = 4;  // of 255: shades are drawn in steps
  int compared = 0;
  for (std::size_t row = 0; row < picture.rows.size(); ++row) {
    const int y = picture.topOf(static_cast<int>(row)) + TimelinePicture::kRow / 2;
    const auto slabs = slabs_of(*picture.index, picture.rows[row].lane, picture.axis, kWidth);
    std::vector<int> slabs_at(kWidth);
    for (const Slab& slab : slabs) {
      for (int x = slab.from; x < std::min(slab.to, kWidth); ++x) {
        ++slabs_at[static_cast<std::size_t>(x)];
      }
    }
    const auto seen = [&](int x) { return image.pixelColor(TimelinePicture::kNames + x, y); };
    for (const Slab& slab : slabs) {
      if (slab.to != slab.from + 1 || slabs_at[static_cast<std::size_t>(slab.from)] > 1) continue;
      const QColor wanted = expected(picture, slab), found = seen(slab.from);
      EXPECT_NEAR(found.red(), wanted.red(), kOff) << slab.from;
      EXPECT_NEAR(found.green(), wanted.green(), kOff) << slab.from;
      EXPECT_NEAR(found.blue(), wanted.blue(), kOff) << slab.from;
      ++compared;
    }
    for (int x = 0; x < kWidth; ++x) {
      if (slabs_at[static_cast<std::size_t>(x)] > 0) continue;
      EXPECT_EQ(seen(x), picture.palette.color(QPalette::Base)) << x;
    }
  }
  return compared;
}

TEST(TimelinePaint, APixelHasTheColourOfWhatIsInIt) {
  const TimelineIndex index = random_index();
  TimelinePicture picture;
  picture.index = &index;
  picture.rows = TimelinePicture::rowsOf(index, std::vector<bool>(index.groups.size()));
  picture.size = {TimelinePicture::kNames + kWidth, 100};
  picture.font = QApplication::font();
  for (const Theme theme : {Theme::light, Theme::dark}) {
    picture.palette = paletteOf(theme);
    for (const char* search : {"", "gather"}) {
      picture.matches = matches_before(index, search);
      for (const double part : {1.0, 0.13}) {
        const auto all = static_cast<double>(index.end_ns), from = 0.3 * all * (1 - part);
        picture.axis = fitted(from, from + part * all, kWidth);
        QImage image(picture.size, QImage::Format_RGB32);
        QPainter painter(&image);
        paint(painter, picture);
        painter.end();
        EXPECT_GT(compare(picture, image), part == 1.0 ? 200 : 40);
      }
    }
  }
}

}  // namespace
}  // namespace tessera::gui
