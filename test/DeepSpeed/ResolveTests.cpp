// What a configuration becomes: "auto", combinations, the command line.

#include "TestConfig.h"

using namespace llvm;
using namespace partita::config;
using namespace partita::config::test;

//===------------------------------------------------------------------------------------------===//
// "auto"
//===------------------------------------------------------------------------------------------===//

/// Everything "auto", as Hugging Face's users write it.
static constexpr StringLiteral kAuto = R"({
  "bfloat16": {"enabled": "auto"},
  "fp16": {"enabled": "auto", "loss_scale": 0, "loss_scale_window": 1000,
    "initial_scale_power": 16, "hysteresis": 2, "min_loss_scale": 1},
  "optimizer": {"type": "AdamW",
    "params": {"lr": "auto", "betas": "auto", "eps": "auto", "weight_decay": "auto"}},
  "scheduler": {"type": "WarmupLR",
    "params": {"warmup_min_lr": "auto", "warmup_max_lr": "auto", "warmup_num_steps": "auto"}},
  "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "pin_memory": true},
    "allgather_partitions": true, "allgather_bucket_size": 2e8, "overlap_comm": true,
    "reduce_scatter": true, "reduce_bucket_size": 2e8, "contiguous_gradients": true},
  "gradient_accumulation_steps": "auto", "gradient_clipping": "auto",
  "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
  "steps_per_print": 1e5
})";

TEST(Auto, Sample) {
  Facts facts = withModel(factsOf({{"dp", 2}}));
  facts.dims = {{"batch", 8}};
  Outcome outcome = resolveText(kAuto, facts);
  ASSERT_TRUE(outcome.ok) << outcome.said;
  EXPECT_EQ(outcome.plan("precision"), ""); // there too, --bf16 and --fp16 are on the command line
  EXPECT_EQ(outcome.value("bf16.enabled"), "false");
  EXPECT_EQ(outcome.value("fp16.enabled"), "false");
  EXPECT_EQ(outcome.from("bf16.enabled"), "no --precision on the command line");
  EXPECT_EQ(outcome.plan("loss-scale"), "");
  EXPECT_EQ(outcome.idle("fp16.loss_scale"), "no loss is scaled in float32");
  EXPECT_EQ(outcome.plan("optimizer"), "adamw");
  EXPECT_EQ(outcome.plan("lr"), "0.001");
  EXPECT_EQ(outcome.plan("betas"), "0.9,0.999");
  EXPECT_EQ(outcome.plan("eps"), "1e-08");
  EXPECT_EQ(outcome.plan("weight-decay"), "0");
  EXPECT_EQ(outcome.plan("lr-schedule"),
            "WarmupLR,warmup_min_lr=0,warmup_max_lr=0.001,warmup_num_steps=2");
  EXPECT_EQ(outcome.plan("clip"), "1");
  EXPECT_EQ(outcome.plan("zero-stage"), "2");
  EXPECT_EQ(outcome.plan("offload"), "optimizer");
  EXPECT_EQ(outcome.plan("bucket-bytes"), "800000000"); // four bytes each
  EXPECT_EQ(outcome.plan("accumulate"), "1");
  EXPECT_EQ(outcome.run("print-every"), "100000");
  EXPECT_EQ(outcome.value("train_batch_size"), "8");
}

TEST(Auto, TheResolvedFileResolvesToTheSame) {
  Facts facts = withModel(factsOf({{"dp", 2}}));
  facts.dims = {{"batch", 8}};
  Outcome first = resolveText(kAuto, facts);
  std::string text;
  raw_string_ostream os(text);
  first.resolution.print(os);
  Outcome second = resolveText(text, facts);
  ASSERT_TRUE(second.ok) << second.said << text;
  ASSERT_EQ(first.resolution.plan.size(), second.resolution.plan.size());
  for (const Setting &setting : first.resolution.plan)
    EXPECT_EQ(second.plan(setting.option), setting.value) << setting.option;
}

