/* tests/planner/test_files.c - graph and plan files: every fault is located, what is written reads back the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ir/diagnostics.h"
#include "passes/planner/replay.h"
#include "passes/planner/strategies.h"
#include "tests/planner/sample_graphs.h"

static PlanGraph *parse(MemoryArena *arena, const char *text) {
  return plan_graph_parse(arena, "g.json", text, (int64_t)strlen(text));
}

#define HEADER "{\"format\": \"reprise-graph\", \"version\": 1, \"tensors\": [{\"id\": \"x\", \"bytes\": 8}], "

/* A file with one fault gives one error that holds the given text. */
static void check_fault(const char *text, const char *expected) {
  MemoryArena *arena = memory_arena_create();
  diag_reset();
  assert_null(parse(arena, text));
  assert_int_equal(diag_error_count(), 1);
  if (!strstr(diag_get(0)->message, expected)) fail_msg("\"%s\" does not say \"%s\"", diag_get(0)->message, expected);
  diag_reset();
  memory_arena_destroy(arena);
}

static void test_graph_faults(void **state) {
  (void)state;
  check_fault("{", "g.json:1:1");
  check_fault("[]", "top level");
  check_fault("{\"format\": \"x\", \"version\": 1, \"nodes\": []}", "format: expected \"reprise-graph\", found \"x\"");
  check_fault(HEADER "\"nodes\": 3}", "nodes: expected an array, found 3");
  check_fault(
      HEADER
      "\"nodes\": [{\"id\": \"a\", \"cost\": 1, \"inputs\": [], \"outputs\": [{\"id\": \"o\", \"bytes\": -4}]}]}",
      "nodes[0].outputs[0].bytes: expected a whole number of bytes, 0 or more, found -4");
  check_fault(
      HEADER
      "\"nodes\": [{\"id\": \"a\", \"cost\": 1, \"inputs\": [], \"outputs\": [{\"id\": \"o\", \"bytes\": 1.5}]}]}",
      "nodes[0].outputs[0].bytes");
  check_fault(HEADER
              "\"nodes\": [{\"id\": \"a\", \"cost\": 1, \"inputs\": [], \"outputs\": [{\"id\": \"o\", \"bytes\": "
              "9223372036854775807}]}]}",
              "exceeds 2^63 - 1");
  check_fault(HEADER "\"nodes\": [{\"id\": \"a\", \"cost\": \"1\", \"inputs\": [], \"outputs\": []}]}",
              "nodes[0].cost");
  check_fault(HEADER "\"nodes\": [{\"id\": \"a\", \"cost\": -1, \"inputs\": [], \"outputs\": []}]}", "nodes[0].cost");
  check_fault(HEADER "\"nodes\": [{\"id\": \"a\", \"cost\": 1e999, \"inputs\": [], \"outputs\": []}]}",
              "not a JSON file");
  check_fault(HEADER "\"nodes\": [{\"id\": \"a\", \"cost\": 1, \"inputs\": [\"q\"], \"outputs\": []}]}",
              "nodes[0].inputs[0]: no tensor and no node before this one makes \"q\"");
  check_fault(
      HEADER
      "\"nodes\": [{\"id\": \"a\", \"cost\": 1, \"inputs\": [\"o\"], \"outputs\": [{\"id\": \"o\", \"bytes\": 1}]}]}",
      "a cycle");
  check_fault(
      HEADER
      "\"nodes\": [{\"id\": \"a\", \"cost\": 1, \"inputs\": [\"o\"], \"outputs\": []}, {\"id\": \"b\", \"cost\": 1, "
      "\"inputs\": [], \"outputs\": [{\"id\": \"o\", \"bytes\": 1}]}]}",
      "made by a later node, nodes[1]");
  check_fault(HEADER
              "\"nodes\": [{\"id\": \"a\", \"cost\": 1, \"inputs\": [], \"outputs\": []}, {\"id\": \"a\", \"cost\": 1, "
              "\"inputs\": [], \"outputs\": []}]}",
              "nodes[1].id: a second node named \"a\"");
  check_fault(
      HEADER "\"nodes\": [{\"id\": \"a\", \"cost\": 1, \"inputs\": [], \"outputs\": [{\"id\": \"x\", \"bytes\": 1}]}]}",
      "nodes[0].outputs[0].id: a second storage named \"x\"");
  check_fault(
      HEADER
      "\"nodes\": [{\"id\": \"a\", \"cost\": 1, \"inputs\": [\"x\"], \"outputs\": [{\"id\": \"o\", \"bytes\": 8}], "
      "\"inplace\": [[\"o\", \"x\"]]}]}",
      "nodes[0].inplace[0]: \"o\" is not an input");
  check_fault(HEADER
              "\"nodes\": [{\"id\": \"a\", \"cost\": 1, \"inputs\": [], \"outputs\": [{\"id\": \"o\", \"bytes\": 8, "
              "\"decision\": \"maybe\"}]}]}",
              "nodes[0].outputs[0].decision: expected one of \"free\", \"keep\", \"recompute\"");
  check_fault(HEADER "\"nodes\": [], \"results\": [\"y\"]}", "results[0]");
}

