// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/text.h"

#include <QLocale>
#include <QRegularExpression>
#include <algorithm>
#include <cmath>
#include <new>

#include "cost_models/documents/printable.h"
#include "cost_models/documents/problem.h"
#include "gui/document/words.h"
#include "gui/translations/said.h"

namespace tessera::gui {
namespace {

// Of a file's own text, of which a line may have a gigabyte, the beginning.
std::string beginning(const std::string& text) {
  constexpr std::size_t kLongest = 1000;
  return printable(std::string_view(text).substr(0, kLongest)) +
         (text.size() > kLongest ? "..." : "");
}

struct TimeUnit {
  double seconds;
  const char* name;
  int digits;
};
TimeUnit unit_of(double seconds) {
  if (std::abs(seconds) >= 1) return {1, "s", 2};
  if (std::abs(seconds) >= 1e-3) return {1e-3, "ms", 1};
  return {1e-6, "us", 1};
}

// A path or a key stays as it is; "the topology" and "dataflow call 2 (gen)" are words.
QString placeText(const std::string& place) {
  return place.find(' ') == place.npos ? toText(place) : said(place);
}

}  // namespace

QString numberText(double number, int digits) {
  constexpr double kLargest = 1e9;
  return std::abs(number) < kLargest ? QString::number(number, 'f', digits)
                                     : QString::number(number, 'g', 3);
}

QString secondsText(double seconds) { return secondsTextAs(seconds, seconds); }

QString secondsTextAs(double seconds, double whole) {
  const TimeUnit unit = unit_of(whole);
  return numberText(seconds / unit.seconds, unit.digits) + " " + unit.name;
}

QString secondsText(double seconds, double error) {
  if (!(error > 0)) return secondsText(seconds);
  const TimeUnit unit = unit_of(seconds);
  return QString("%1 +- %2 %3")
      .arg(numberText(seconds / unit.seconds, unit.digits),
           numberText(error / unit.seconds, unit.digits), unit.name);
}

QString withUnitsKept(QString sentence) {
  static const QRegularExpression before_unit(
      "(?<=[0-9]) (?=(%|us|ms|s|h|B|KiB|MiB|GiB|TiB|tok/s/GPU|GPUs?)(?![A-Za-z]))");
  return sentence.replace(before_unit, QChar(QChar::Nbsp));
}

QString toText(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

QString bytesText(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= 1LL << 30) return QString::number(value / (1LL << 30), 'f', 2) + " GiB";
  if (bytes >= 1LL << 20) return QString::number(value / (1LL << 20), 'f', 1) + " MiB";
  if (bytes >= 1LL << 10) return QString::number(value / (1LL << 10), 'f', 1) + " KiB";
  return QString::number(bytes) + " B";
}

QString unitOf(std::int64_t whole) {
  return whole >= 1LL << 30 ? "GiB" : whole >= 1LL << 20 ? "MiB" : "KiB";
}

QString partOf(std::int64_t part, std::int64_t whole) {
  const int power = whole >= 1LL << 30 ? 30 : whole >= 1LL << 20 ? 20 : 10;
  return QString::number(static_cast<double>(part) / static_cast<double>(1LL << power), 'f', 1);
}

QString partText(std::int64_t part, std::int64_t whole) {
  return Words::tr("%1 of %2 %3").arg(partOf(part, whole), partOf(whole, whole), unitOf(whole));
}

QString differenceText(double part) {
  const double percent = 100 * part;
  return QString("%1 %").arg(numberText(percent, std::abs(percent) < 0.1 ? 2 : 1));
}

QString countText(double count) {
  constexpr double kLargest = 1e15;
  return std::abs(count) < kLargest ? QLocale(QLocale::English).toString(std::llround(count))
                                    : numberText(count, 0);
}

QString noSuchFolder(const QString& folder) {
  return Words::tr("%1: no such folder or file").arg(folder);
}

QString problemText(const Problem& problem) {
  const bool message = problem.file.empty() && problem.place.empty() && problem.expected.empty();
  const QString found =
      said(message ? printable(problem.found, LineEnds::kept) : beginning(problem.found));
  QString text = found;
  if (!problem.expected.empty()) {
    text = Words::tr("found %1, expected %2").arg(found, said(printable(problem.expected)));
  }
  if (!problem.hint.empty()) {
    text = Words::tr("%1 (%2)").arg(text, said(printable(problem.hint)));
  }
  const bool setting = problem.file == "--fix";  // that the form has, too
  QString where = setting ? Words::tr("setting %1").arg(toText(beginning(problem.place)))
                          : placeText(printable(problem.file));
  if (!setting && !problem.place.empty()) {
    where += (where.isEmpty() ? "" : ":") + placeText(beginning(problem.place));
  }
  return where.isEmpty() ? text : Words::tr("%1: %2").arg(where, text);
}

QString faultText(const std::exception& fault) {
  const auto* error = dynamic_cast<const Error*>(&fault);
  if (error != nullptr && !error->problems().empty()) return problemsText(error->problems());
  const bool memory = dynamic_cast<const std::bad_alloc*>(&fault) != nullptr;
  return memory ? Words::tr("there is not enough memory for it") : QString::fromUtf8(fault.what());
}

QString problemsText(const Problems& problems) {
  constexpr std::size_t kMostProblems = 200;
  constexpr qsizetype kMostCharacters = 1000;  // of one: a file may have one line of a gigabyte
  QString text;
  for (std::size_t i = 0; i < std::min(problems.size(), kMostProblems); ++i) {
    const QString line = problemText(problems[i]);
    text += line.size() > kMostCharacters ? line.left(kMostCharacters) + " ..." : line;
    text += "\n";
  }
  if (problems.size() > kMostProblems) {
    text += Words::tr("and %1 more\n").arg(problems.size() - kMostProblems);
  }
  return text.trimmed();
}

}  // namespace tessera::gui