TEST(Auto, FromTheCommandLine) {
  Facts facts = withModel(factsOf({{"dp", 2}}));
  facts.dims = {{"batch", 8}};
  facts.commandLine = {{"lr", "3e-5"},
                       {"betas", "0.9,0.95"},
                       {"weight-decay", "0.1"},
                       {"clip", "2"},
                       {"precision", "float16"}};
  facts.warmupSteps = 50;
  Outcome outcome = resolveText(kAuto, facts);
  ASSERT_TRUE(outcome.ok) << outcome.said;
  EXPECT_EQ(outcome.plan("lr"), ""); // it is set already
  EXPECT_EQ(outcome.value("optimizer.params.betas"), "[0.9, 0.95]");
  EXPECT_EQ(outcome.from("optimizer.params.lr"), "command line, --lr");
  EXPECT_EQ(outcome.plan("lr-schedule"),
            "WarmupLR,warmup_min_lr=0,warmup_max_lr=3e-05,warmup_num_steps=50");
  EXPECT_EQ(outcome.value("fp16.enabled"), "true");
  EXPECT_EQ(outcome.plan("loss-scale"), "0");
  EXPECT_EQ(outcome.plan("initial-scale-power"), "16");
  EXPECT_EQ(outcome.plan("min-loss-scale"), "1");
}

TEST(Auto, ByTheModel) {
  StringRef text = R"({"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto",
    "stage3_max_live_parameters": "auto"}})";
  Outcome outcome = resolveText(text, withModel(factsOf({{"dp", 2}})));
  ASSERT_TRUE(outcome.ok) << outcome.said;
  EXPECT_EQ(outcome.plan("bucket-bytes"), "256");   // 8 x 8, four bytes each
  EXPECT_EQ(outcome.plan("prefetch-bytes"), "228"); // 0.9 x 64 = 57
  EXPECT_EQ(outcome.plan("persistence-threshold"), "80");
  EXPECT_EQ(outcome.value("zero_optimization.stage3_max_live_parameters"), "1e9");
  expectError(resolveText(text, factsOf({{"dp", 2}})), "1:58",
              "none for 'zero_optimization.reduce_bucket_size' (the model, whose hidden size gives "
              "it, or --bucket-bytes N), 'zero_optimization.stage3_prefetch_bucket_size' (");
}

TEST(Auto, Steps) {
  StringRef text = R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto",
    "warmup_max_lr": "auto", "warmup_num_steps": "auto"}}})";
  expectError(resolveText(text), "1:71", "'scheduler.params.total_num_steps' (--total-steps N)");
  Facts facts;
  facts.totalSteps = 1000;
  Outcome outcome = resolveText(text, facts);
  ASSERT_TRUE(outcome.ok) << outcome.said;
  EXPECT_EQ(outcome.plan("lr-schedule"),
            "WarmupDecayLR,total_num_steps=1000,warmup_max_lr=0.001,warmup_num_steps=2");
  expectError(resolveText("{}", facts), "1:1", "--total-steps has no effect");
  facts.totalSteps = 5;
  expectError(
      resolveText(R"({"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 7}}})",
                  facts),
      "1:71", "is 7, but the command line says --total-steps 5");
}

TEST(Auto, Precision) {
  auto precision = [](StringRef fp16, StringRef bf16) {
    std::string text = "{";
    if (!fp16.empty())
      text += ("\"fp16\": {\"enabled\": " + fp16 + "}\n").str();
    if (!bf16.empty())
      text += ("\"bf16\": {\"enabled\": " + bf16 + "}\n").str();
    Outcome outcome = resolveText(text + "}");
    return outcome.ok ? outcome.plan("precision") : "error";
  };
  // Hugging Face's "auto": precisions that no command line requests are not enabled.
  EXPECT_EQ(precision("\"auto\"", "\"auto\""), "");
  EXPECT_EQ(precision("true", "\"auto\""), "float16");
  EXPECT_EQ(precision("false", "\"auto\""), "");
  EXPECT_EQ(precision("\"auto\"", "true"), "bfloat16");
  EXPECT_EQ(precision("\"auto\"", "false"), "");
  EXPECT_EQ(precision("\"auto\"", ""), "");
  EXPECT_EQ(precision("", ""), "");
  EXPECT_EQ(precision("false", "false"), "");
  EXPECT_EQ(precision("true", "true"), "error");
}

