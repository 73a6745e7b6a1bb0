// A step's numbers as Prometheus reads them.
//
// Text exposition format 0.0.4 (prometheus.io, "Exposition formats"): gauges named tessera_ and the
// metric's name, in which every character that Prometheus does not allow is an underscore; the help
// line has the name as it is. Where several come out alike the gauge has a series of each, with the
// label `metric`, its name.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace tessera {

inline constexpr const char* kPrometheusPath = "/metrics";
inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

/// tessera_step and every number.
std::string prometheus_text(std::int64_t step, const std::map<std::string, double>& numbers);

}  // namespace tessera