static void test_graph_round_trip(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed < 30; seed++) {
    MemoryArena *arena = memory_arena_create();
    const char *text = plan_graph_text(arena, random_graph(arena, seed, 5));
    PlanGraph *again = parse(arena, text);
    assert_non_null(again);
    assert_string_equal(plan_graph_text(arena, again), text);
    memory_arena_destroy(arena);
  }
}

static void test_alignment(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph =
      parse(arena,
            "{\"format\": \"reprise-graph\", \"version\": 1, \"alignment\": 64, \"tensors\": [{\"id\": \"x\", "
            "\"bytes\": 1}], \"nodes\": [{\"id\": \"a\", \"cost\": 1, \"inputs\": [\"x\"], \"outputs\": "
            "[{\"id\": \"o\", \"bytes\": 65}], \"workspace\": 3}]}");
  assert_int_equal(plan_keep_all(arena, graph)->peak, 64 + 128 + 64);
  memory_arena_destroy(arena);
}

static void test_plan_round_trip(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed < 30; seed++) {
    MemoryArena *arena = memory_arena_create();
    PlanGraph *graph = random_graph(arena, seed, 6);
    const char *error;
    bool usage;
    Plan *plan =
        plan_by_strategy(arena, graph, PLAN_STRATEGY_GREEDY, 1 + plan_keep_all(arena, graph)->peak / 2, &error, &usage);
    const char *text = plan_text(arena, graph, plan, seed & 1);
    Plan *again = plan_parse(arena, graph, text, (int64_t)strlen(text), &error);
    assert_non_null(again);
    assert_string_equal(plan_text(arena, graph, again, seed & 1), text);
    memory_arena_destroy(arena);
  }
}

static void test_plan_faults(void **state) {
  (void)state;
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 2, false, NULL, NULL);
  const char *figures = "\"peak\": 1, \"cost\": 1, \"base_cost\": 1, \"lower_bound\": 1, \"status\": \"optimal\"";
  const char *const cases[][2] = {{"[\"run\", \"nobody\"]", "\"nobody\" is not a node"},
                                  {"[\"free\", \"nothing\"]", "\"nothing\" is not a storage"},
                                  {"[\"walk\", \"f1\"]", "expected [\"run\", node]"},
                                  {"[\"run\", \"f1\", 5]", "expected {\"into\""},
                                  {"7", "expected [\"run\", node]"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *error = NULL, *text = memory_format(arena, "{%s, \"schedule\": [%s]}", figures, cases[i][0]);
    assert_null(plan_parse(arena, graph, text, (int64_t)strlen(text), &error));
    if (!strstr(error, cases[i][1])) fail_msg("\"%s\" does not say \"%s\"", error, cases[i][1]);
  }
  memory_arena_destroy(arena);
}

/* ---- plan files of ill will ---- */

/* What --plan-in does with a text: NULL when the plan is good, else what is wrong. */
static const char *refuse_plan(MemoryArena *arena, const PlanGraph *graph, const char *text, int64_t length) {
  const char *error = NULL;
  Plan *plan = plan_parse(arena, graph, text, length, &error);
  if (!plan) return error;
  Replay *replay = replay_plan(arena, graph, plan);
  replay_check_claims(arena, graph, plan, replay);
  return replay->faults.count ? replay->faults.items[0] : NULL;
}

static char *replace_once(MemoryArena *arena, const char *text, const char *what, const char *by) {
  const char *at = strstr(text, what);
  assert_non_null(at);
  return memory_format(arena, "%.*s%s%s", (int)(at - text), text, by, at + strlen(what));
}