TEST(Auto, WhereThereIsNoRule) {
  expectError(resolveText(R"({"steps_per_print": "auto"})"), "1:21",
              "'steps_per_print' has no rule for \"auto\"");
}

//===------------------------------------------------------------------------------------------===//
// Combinations
//===------------------------------------------------------------------------------------------===//

namespace {
struct ErrorCase {
  StringLiteral text, place, part;
};
} // namespace

static constexpr ErrorCase errorCases[] = {
    {R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})", "1:49",
     "bf16 and fp16 are both enabled"},
    {R"({"fp16": {"enabled": true, "initial_scale_power": 2, "min_loss_scale": 8}})", "1:72",
     "is above the first scale, 2 to the power of initial_scale_power 2 = 4"},
    {R"({"communication_data_type": "fp16", "fp32_allreduce": true})", "1:29",
     "but fp32_allreduce is true"},
    {R"({"amp": {"enabled": true, "opt_level": "O1"}, "zero_optimization": {"stage": 1}})", "1:21",
     "Apex"},
    {R"({"sparse_gradients": true, "zero_optimization": {"stage": 1}})", "1:22",
     "do not go with ZeRO (stage 1)"},
    {R"({"gradient_allreduce_op": "sum", "zero_optimization": {"stage": 3}})", "1:27",
     "is \"sum\": gradients are those of the mean loss"},
    {R"({"optimizer": {"type": "OneBitLamb", "params": {"factor_max": 0.1}}})", "1:63",
     "factor_min 0.5 is above factor_max 0.1"},
    {R"({"optimizer": {"type": "ZeroOneAdam", "params": {"local_step_clipper": 2}}})", "1:72",
     "is 2: between two sums each rank would have other parameters"},
    {R"({"optimizer": {"type": "OneBitAdam", "params": {"var_freeze_step": 100}}})", "1:49",
     "'var_freeze_step' is not a parameter of the optimizer 'OneBitAdam'"},
    {R"({"optimizer": {"type": "Adamm"}})", "1:24", "did you mean 'Adam'?"},
    {R"({"optimizer": {"params": {"alpha": 0.9}, "type": "RMSprop"}})", "1:50",
     "there is no optimizer 'RMSprop'; there are Adam, AdamW, SGD, Lion, Adagrad, Lamb, OneBitAdam, "
     "OneBitLamb and ZeroOneAdam"},
    {R"({"optimizer": {"params": {"lr": 0.1}}})", "1:2", "has no \"type\""},
    {R"({"optimizer": {"type": "SGD", "params": {"betas": [0.9, 0.99]}}})", "1:42",
     "'betas' is not a parameter of the optimizer 'SGD', which has lr, momentum"},
    {R"({"gradient_clipping": 1, "optimizer": {"type": "Adam", "params": {"max_grad_norm": 2}}})",
     "1:84",
     "'optimizer.params.max_grad_norm' is 2, but gradient_clipping is 1; leave one of them out"},
    {R"({"optimizer": {"type": "Lamb", "params": {"max_coeff": 0.1, "min_coeff": 0.5}}})", "1:56",
     "min_coeff 0.5 is above max_coeff 0.1"},
    {R"({"scheduler": {"type": "WarmupDecayLR"}})", "1:24",
     "WarmupDecayLR needs 'scheduler.params.total_num_steps'"},
    {R"({"scheduler": {"type": "WarmupLr"}})", "1:24", "did you mean 'WarmupLR'?"},
    {R"({"scheduler": {"type": "WarmupLR", "params": {"cycle_min_lr": 1}}})", "1:47",
     "is not a parameter of WarmupLR, which has warmup_min_lr, warmup_max_lr, warmup_num_steps, "
     "warmup_type"},
    {R"({"optimizer": {"type": "SGD"}, "scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 1}}})",
     "1:54", "'SGD' has none; set \"cycle_momentum\": false"},
    {R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 0.1, "cycle_max_lr": 0.01}}})",
     "1:84", "cycle_max_lr 0.01 is below cycle_min_lr 0.1"},
    {R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "nvme"}}})", "1:68",
     "nothing is kept on NVMe"},
    {R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.3}}})",
     "1:84", "DeepSpeed allows at stage 3 alone"},
    {R"({"zero_optimization": {"mics_shard_size": 4}})", "1:43",
     "the mesh's axis fsdp has 1 rank; it must divide"},
    {R"({"activation_checkpointing": {"partition_activations": true}})", "1:56",
     "has no effect without --recompute"},
    {R"({"activation_checkpointing": {"contiguous_memory_optimization": true}})", "1:65",
     "needs \"number_checkpoints\""},
    {R"({"pipeline": {"stages": 2}})", "1:25",
     "'pipeline.stages' is 2, but the mesh is one rank, as no --mesh is given; give --mesh pp=2,..."},
    {R"({"pipeline": {"activation_checkpoint_interval": 2}})", "1:49",
     "keeps the input of each layer, not of every 2; 1 does that (--recompute block)"},
    {R"({"pipeline": {"partition": "profile"}})", "1:28",
     "is 'profile', expected best, uniform, parameters or type:REGEX"},
    {R"({"pipeline": {"stages": "two"}})", "1:25", "expected \"auto\" or an integer"},
    {R"({"tensor_parallel": {"autotp_size": 4}})", "1:37",
     "one rank, as no --mesh is given; give --mesh dp=N,tp=4"},
    {R"({"sequence_parallel_size": 2})", "1:28", "give --mesh dp=N,cp=2"},
    {R"({"elasticity": {"enabled": true}, "pipeline": {"stages": 1}})", "1:28",
     "compiled for one mesh"},
    {R"({"sparse_attention": {"mode": "bigbird", "attention": "unidirectional"}})", "1:55",
     "is unidirectional, which DeepSpeed does not pass on to mode bigbird"},
    {R"({"sparse_attention": {"mode": "variable", "local_window_blocks": [2, "x"]}})", "1:66",
     "expected a list of one integer or more"},
    {R"({"sparse_attention": {"mode": "variable", "global_block_indices": []}})", "1:67",
     "expected a list of one integer or more"},
    {R"({"sparse_attention": {"enabled": true}})", "1:23",
     "unknown key 'sparse_attention.enabled'"},
    {R"({"sparse_attention": {"mode": "sliding-window"}})", "1:31",
     "expected one of fixed, dense, variable, bigbird, bslongformer"},
    {R"({"bf16": {"enabled": true, "bf16_optimizer_states": true}})", "1:53",
     "optimizer states are float32"},
    {R"({"bfloat16": {"enabled": true}, "bf16": {"enabled": true}})", "1:33",
     "'bf16' is another name of 'bfloat16', which is given too"},
    {R"({"zero_optimization": {"stage": 4}})", "1:33", "is 4, expected an integer from 0 to 3"},
    {R"({"zero_optimization": {"stage": "2"}})", "1:33", "write it without quotes"},
    {R"({"zero_optimization": {"stagee": 2}})", "1:24",
     "unknown key 'zero_optimization.stagee'; did you mean 'zero_optimization.stage'?"},
    {R"({"zero_optimization.stage": 2})", "1:2", "unknown key 'zero_optimization.stage'"},
    {R"({"stage": 2})", "1:2", "did you mean 'zero_optimization.stage'?"},
    {R"({"fp16": true})", "1:10", "'fp16' is true, expected a block"},
    {R"({"fp16": {"loss_scale": true}})", "1:25", "is true, expected a number of at least 0"},
    {R"({"checkpoint": {"tag_validation": "Fial"}})", "1:35", "did you mean \"Fail\"?"},
    {R"({"gradient_clipping": -1})", "1:23", "is -1, expected a number of at least 0"},
    {R"({"optimizer": {"type": "Adam", "params": {"betas": [0.9, 1.0]}}})", "1:52",
     "expected two numbers, each at least 0 and below 1"},
    {R"({"csv_monitor": {"enabled": true, "job_name": "a\u0007b"}})", "1:47",
     "with characters that no path has"},
};

