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

QColor colourOf(Phase phase) {
  static constexpr auto kColours =
      std::to_array<QRgb>({0xff999999, 0xff56b4e9, 0xffe69f00, 0xff3f8fc4, 0xff009e73, 0xfff0a884,
                           0xffcc79a7, 0xffb8b8b8, 0xffd55e00, 0xff0072b2, 0xff777777});
  const auto index = static_cast<std::size_t>(phase);
  return QColor::fromRgb(index < kColours.size() ? kColours[index] : 0xff777777);
}

QColor colourOfMemory(const QString& name) {
  static const QHash<QString, QRgb> colours{
      {"weights", 0xff0072b2},   {"gradients", 0xffe69f00},   {"master weights", 0xffd55e00},
      {"optimizer", 0xffa23c00}, {"activations", 0xff009e73}, {"logits", 0xff66c2a5},
      {"KV cache", 0xff56b4e9},  {"gathered", 0xff8c6d31},    {"communication", 0xffcc79a7},
      {"reshard", 0xfff0e442},   {"workspace", 0xffb09cc8},   {"reserve", 0xffa0a0a0}};
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

QColor textOn(const QColor& background) {
  // Relative luminance of WCAG 2.1; black and white have equal contrast at sqrt(1.05 x 0.05) -
  // 0.05.
  const auto linear = [](double c) {
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  const double luminance = 0.2126 * linear(background.redF()) +
                           0.7152 * linear(background.greenF()) +
                           0.0722 * linear(background.blueF());
  return luminance > 0.179 ? Qt::black : Qt::white;
}

}  // namespace tessera::gui
