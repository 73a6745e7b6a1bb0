#include "cost_models/documents/command_line.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "cost_models/documents/problem.h"

namespace tessera {
namespace {

void refuse_unknown(const CLI::App& app, const std::string& word,
                    std::span<const std::string> elsewhere) {
  std::vector<std::string> known(elsewhere.begin(), elsewhere.end());
  for (const CLI::App* command : app.get_subcommands(nullptr)) known.push_back(command->get_name());
  std::sort(known.begin(), known.end());
  if (std::binary_search(known.begin(), known.end(), word)) return;
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
  throw Error(ExitCode::usage, {Problem{.place = "command",
                                        .found = "'" + word + "'",
                                        .expected = "one of " + all,
                                        .hint = did_you_mean(word, known)}});
}

/// What was printed has arrived: a full disk is told by the last write, which is this one.
void flush_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  throw Error(ExitCode::io,
              {Problem{.file = "standard output",
                       .found = std::string("cannot write: ") + std::strerror(errno)}});
}

CLI::Validator number_that(bool (*holds)(double), const std::string& expected) {
  const auto check = [holds, expected](const std::string& text) -> std::string {
    double number = 0;
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    const bool whole = error == std::errc{} && at == end && std::isfinite(number);
    return whole && holds(number) ? "" : "found '" + text + "', expected " + expected;
  };
  return {[check](std::string& text) { return check(text); }, ""};
}

}  // namespace

CLI::Validator above_zero() {
  return number_that([](double number) { return number > 0; }, "a number above 0");
}

CLI::Validator from_zero() {
  return number_that([](double number) { return number >= 0; }, "a number of at least 0");
}

int run_command_line(CLI::App& app, int argc, char** argv, std::span<const std::string> elsewhere) {
  if (argc > 1 && argv[1][0] != '-') refuse_unknown(app, argv[1], elsewhere);
  try {
    app.parse(argc, argv);
    flush_output();
  } catch (const CLI::RuntimeError& ended) {
    flush_output();
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {
    const bool wants_help = error.get_exit_code() == 0;
    app.exit(error);
    return static_cast<int>(wants_help ? ExitCode::ok : ExitCode::usage);
  }
  return 0;
}

}  // namespace tessera
