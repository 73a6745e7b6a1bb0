// SPDX-License-Identifier: GPL-3.0-or-later
// Quantities and problems as the window words them.
#pragma once

#include <QString>
#include <cstdint>
#include <exception>
#include <string_view>

#include "cost_models/documents/problem_list.h"

namespace tessera::gui {

/// "12.34"; what no quantity of a run is, as a file may state, is short all the same: "1e+300".
QString numberText(double number, int digits);
/// "1.50 s", "12.3 ms", "4.0 us".
QString secondsText(double seconds);
/// In the unit in which `whole` is told: "0.22 s" of 7.36 s.
QString secondsTextAs(double seconds, double whole);
/// "144.38 +- 3.41 s"; without an error as above.
QString secondsText(double seconds, double error);
/// "5.71 GiB", "12.0 MiB", "512 B".
QString bytesText(std::int64_t bytes);
/// "125.7 of 133.0 GiB": in the unit of the whole.
QString partText(std::int64_t part, std::int64_t whole);
/// The parts of it: "125.7", "GiB".
QString partOf(std::int64_t part, std::int64_t whole);
QString unitOf(std::int64_t whole);
/// Parts below it are written as 0.00 %.
constexpr double kNoPart = 5e-5;
/// "7.1 %"; of what is small a digit more, "0.03 %".
QString differenceText(double part);
/// "3,480".
QString countText(double count);
/// The sentence with numbers that lines do not break off their units.
QString withUnitsKept(QString sentence);
/// A name of the planner's as Qt's text.
QString toText(std::string_view text);
/// "runs/monday: no such folder or file".
QString noSuchFolder(const QString& folder);
/// "file:place: found X, expected Y (hint)", as to_string(problem) says it in English.
QString problemText(const Problem& problem);
/// What was thrown, in words.
QString faultText(const std::exception& fault);
/// One line per problem; of many the first, and of long ones the beginning.
QString problemsText(const Problems& problems);

}  // namespace tessera::gui