TEST(Combinations, Errors) {
  for (const ErrorCase &each : errorCases) {
    SCOPED_TRACE(each.text.str());
    expectError(resolveText(each.text), each.place, each.part);
  }
}

TEST(Combinations, Options) {
  auto plan = [](StringRef text, StringRef option) {
    Outcome outcome = resolveText(text, factsOf({{"dp", 2}, {"tp", 2}}));
    EXPECT_TRUE(outcome.ok) << outcome.said;
    return outcome.plan(option);
  };
  EXPECT_EQ(
      plan(R"({"optimizer": {"type": "Adam", "params": {"adam_w_mode": false}}})", "optimizer"),
      "adam");
  EXPECT_EQ(plan(R"({"optimizer": {"type": "adam"}})", "optimizer"), "adamw");
  EXPECT_EQ(plan(R"({"optimizer": {"type": "Lion"}})", "betas"), "0.9,0.99");
  EXPECT_EQ(plan(R"({"optimizer": {"type": "Adagrad"}})", "eps"), "1e-10");
  EXPECT_EQ(plan(R"({"optimizer": {"type": "Adagrad"}})", "lr"), "0.01");
  EXPECT_EQ(plan(R"({"optimizer": {"type": "Lamb", "params": {"max_coeff": 0.3}}})", "lamb-bounds"),
            "0.01,0.3");
  EXPECT_EQ(plan(R"({"optimizer": {"type": "OneBitLamb", "params": {"factor_min": 0.25}}})",
                 "factor-bounds"),
            "0.25,4");
  EXPECT_EQ(
      plan(R"({"optimizer": {"type": "OneBitLamb", "params": {"max_coeff": 0.3}}})", "lamb-bounds"),
      "0.01,0.3");
  EXPECT_EQ(
      plan(R"({"optimizer": {"type": "OneBitLamb", "params": {"coeff_beta": 0.8}}})", "coeff-beta"),
      "0.8");
  EXPECT_EQ(plan(R"({"optimizer": {"type": "Adam", "params": {"bias_correction": false}}})",
                 "no-bias-correction"),
            "true");
  EXPECT_EQ(plan(R"({"zero_optimization": true})", "zero-stage"), "1");
  EXPECT_EQ(plan(R"({"zero_optimization": {"stage": 2, "cpu_offload": true}})", "offload"),
            "optimizer");
  EXPECT_EQ(
      plan(
          R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"}},
                     "activation_checkpointing": {"cpu_checkpointing": true}})",
          "offload"),
      "optimizer,parameters,activations");
  EXPECT_EQ(plan("{}", "clip"), "1");
  EXPECT_EQ(plan(R"({"gradient_clipping": 0})", "clip"), "0");
  EXPECT_EQ(plan(R"({"optimizer": {"type": "Adam", "params": {"max_grad_norm": 3}}})", "clip"),
            "3");
  EXPECT_EQ(plan(R"({"fp32_allreduce": true})", "reduce-type"), ""); // it is the default anyway
  EXPECT_EQ(plan(R"({"bf16": {"enabled": true}, "fp32_allreduce": true})", "reduce-type"),
            "float32");
  EXPECT_EQ(plan(R"({"communication_data_type": "bf16"})", "reduce-type"), "bfloat16");
  EXPECT_EQ(plan(R"({"data_types": {"grad_accum_dtype": "fp32"}})", "accumulate-type"), "");
  EXPECT_EQ(
      plan(
          R"({"bf16": {"enabled": true}, "gradient_accumulation_steps": 2, "data_types": {"grad_accum_dtype": "fp32"}})",
          "accumulate-type"),
      "float32");
  EXPECT_EQ(plan(R"({"fp16": {"enabled": true, "loss_scale": 128}})", "loss-scale"), "128");
  EXPECT_EQ(plan(R"({"bf16": {"enabled": true}})", "loss-scale"), "1");
  EXPECT_EQ(
      plan(R"({"bf16": {"enabled": true}, "optimizer": {"type": "onebitadam"}})", "loss-scale"),
      "");
  EXPECT_EQ(plan(R"({"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 100}})",
                 "prefetch-bytes"),
            "400");
  EXPECT_EQ(plan(R"({"zero_optimization": {"stage": 2, "stage3_prefetch_bucket_size": 100}})",
                 "prefetch-bytes"),
            "");
}

