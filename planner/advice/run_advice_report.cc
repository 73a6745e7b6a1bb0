// Advice in words and for programs.

#include "cost_models/documents/printed.h"
#include "cost_models/documents/strict_json.h"
#include "planner/advice/run_advice.h"
#include "planner/interop/files/setting.h"

namespace tessera {

std::string command_of(const AdvisedChange& change, const std::string& plan,
                       const std::string& calibration) {
  std::string text = "tessera plan --from " + shell_word(plan) + " --calibration " +
                     shell_word(calibration) + " --fix";
  for (const std::string& word : change.settings) text += " " + shell_word(word);
  return text;
}

std::string to_text(const RunAdvice& advice, const std::string& plan,
                    const std::string& calibration) {
  std::string text = printed("step %.3f s measured, %.3f s by the learned constants\n",
                             advice.measured_s.value, advice.step_s.value);
  if (advice.changes.empty()) {
    return text + "no other setting is quicker and fits\n";
  }
  int number = 0;
  for (const AdvisedChange& change : advice.changes) {
    text += printed("%d. %.3f s, %.2f times as quick: -%.3f s +- %.3f s, fits with %.1f%%\n",
                    ++number, change.step_s.value, advice.step_s / change.step_s,
                    change.gain_s.value, change.gain_deviation_s.value, change.fits * 100);
    text += "   " + change.what + "\n   " + command_of(change, plan, calibration) + "\n";
    for (const std::string& key : change.keys) text += "   " + key + "\n";
  }
  return text;
}

std::string to_json(const RunAdvice& advice, const std::string& plan,
                    const std::string& calibration) {
  Node root = map_node(), changes = list_node();
  for (const AdvisedChange& change : advice.changes) {
    Node node = map_node(), settings = list_node(), keys = list_node();
    for (const std::string& word : change.settings) {
      settings.items.push_back(node_of(std::string_view(word)));
    }
    for (const std::string& key : change.keys) {
      keys.items.push_back(node_of(std::string_view(key)));
    }
    add(node, "what", node_of(std::string_view(change.what)));
    add(node, "step_s", node_of(change.step_s));
    add(node, "gain_s", node_of(change.gain_s));
    add(node, "gain_deviation_s", node_of(change.gain_deviation_s));
    add(node, "fits", node_of(change.fits));
    add(node, "settings", std::move(settings));
    add(node, "command", node_of(std::string_view(command_of(change, plan, calibration))));
    add(node, "keys", std::move(keys));
    changes.items.push_back(std::move(node));
  }
  add(root, "measured_s", node_of(advice.measured_s));
  add(root, "step_s", node_of(advice.step_s));
  add(root, "changes", std::move(changes));
  return json_text(root);
}

}  // namespace tessera
