// Steps in a console log of verl: lines "step:3 - timing_s/gen:10.3 - actor/lr:1e-06 - ...".
//
// Pure. The line is what verl's LocalLogger prints (utils/logger/aggregate_logger.py,
// concat_dict_to_str): numbers as pprint writes them, numpy's as "np.float64(10.3)". Whatever
// stands before it (Ray's "(TaskRunner pid=7)", colours) and every other line is passed over.
#pragma once

#include <optional>
#include <string_view>

#include "simulator/timeline/comparison.h"

namespace tessera {

/// nullopt where the line is no step.
std::optional<StepNumbers> parse_console_line(std::string_view line);

}  // namespace tessera