TEST(Combinations, OneDataParallelRank) {
  Outcome outcome =
      resolveText(R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"},
    "reduce_bucket_size": 100, "stage3_prefetch_bucket_size": "auto"}})",
                  factsOf({{"tp", 2}}));
  ASSERT_TRUE(outcome.ok) << outcome.said;
  EXPECT_EQ(outcome.plan("zero-stage"), "");
  EXPECT_EQ(outcome.idle("zero_optimization.stage"), "one data-parallel rank keeps all");
  EXPECT_EQ(outcome.plan("prefetch-bytes"), "");
  EXPECT_EQ(outcome.plan("offload"), "optimizer");
}

TEST(Combinations, RanksOfASequenceShareTheState) {
  StringRef text = R"({"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 1000},
    "sequence_parallel_size": 2})";
  Outcome outcome = resolveText(text, factsOf({{"cp", 2}}));
  ASSERT_TRUE(outcome.ok) << outcome.said;
  EXPECT_EQ(outcome.plan("zero-stage"), "3");
  EXPECT_EQ(outcome.plan("prefetch-bytes"), "4000");
  EXPECT_EQ(outcome.plan("context-parallel"), "all-to-all");
}

TEST(Combinations, UlyssesWithinARing) {
  StringRef text = R"({"zero_optimization": {"stage": 2}, "sequence_parallel_size": 2})";
  Outcome outcome = resolveText(text, factsOf({{"cp", 4}, {"ulysses", 2}}));
  ASSERT_TRUE(outcome.ok) << outcome.said;
  EXPECT_EQ(outcome.plan("zero-stage"), "2");
  EXPECT_EQ(outcome.plan("context-parallel"), "");
  outcome = resolveText(R"({"sequence_parallel_size": 4})", factsOf({{"cp", 4}, {"ulysses", 2}}));
  EXPECT_FALSE(outcome.ok);
  EXPECT_NE(outcome.said.find("axis ulysses has 2 ranks; give --mesh dp=N,ulysses=4"),
            std::string::npos)
      << outcome.said;
  outcome = resolveText(R"({"sequence_parallel_size": 1})", factsOf({{"ulysses", 2}}));
  EXPECT_NE(outcome.said.find("is 1, but the mesh's axis ulysses has 2 ranks; give --mesh dp=N"),
            std::string::npos)
      << outcome.said;
}

