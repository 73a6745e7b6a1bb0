// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/samples/sample_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cost_models/documents/csv.h"
#include "cost_models/documents/strict_json.h"
#include "gui/document/text.h"
#include "gui/document/words.h"

namespace tessera::gui {
namespace {

constexpr std::size_t kMostShown = 240;  // bytes of a text in a cell

// One line of it.
QString beginningOf(const std::string& text) {
  std::size_t end = std::min(text.size(), kMostShown);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) ++end;
  QString line = toText(std::string_view(text).substr(0, end));
  for (QChar& letter : line) {
    if (letter == '\n' || letter == '\r') letter = QChar(0x21b5);
    if (letter == '\t') letter = ' ';
  }
  return end < text.size() ? line + " ..." : line;
}

const std::string& textOf(const Sample& sample, int column) {
  return column == SampleModel::Prompt     ? sample.prompt
         : column == SampleModel::Response ? sample.response
                                           : sample.truth;
}

double numberOf(const Sample& sample, int column) {
  switch (column) {
    case SampleModel::Step:
      return static_cast<double>(sample.step);
    case SampleModel::Reward:
      return sample.reward.value_or(-std::numeric_limits<double>::infinity());
    case SampleModel::Length:
      return static_cast<double>(sample.response_tokens);
    case SampleModel::PromptLength:
      return static_cast<double>(sample.prompt_tokens);
    case SampleModel::LogProb:
      return sample.mean_log_prob.value_or(-std::numeric_limits<double>::infinity());
    default:
      return sample.finished ? 1 : 0;
  }
}

QString lengthText(std::int64_t tokens) {
  return tokens < 0 ? QString("-") : countText(static_cast<double>(tokens));
}

Node listed(const std::vector<std::int32_t>& ids) {
  Node list = list_node();
  for (const std::int32_t id : ids) list.items.push_back(node_of(std::int64_t{id}));
  return list;
}

Node listed(const std::vector<float>& numbers) {
  Node list = list_node();
  for (const float number : numbers) {
    list.items.push_back(std::isnan(number) ? Node{} : node_of(static_cast<double>(number)));
  }
  return list;
}

std::string number_text(double number) { return QString::number(number, 'g', 12).toStdString(); }

}  // namespace

SampleModel::SampleModel(const SampleLimits& limits, QObject* parent)
    : QAbstractTableModel(parent), limits_(limits) {}

void SampleModel::append(std::vector<Sample> samples) {
  if (samples.empty()) return;
  const int first = rowCount();
  beginInsertRows({}, first, first + static_cast<int>(samples.size()) - 1);
  for (Sample& sample : samples) {
    bytes_ += sample.bytes();
    samples_.push_back(std::move(sample));
  }
  endInsertRows();
  std::size_t gone = 0, bytes = bytes_;
  while (samples_.size() - gone > 1 &&
         (samples_.size() - gone > limits_.samples || bytes > limits_.text_bytes)) {
    bytes -= samples_[gone++].bytes();
  }
  if (gone == 0) return;
  lost_ = true;
  beginRemoveRows({}, 0, static_cast<int>(gone) - 1);
  samples_.erase(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(gone));
  bytes_ = bytes;
  endRemoveRows();
}

void SampleModel::clear() {
  beginResetModel();
  samples_.clear();
  bytes_ = 0;
  lost_ = false;
  endResetModel();
}

bool SampleModel::isBefore(int first, int second, int column) const {
  const Sample &a = sample(first), &b = sample(second);
  if (column >= Prompt) return textOf(a, column) < textOf(b, column);
  return numberOf(a, column) < numberOf(b, column);
}

int SampleModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(samples_.size());
}

int SampleModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : ColumnCount;
}