static void test_hostile_plans(void **state) {
  (void)state;
  static const char *const cases[][3] = {
      {"\"version\": 1", "\"version\": 2", "version 1"},
      {"\"version\": 1", "\"version\": \"1\"", "version 1"},
      {"reprise-plan", "reprise-graph", "expected \"reprise-plan\""},
      {"\"version\": 1", "\"peak\": 7, \"version\": 1", "duplicate"},
      {"\"cost\": 16", "\"cost\": 1e999", "not JSON"},
      {"\"cost\": 16", "\"cost\": \"16\"", "cost: expected a number"},
      {"\"cost\": 16", "\"cost\": 15", "claims cost"},
      {"\"peak\": ", "\"peak\": 99999999999999999999999", "not JSON"},
      {"\"peak\": ", "\"peak\": -", "whole number of bytes"},
      {"\"peak\": ", "\"peak\": 1", "claims peak"},
      {"[\"run\", \"f1\"", "[\"run\", \"f9\"", "\"f9\" is not a node"},
      {"[\"run\", \"f1\"", "[\"run\", \"f2\"", "which is not live"},
      {"[\"run\", \"f1\"", "[\"run\", \"b1\"", "which is not live"},
      {"[\"run\", \"f1\"", "[\"free\", \"h1\"", "h1"},
      {"[\"run\", \"f1\"", "[\"run\", \"f1\", {\"into\": {\"h1\": \"h8\"}}", "h1"},
      {"[\"run\", \"f1\"", "[\"run\", \"f1\", {\"drop\": [\"h1\"]}", "drops outputs on its first run"},
      {"[\"run\", \"f1\"", "[[[[[[[[\"run\", \"f1\"", ""},
      {"\"schedule\": [", "\"schedule\": [{}, ", "schedule[0]: expected"}};
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 8, false, NULL, NULL);
  const char *good = plan_text(arena, graph, plan_keep_all(arena, graph), false);
  assert_null(refuse_plan(arena, graph, good, (int64_t)strlen(good)));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const char *bad = replace_once(arena, good, cases[i][0], cases[i][1]);
    const char *error = refuse_plan(arena, graph, bad, (int64_t)strlen(bad));
    if (!error) fail_msg("\"%s\" is taken", cases[i][1]);
    if (!strstr(error, cases[i][2])) fail_msg("\"%s\" does not say \"%s\"", error, cases[i][2]);
  }
  const char *other = plan_text(arena, graph, plan_keep_all(arena, graph), false);
  assert_non_null(refuse_plan(arena, chain_graph(arena, 9, false, NULL, NULL), other, (int64_t)strlen(other)));
  assert_non_null(refuse_plan(arena, chain_graph(arena, 7, false, NULL, NULL), other, (int64_t)strlen(other)));
  memory_arena_destroy(arena);
}

/* Bytes of a good plan are changed, cut out and doubled at random: each text is read or refused, never more. */
static void test_mutated_plans(void **state) {
  (void)state;
  static const char letters[] = "0123456789{}[]\",:.-+eE\\ \t\nabhfglrun\x01\x80\xff";
  MemoryArena *arena = memory_arena_create();
  PlanGraph *graph = chain_graph(arena, 5, true, NULL, NULL);
  const char *error;
  bool usage;
  Plan *plan = plan_by_strategy(arena, graph, PLAN_STRATEGY_GREEDY, 5 << 20, &error, &usage);
  const char *good = plan_text(arena, graph, plan, true);
  int64_t length = (int64_t)strlen(good);
  uint64_t random = 88172645463325252u;
  int refused = 0;
  for (int round = 0; round < 4000; round++) {
    MemoryArena *scratch = memory_arena_create();
    char *text = NEW_ARRAY(scratch, char, 2 * length + 1);
    int64_t size = length;
    memcpy(text, good, (size_t)length);
    for (int edit = 0; edit <= round % 4; edit++) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      int64_t at = (int64_t)(random >> 8) % size, count = 1 + (int64_t)(random >> 40) % 40;
      if (at < 0) at = -at;
      if (count > size - at) count = size - at;
      if ((random & 7) == 0 && size > count) {
        memmove(text + at, text + at + count, (size_t)(size - at - count));
        size -= count;
      } else if ((random & 7) == 1 && size + count <= 2 * length) {
        memmove(text + at + count, text + at, (size_t)(size - at));
        size += count;
      } else {
        text[at] = letters[(random >> 20) % (sizeof letters - 1)];
      }
    }
    refused += refuse_plan(scratch, graph, text, size) != NULL;
    memory_arena_destroy(scratch);
  }
  assert_true(refused > 2000 && refused < 4000);
  memory_arena_destroy(arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_graph_faults), cmocka_unit_test(test_graph_round_trip),
                                     cmocka_unit_test(test_alignment),    cmocka_unit_test(test_plan_round_trip),
                                     cmocka_unit_test(test_plan_faults),  cmocka_unit_test(test_hostile_plans),
                                     cmocka_unit_test(test_mutated_plans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