TEST(Combinations, AnotherWayThanDeepSpeedsIsAContradiction) {
  Facts facts = factsOf({{"cp", 2}});
  facts.commandLine["context-parallel"] = "ring";
  Outcome outcome = resolveText(R"({"sequence_parallel_size": 2})", facts);
  EXPECT_FALSE(outcome.ok);
  EXPECT_NE(outcome.said.find("'sequence_parallel_size' asks for --context-parallel all-to-all, "
                              "but the command line says --context-parallel ring"),
            std::string::npos)
      << outcome.said;
}

TEST(Combinations, RanksOfTpReduceNoGradients) {
  StringRef text =
      R"({"zero_optimization": {"reduce_bucket_size": 100}, "communication_data_type": "bf16"})";
  Facts facts = factsOf({{"tp", 2}});
  Outcome outcome = resolveText(text, facts);
  ASSERT_TRUE(outcome.ok) << outcome.said;
  constexpr StringLiteral why = "ranks of tp reduce no gradients without --sequence-parallel";
  EXPECT_EQ(outcome.idle("zero_optimization.reduce_bucket_size"), why);
  EXPECT_EQ(outcome.idle("communication_data_type"), why);
  EXPECT_EQ(outcome.plan("bucket-bytes") + outcome.plan("reduce-type"), "");
  facts.commandLine["sequence-parallel"] = "true";
  outcome = resolveText(text, facts);
  EXPECT_EQ(outcome.plan("bucket-bytes"), "400");
  EXPECT_EQ(outcome.plan("reduce-type"), "bfloat16");
}

