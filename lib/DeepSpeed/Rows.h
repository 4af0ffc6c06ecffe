//===- Rows.h - helpers to write rows of keys ---------------------------------------*- C++ -*-===//

#ifndef PARTITA_LIB_DEEPSPEED_ROWS_H
#define PARTITA_LIB_DEEPSPEED_ROWS_H

#include "partita/DeepSpeed/Keys.h"

namespace partita::config {

constexpr double kMost = 1e15;
constexpr Shape boolean{Shape::Boolean};
constexpr Shape text{Shape::Text};
constexpr Shape betas{Shape::Betas};
constexpr Shape anything{Shape::Anything};
constexpr Shape block{Shape::Block};
constexpr Shape checkedBlock{Shape::Block, 0, 0, "", /*dropsAuto=*/true};
constexpr Shape foreign{Shape::Foreign};
constexpr Shape integer(double low, double high = kMost) { return {Shape::Integer, low, high}; }
constexpr Shape number(double low, double high = 1e300) { return {Shape::Number, low, high}; }
constexpr Shape choice(llvm::StringLiteral values) { return {Shape::Choice, 0, 0, values}; }
constexpr Use Obeyed = Use::Obeyed, NoEffect = Use::NoEffect, Refused = Use::Refused,
              Part = Use::Part;

Section batchKeys();
Section stepKeys();
Section precisionKeys();
Section optimizerKeys();
Section schedulerKeys();
Section zeroKeys();
Section offloadKeys();
Section activationCheckpointingKeys();
Section monitorKeys();
Section tensorParallelKeys();
Section pipelineKeys();
Section checkpointKeys();
Section sparseAttentionKeys();
Section elasticityKeys();
Section compileKeys();
Section outOfScopeKeys();

} // namespace partita::config

#endif // PARTITA_LIB_DEEPSPEED_ROWS_H
