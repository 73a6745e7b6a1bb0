// SPDX-License-Identifier: GPL-3.0-or-later
// How Qt's tester of item models tells what is wrong: the program ends there.
#pragma once

#include <QAbstractItemModelTester>

namespace tessera::gui {

inline constexpr auto kFatal = QAbstractItemModelTester::FailureReportingMode::Fatal;

}  // namespace tessera::gui