TEST(Combinations, PipelineStages) {
  StringRef text = R"({"pipeline": {"stages": 2}, "zero_optimization": {"stage": 2}})";
  Outcome outcome = resolveText(text, factsOf({{"pp", 2}, {"dp", 2}}));
  EXPECT_TRUE(outcome.ok) << outcome.said;
  EXPECT_EQ(outcome.plan("zero-stage"), "2");
  expectError(resolveText(text, factsOf({{"pp", 4}, {"dp", 2}})), "1:25",
              "is 2, but the mesh's axis pp has 4 stages; give --mesh pp=2,...");
}

TEST(Combinations, Runs) {
  Outcome outcome =
      resolveText(R"({"tensorboard": {"enabled": true, "output_path": "tb/", "job_name": "bert"},
    "csv_monitor": {"enabled": true, "output_path": "csv/", "job_name": "bert"},
    "wall_clock_breakdown": true, "steps_per_print": 20})");
  ASSERT_TRUE(outcome.ok) << outcome.said;
  EXPECT_EQ(outcome.run("tensorboard"), "tb/");
  EXPECT_EQ(outcome.run("job-name"), "bert");
  EXPECT_EQ(outcome.run("log"), "csv/bert.csv");
  EXPECT_EQ(outcome.run("breakdown"), "true");
  EXPECT_EQ(outcome.run("print-every"), "20");
}

TEST(CommandLine, MustAgree) {
  Facts facts = factsOf({{"dp", 2}});
  facts.commandLine = {{"lr", "1e-3"}, {"zero-stage", "2"}};
  Outcome outcome =
      resolveText(R"({"optimizer": {"type": "AdamW", "params": {"lr": 0.001}}})", facts);
  EXPECT_TRUE(outcome.ok) << outcome.said;
  expectError(
      resolveText(R"({"optimizer": {"type": "AdamW", "params": {"lr": 0.01}}})", facts), "1:50",
      "'optimizer.params.lr' asks for --lr 0.01, but the command line says --lr 1e-3; leave one "
      "of them out");
  expectError(resolveText(R"({"zero_optimization": {"stage": 3}})", facts), "1:33",
              "but the command line says --zero-stage 2");
  facts.commandLine = {{"offload", "parameters"}};
  expectError(
      resolveText(R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})", facts),
      "1:56", "asks for the optimizer on the host, but the command line says --offload parameters");
  facts.commandLine = {{"precision", "float32"}};
  expectError(resolveText(R"({"fp16": {"enabled": true}})", facts), "1:22",
              "'fp16.enabled' is true, but the command line says --precision float32");
  facts.commandLine = {{"clip", "2"}};
  EXPECT_EQ(resolveText("{}", facts).from("gradient_clipping"), "command line, --clip");
}

