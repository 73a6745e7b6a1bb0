// Makes configs/calibrations/*.json again: scripts/make_calibrations.sh runs it.
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "cost_models/documents/problem.h"
#include "cost_models/fit/shipped_fit.h"

namespace tessera {
namespace {

Calibration read_or_throw(const std::filesystem::path& file) {
  Problems problems;
  auto calibration = read_calibration(file, problems);
  if (!calibration) throw Error(ExitCode::bad_input, std::move(problems));
  return *std::move(calibration);
}

void print(const std::string& name, const std::vector<FitReport>& report) {
  for (const FitReport& each : report) {
    std::printf("%-5s %-20s %5d samples, held out %4d: median %4.1f %%, p90 %4.1f %%\n",
                name.c_str(), each.what.c_str(), each.samples, each.held_out,
                100 * each.median_error, 100 * each.p90_error);
  }
}

void make_all(const std::filesystem::path& data, const std::filesystem::path& configs) {
  Problems problems;
  const auto tables = read_published_tables(data, problems);
  if (!tables) throw Error(ExitCode::bad_input, std::move(problems));
  std::map<std::string, Calibration> made;
  for (const std::string name : {"a100", "h100", "h200", "b200", "l40s"}) {
    std::vector<FitReport> report;
    const auto file = configs / (name + ".json");
    made[name] = fit_shipped(read_or_throw(file), *tables, report, problems);
    if (!problems.empty()) throw Error(ExitCode::internal, std::move(problems));
    print(name, report);
    write_calibration(made[name], file);
  }
  constexpr double kH800Link = 400.0 / 900.0;  // of H100's NVLink
  const auto derive = [&](const std::string& name, const std::string& source, double link) {
    const auto file = configs / (name + ".json");
    write_calibration(derive_shipped(made[source], read_or_throw(file), link), file);
    std::printf("%-5s derived from %s, link x %.2f\n", name.c_str(), source.c_str(), link);
  };
  derive("h800", "h100", kH800Link);
  derive("h20", "h200", 1.0);
}

}  // namespace
}  // namespace tessera

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: tessera-make-calibrations DATA CALIBRATIONS\n");
    return 64;
  }
  try {
    tessera::make_all(argv[1], argv[2]);
  } catch (const tessera::Error& error) {
    std::fprintf(stderr, "tessera-make-calibrations: %s\n", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