QVariant SampleModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Sample& of = sample(index.row());
  if (role == Qt::TextAlignmentRole) {
    return QVariant((index.column() < Ended ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case Step:
      return static_cast<qlonglong>(of.step);
    case Reward:
      return of.reward ? QString::number(*of.reward, 'g', 4) : QString("-");
    case Length:
      return lengthText(of.response_tokens);
    case PromptLength:
      return lengthText(of.prompt_tokens);
    case LogProb:
      return of.mean_log_prob ? QString::number(*of.mean_log_prob, 'f', 3) : QString("-");
    case Ended:
      return of.finished ? Words::tr("yes") : Words::tr("cut");
    default:
      return beginningOf(textOf(of, index.column()));
  }
}

QVariant SampleModel::headerData(int section, Qt::Orientation orientation, int role) const {
  static constexpr const char* kNames[] = {QT_TRANSLATE_NOOP("Words", "Step"),
                                           QT_TRANSLATE_NOOP("Words", "Reward"),
                                           QT_TRANSLATE_NOOP("Words", "Response tokens"),
                                           QT_TRANSLATE_NOOP("Words", "Prompt tokens"),
                                           QT_TRANSLATE_NOOP("Words", "Mean log-prob."),
                                           QT_TRANSLATE_NOOP("Words", "Ended"),
                                           QT_TRANSLATE_NOOP("Words", "Prompt"),
                                           QT_TRANSLATE_NOOP("Words", "Response"),
                                           QT_TRANSLATE_NOOP("Words", "Expected")};
  if (role != Qt::DisplayRole) return {};
  if (orientation == Qt::Vertical) return section + 1;
  return section < ColumnCount ? Words::tr(kNames[section]) : QVariant();
}

SampleOrder::SampleOrder(SampleModel* samples, QObject* parent)
    : QSortFilterProxyModel(parent), samples_(samples) {
  setSourceModel(samples);
}

void SampleOrder::setText(const QString& text) {
  text_ = small_letters(text.toStdString());
  invalidateFilter();
}

bool SampleOrder::filterAcceptsRow(int row, const QModelIndex&) const {
  return text_.empty() || samples_->sample(row).searched.find(text_) != std::string::npos;
}

bool SampleOrder::lessThan(const QModelIndex& left, const QModelIndex& right) const {
  return samples_->isBefore(left.row(), right.row(), left.column());
}

std::string csv_of(const SampleModel& samples) {
  if (samples.rowCount() == 0) return {};
  CsvTable table;
  table.header = {"step",          "prompt_index",    "sample_index",  "reward",
                  "prompt_tokens", "response_tokens", "mean_log_prob", "finished",
                  "prompt",        "response",        "expected"};
  const auto length = [](std::int64_t tokens) {
    return tokens < 0 ? std::string() : std::to_string(tokens);
  };
  for (const Sample& sample : samples.samples()) {
    table.rows.push_back(
        {0,
         {std::to_string(sample.step), std::to_string(sample.prompt_index),
          std::to_string(sample.sample_index), sample.reward ? number_text(*sample.reward) : "",
          length(sample.prompt_tokens), length(sample.response_tokens),
          sample.mean_log_prob ? number_text(*sample.mean_log_prob) : "",
          sample.finished ? "true" : "false", sample.prompt, sample.response, sample.truth}});
  }
  return to_csv(table);
}

std::string json_of(const SampleModel& samples) {
  if (samples.rowCount() == 0) return {};
  Node list = list_node();
  for (const Sample& sample : samples.samples()) {
    Node line = map_node();
    add(line, "step", node_of(sample.step));
    add(line, "prompt_index", node_of(sample.prompt_index));
    add(line, "sample_index", node_of(sample.sample_index));
    add(line, "reward", sample.reward ? node_of(*sample.reward) : Node{});
    add(line, "prompt_tokens", sample.prompt_tokens < 0 ? Node{} : node_of(sample.prompt_tokens));
    add(line, "response_tokens",
        sample.response_tokens < 0 ? Node{} : node_of(sample.response_tokens));
    add(line, "prompt_ids", listed(sample.prompt_ids));
    add(line, "response_ids", listed(sample.response_ids));
    add(line, "rollout_log_probs", listed(sample.log_probs));
    add(line, "finished", node_of(sample.finished));
    add(line, "prompt", node_of(std::string_view(sample.prompt)));
    add(line, "response", node_of(std::string_view(sample.response)));
    add(line, "expected", node_of(std::string_view(sample.truth)));
    list.items.push_back(std::move(line));
  }
  Node root = map_node();
  add(root, "samples", std::move(list));
  return json_text(root);
}

}  // namespace tessera::gui