TEST(CommandLine, SwitchesMayNotContradict) {
  Facts facts;
  facts.commandLine["no-bias-correction"] = "true";
  facts.commandLine["nesterov"] = "true";
  expectError(
      resolveText(R"({"optimizer": {"type": "AdamW", "params": {"bias_correction": true}}})",
                  facts),
      "1:63", "is true, but the command line says --no-bias-correction");
  Outcome outcome = resolveText(R"({"optimizer": {"type": "AdamW"}})", facts);
  EXPECT_EQ(outcome.value("optimizer.params.bias_correction"), "false");
  EXPECT_EQ(outcome.from("optimizer.params.bias_correction"), "command line, --no-bias-correction");
  expectError(
      resolveText(
          R"({"optimizer": {"type": "SGD", "params": {"momentum": 0.9, "nesterov": false}}})",
          facts),
      "1:71", "is false, but the command line says --nesterov");
}

TEST(Optimizer, Nesterov) {
  EXPECT_EQ(resolveText(
                R"({"optimizer": {"type": "SGD", "params": {"momentum": 0.9, "nesterov": true}}})")
                .plan("nesterov"),
            "true");
}

TEST(Offload, StatesThatTheHostCannotUpdate) {
  expectError(resolveText(R"({"optimizer": {"type": "Lamb"},
  "zero_optimization": {"offload_optimizer": {"device": "cpu"}}})"),
              "2:57", "the host cannot update Lamb's states");
  expectError(
      resolveText(R"({"optimizer": {"type": "SGD"}, "zero_optimization": {"cpu_offload": true}})"),
      "1:69", "SGD without momentum keeps no states");
  EXPECT_TRUE(resolveText(R"({"optimizer": {"type": "SGD", "params": {"momentum": 0.9}},
  "zero_optimization": {"offload_optimizer": {"device": "cpu"}}})")
                  .ok);
  Facts facts;
  facts.commandLine["optimizer"] = "lamb";
  expectError(
      resolveText(R"({"zero_optimization": {"offload_optimizer": {"device": "cpu"}}})", facts),
      "1:56", "the host cannot update Lamb's states");
}

TEST(CommandLine, WhatIsNotThereYet) {
  Facts facts;
  facts.knowsPlan = [](StringRef option) { return option == "lr" || option == "optimizer"; };
  facts.knowsRun = [](StringRef option) { return option == "print-every"; };
  expectError(
      resolveText(R"({"gradient_clipping": 2})", facts), "1:23",
      "'gradient_clipping' needs the plan option --clip, which this version does not have yet");
  expectError(resolveText(R"({"wall_clock_breakdown": true})", facts), "1:26",
              "needs the run option --breakdown");
  EXPECT_TRUE(resolveText("{}", facts).ok); // DeepSpeed's default alone requires nothing
}

TEST(SparseAttention, KeysOfTheMode) {
  Outcome outcome = resolveText(
      R"({"sparse_attention": {"mode": "BigBird", "num_local_blocks": 8, "num_sliding_window_blocks": 5}})");
  ASSERT_TRUE(outcome.ok) << outcome.said;
  // DeepSpeed's default of its configuration, not that of its class.
  EXPECT_EQ(outcome.plan("sparse-attention"),
            "mode=bigbird,num_random_blocks=0,num_sliding_window_blocks=5");
  EXPECT_EQ(outcome.idle("sparse_attention.num_local_blocks"), "mode bigbird does not have it");
  EXPECT_EQ(resolveText(R"({"sparse_attention": {}})").plan("sparse-attention"), "mode=fixed");
  EXPECT_EQ(resolveText(R"({"sparse_attention": {"mode": "variable", "local_window_blocks": [1, 2],
                            "global_block_end_indices": null}})")
                .plan("sparse-attention"),
            "mode=variable,num_random_blocks=0,local_window_blocks=1:2");
  EXPECT_EQ(resolveText("{}").plan("sparse-attention"), "");
}
