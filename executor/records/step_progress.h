// What a person sees of a run while it goes on, and RUN/log.txt with every line of it.
//
// On a terminal one line is rewritten after every step. Elsewhere the first three steps, every
// twentieth and the last are printed. Lines go to standard error. Of rank 0; one thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "executor/records/line_file.h"

namespace tessera {

/// Whether standard error ends on a terminal: `tessera run` says so of its own in TESSERA_TERMINAL
/// (0 or 1), because launchers stand between the ranks and the terminal.
bool shown_on_terminal();

/// "step 20: reward 0.368, KL 0.0004, loss ..." from a step's metrics by verl's names. KL is the
/// divergence from the reference where there is one, else that of the update.
std::string step_line(std::int64_t step, const std::map<std::string, double>& numbers);

class StepProgress {
 public:
  /// Appends to `folder`/log.txt; the run has `steps` steps. Throws Error (io) where that cannot be
  /// opened; what cannot be written later is left out.
  StepProgress(const std::filesystem::path& folder, std::int64_t steps, bool terminal);
  ~StepProgress();
  StepProgress(const StepProgress&) = delete;
  StepProgress& operator=(const StepProgress&) = delete;

  /// A step that has ended.
  void step(std::int64_t step, const std::map<std::string, double>& numbers);
  /// A line that is written and printed.
  void note(const std::string& line);
  /// A line that is only written.
  void detail(const std::string& line);

 private:
  std::int64_t steps_;
  bool terminal_, open_line_ = false;
  LineFile log_;
};

}  // namespace tessera
