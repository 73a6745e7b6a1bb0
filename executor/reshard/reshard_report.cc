#include "executor/reshard/reshard_report.h"

#include <cstdio>

namespace tessera {
namespace {

template <class... Values>
std::string text(const char* format, Values... values) {
  char buffer[240];
  const int length = std::snprintf(buffer, sizeof buffer, format, values...);
  return {buffer, static_cast<std::size_t>(length)};
}

}  // namespace

std::string to_string(const ReshardReport& report) {
  std::string line = text(
      "[Reshard] %.4g ms by %s, %.4g GB received by the busiest rank (lower bound %.4g GB), "
      "%.4g GB/s",
      report.seconds * 1e3, name_of(report.transport).data(), report.busiest * 1e-9,
      report.lower_bound * 1e-9, report.gb_per_s());
  if (report.exposed_s < report.seconds) line += text(", %.3g ms exposed", report.exposed_s * 1e3);
  if (report.cast_error > 0) line += text(", cast error %.2g", report.cast_error);
  if (report.verified) line += ", checksums equal";
  for (std::size_t i = 0; i < report.tried.size(); ++i) {
    line += text("%s %.4g ms by %s", i == 0 ? ", chosen among" : ",", report.tried[i].seconds * 1e3,
                 name_of(report.tried[i].transport).data());
  }
  return line;
}

}  // namespace tessera
