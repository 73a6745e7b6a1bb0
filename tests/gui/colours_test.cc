// SPDX-License-Identifier: GPL-3.0-or-later
// Classes of memory as colour-blind readers see them: by the matrices of Machado, Oliveira and
// Fernandes (2009, table 1, severity 1.0) and distances in CIELAB (CIE 1976).
#include "gui/models/colours.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cost_models/memory.h"

namespace tessera::gui {
namespace {

using Triple = std::array<double, 3>;
using Matrix = std::array<Triple, 3>;

constexpr Matrix kNormal{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
constexpr Matrix kProtanopia{{{0.152286, 1.052583, -0.204868},
                              {0.114503, 0.786281, 0.099216},
                              {-0.003882, -0.048116, 1.051998}}};
constexpr Matrix kDeuteranopia{{{0.367322, 0.860646, -0.227968},
                                {0.280085, 0.672501, 0.047413},
                                {-0.011820, 0.042940, 0.968881}}};
constexpr Matrix kTritanopia{{{1.255528, -0.076749, -0.178779},
                              {-0.078411, 0.930809, 0.147602},
                              {0.004733, 0.691367, 0.303900}}};

Triple times(const Matrix& matrix, const Triple& v) {
  Triple out{};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t i = 0; i < 3; ++i) out[row] += matrix[row][i] * v[i];
  }
  return out;
}

Triple lab_of(const QColor& colour, const Matrix& seen) {
  const auto linear = [](double c) {
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  Triple rgb =
      times(seen, {linear(colour.redF()), linear(colour.greenF()), linear(colour.blueF())});
  for (double& c : rgb) c = std::clamp(c, 0.0, 1.0);
  constexpr Matrix kXyz{
      {{0.4124, 0.3576, 0.1805}, {0.2126, 0.7152, 0.0722}, {0.0193, 0.1192, 0.9505}}};
  constexpr Triple kWhite{0.9505, 1, 1.089};
  Triple f = times(kXyz, rgb);
  for (std::size_t i = 0; i < 3; ++i) {
    const double t = f[i] / kWhite[i];
    f[i] = t > 0.008856 ? std::cbrt(t) : 7.787 * t + 16.0 / 116;
  }
  return {116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])};
}

double apart(const QColor& a, const QColor& b, const Matrix& seen) {
  const Triple first = lab_of(a, seen), second = lab_of(b, seen);
  return std::hypot(first[0] - second[0], first[1] - second[1], first[2] - second[2]);
}

QColor colourOfClass(std::size_t index) {
  return colourOfMemory(QString::fromStdString(std::string(memory_classes({})[index].first)));
}

TEST(MemoryColours, AnyTwoAreTellableForEveryKindOfColourVision) {
  for (const Matrix& seen : {kNormal, kProtanopia, kDeuteranopia, kTritanopia}) {
    for (std::size_t a = 0; a < kMemoryClasses; ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        EXPECT_GE(apart(colourOfClass(a), colourOfClass(b), seen), 17)
            << memory_classes({})[a].first << " " << memory_classes({})[b].first;
      }
    }
  }
}

/// Lightness alone orders the amounts, whoever looks: every step of the scale is lighter on dark
/// (darker on light) than the one before.
TEST(ShareColours, AreOrderedByLightnessForEveryKindOfColourVision) {
  for (const Theme theme : {Theme::light, Theme::dark}) {
    for (const Matrix& seen : {kNormal, kProtanopia, kDeuteranopia, kTritanopia}) {
      double before = lab_of(colourOfShare(0, theme), seen)[0];
      for (int step = 1; step <= 20; ++step) {
        const double now = lab_of(colourOfShare(step / 20.0, theme), seen)[0];
        const double more = theme == Theme::light ? before - now : now - before;
        EXPECT_GT(more, 1.5) << step;
        before = now;
      }
      EXPECT_GT(apart(colourOfShare(0, theme), colourOfShare(1, theme), seen), 60);
    }
  }
}

TEST(ShareColours, NoneIsFarFromAllAndTextsAreReadOnAnyOfThem) {
  for (const Theme theme : {Theme::light, Theme::dark}) {
    const QColor base = paletteOf(theme).color(QPalette::Base);
    EXPECT_GE(contrast(colourOfShare(1, theme), base), 4.5);
    EXPECT_EQ(colourOfShare(1.7, theme), colourOfShare(1, theme));
    EXPECT_EQ(colourOfShare(-1, theme), colourOfShare(0, theme));
    for (int step = 0; step <= 20; ++step) {
      const QColor colour = colourOfShare(step / 20.0, theme);
      EXPECT_GE(contrast(colour, textOn(colour)), 4.5) << step;
    }
  }
}

TEST(MemoryColours, AreSeenOnTheDarkBackgroundAndNamesAreReadOnThem) {
  const QColor dark = paletteOf(Theme::dark).color(QPalette::Base);
  for (std::size_t index = 0; index < kMemoryClasses; ++index) {
    const QColor colour = colourOfClass(index);
    EXPECT_GE(contrast(colour, dark), 3) << memory_classes({})[index].first;
    EXPECT_GE(contrast(colour, textOn(colour)), 4.5) << memory_classes({})[index].first;
  }
}

// Fusion draws the rim of a field in this colour.
TEST(Colours, RimsOfFieldsAreSeenInTheDark) {
  const QPalette palette = fieldPaletteOf(Theme::dark);
  for (const Theme theme : {Theme::light, Theme::dark}) {  // what cannot be used now says why
    const QPalette of = paletteOf(theme);
    EXPECT_GE(contrast(of.color(QPalette::Disabled, QPalette::ButtonText),
                       of.color(QPalette::Button).lighter(150)),
              4.5);
  }
  EXPECT_GE(contrast(palette.color(QPalette::Window).darker(140), palette.color(QPalette::Base)),
            3);
  EXPECT_EQ(palette.color(QPalette::Text), paletteOf(Theme::dark).color(QPalette::Text));
  EXPECT_EQ(fieldPaletteOf(Theme::light), paletteOf(Theme::light));
}

}  // namespace
}  // namespace tessera::gui
