// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/models/colours.h"

#include <QHash>
#include <algorithm>
#include <array>
#include <cmath>

namespace tessera::gui {

QColor colourOf(Role role) {
  static constexpr std::array<QRgb, kRoleCount> kColours{0xff0072b2, 0xff56b4e9, 0xffd55e00,
                                                         0xff009e73, 0xffcc79a7};
  return QColor::fromRgb(kColours[static_cast<std::size_t>(role)]);
}

// Generation green, the reshard brown, forward passes yellow, training purple, the rest grey.
QColor colourOf(Phase phase) {
  static constexpr auto kColours =
      std::to_array<QRgb>({0xff8a8f98, 0xff2e8b57, 0xffb9770e, 0xffd4b106, 0xffe0c860, 0xffb59a3c,
                           0xffece2a8, 0xffb4b9c1, 0xff6a3d9a, 0xffb08bd4, 0xff5f646d});
  static_assert(kColours.size() == kPhaseCount, "in the order of the phases");
  return QColor::fromRgb(kColours[static_cast<std::size_t>(phase)]);
}

// Found by search: any two are 17 or more apart in CIELAB for every kind of colour vision
// (Machado, Oliveira, Fernandes 2009), and 3 : 1 from the dark background.
QColor colourOfMemory(const QString& name) {
  static const QHash<QString, QRgb> colours{
      {"weights", 0xff3b7483},   {"gradients", 0xffef8a1a},   {"master_weights", 0xff9b5113},
      {"optimizer", 0xff7f5e44}, {"activations", 0xff4cb85a}, {"logits", 0xffaee3af},
      {"kv_cache", 0xff7ddafe},  {"gathered", 0xff725aaf},    {"communication", 0xffc98586},
      {"reshard", 0xfff6d309},   {"workspace", 0xff819ee6},   {"reserve", 0xffcac0c6}};
  return QColor::fromRgb(colours.value(name, 0xff777777));
}

QColor colourOfGroup(int index, int count) {
  // Even hues for few groups; for many, lightness and saturation change from one turn to the next.
  constexpr int kHues = 24;
  const int turns = (count + kHues - 1) / kHues;
  const int in_turn = turns <= 1 ? std::max(count, 1) : kHues;
  const int turn = index / in_turn;
  constexpr double kFirstHue = 0.58;  // a single group is blue
  const double hue = std::fmod(kFirstHue + (index % in_turn + (turn % 2) * 0.5) / in_turn, 1.0);
  const double shift = turns <= 1 ? 0 : static_cast<double>(turn) / turns;
  return QColor::fromHslF(static_cast<float>(hue), static_cast<float>(0.75 - 0.35 * shift),
                          static_cast<float>(0.70 - 0.38 * shift))
      .toRgb();
}

QColor colourOfShare(double share, Theme theme) {
  using Stops = std::array<QRgb, 5>;
  static constexpr Stops kLight{0xffe6ebee, 0xffa9d3ca, 0xff55a79b, 0xff1d7274, 0xff0a3644};
  static constexpr Stops kDark{0xff2a3037, 0xff1d4f59, 0xff25837f, 0xff6cbda4, 0xffdcf3d6};
  constexpr double kSteps = 20;
  const Stops& stops = theme == Theme::light ? kLight : kDark;
  const double at = std::round(std::clamp(share, 0.0, 1.0) * kSteps) / kSteps * (stops.size() - 1);
  const std::size_t first = std::min(static_cast<std::size_t>(at), stops.size() - 2);
  const QColor low = QColor::fromRgb(stops[first]), high = QColor::fromRgb(stops[first + 1]);
  const double part = at - static_cast<double>(first);
  const auto between = [&](int a, int b) {
    return static_cast<int>(std::lround(a + part * (b - a)));
  };
  return {between(low.red(), high.red()), between(low.green(), high.green()),
          between(low.blue(), high.blue())};
}

namespace {

// Relative luminance of WCAG 2.1.
double luminance(const QColor& colour) {
  const auto linear = [](double c) {
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.redF()) + 0.7152 * linear(colour.greenF()) +
         0.0722 * linear(colour.blueF());
}

}  // namespace

QColor textOn(const QColor& background) {
  // Black and white have equal contrast at sqrt(1.05 x 0.05) - 0.05.
  return luminance(background) > 0.179 ? Qt::black : Qt::white;
}

double contrast(const QColor& a, const QColor& b) {
  const double first = luminance(a), second = luminance(b);
  return (std::max(first, second) + 0.05) / (std::min(first, second) + 0.05);
}

Theme themeOf(const QPalette& palette) {
  return luminance(palette.color(QPalette::Base)) > 0.179 ? Theme::light : Theme::dark;
}

QPalette paletteOf(Theme theme) {
  struct Colours {
    QRgb window, base, alternate, button, text, faint, highlight, link;
  };
  static constexpr Colours kLight{0xfff4f5f7, 0xffffffff, 0xfff1f3f6, 0xffe9ecf0,
                                  0xff1b1f24, 0xff5c6470, 0xff2b5ca6, 0xff1f5fbf};
  static constexpr Colours kDark{0xff1f2227, 0xff17191d, 0xff1d2025, 0xff2c3037,
                                 0xffe6e8eb, 0xffb2bac4, 0xff2f63b0, 0xff8ab4f8};
  const Colours& of = theme == Theme::light ? kLight : kDark;
  QPalette palette{QColor(of.button), QColor(of.window)};
  palette.setColor(QPalette::Window, QColor(of.window));
  palette.setColor(QPalette::Base, QColor(of.base));
  palette.setColor(QPalette::AlternateBase, QColor(of.alternate));
  palette.setColor(QPalette::Button, QColor(of.button));
  palette.setColor(QPalette::ToolTipBase, QColor(of.button));
  for (const auto role :
       {QPalette::Text, QPalette::WindowText, QPalette::ButtonText, QPalette::ToolTipText}) {
    palette.setColor(role, QColor(of.text));
    palette.setColor(QPalette::Disabled, role, QColor(of.faint));
  }
  palette.setColor(QPalette::PlaceholderText, QColor(of.faint));
  palette.setColor(QPalette::Highlight, QColor(of.highlight));
  palette.setColor(QPalette::HighlightedText, Qt::white);
  palette.setColor(QPalette::Link, QColor(of.link));
  return palette;
}

// The style draws rims as Window, darker: of a dark window they would be as dark as the field.
QPalette fieldPaletteOf(Theme theme) {
  constexpr QRgb kDarkRim = 0xff9aa3af;
  QPalette palette = paletteOf(theme);
  if (theme == Theme::dark) palette.setColor(QPalette::Window, QColor(kDarkRim));
  return palette;
}

QString swatch(const QColor& colour, const QString& text) {
  return QString("<span style='color:%1'>&#9632;</span>&nbsp;%2")
      .arg(colour.name(), text.toHtmlEscaped());
}

MessageColours coloursOf(Tone tone, Theme theme) {
  const bool light = theme == Theme::light;
  switch (tone) {
    case Tone::bad:
      return light ? MessageColours{0xfffde8e4, 0xff7a1d0c}
                   : MessageColours{0xff4a1d16, 0xffffc9bf};
    case Tone::warning:
      return light ? MessageColours{0xfffff4d6, 0xff6b4700}
                   : MessageColours{0xff42340f, 0xffffe2a0};
    case Tone::calm:
      break;
  }
  return light ? MessageColours{0xffffffff, 0xff1b1f24} : MessageColours{0xff17191d, 0xffe6e8eb};
}

}  // namespace tessera::gui
