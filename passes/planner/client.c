/* passes/planner/client.c - runs the planner program as a child, reads its stream, judges its plans. */
#include "passes/planner/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ir/signals.h"
#include "passes/planner/memory_limit.h"
#include "passes/planner/plan_json.h"
#include "passes/planner/replay.h"

enum { LONGEST_LINE = 1 << 27, GRACE_SECONDS = 5 };

typedef struct Client {
  MemoryArena *arena;
  const PlanGraph *graph;
  const PlanRequest *request;
  PlanAnswer answer;
  const char *graph_file, *incumbent_file; /* temporary files */
  pid_t child;
  int output; /* read end of the child's stdout */
  ARRAY(char) line;
  bool ended;            /* the planner said that it is at its end */
  int64_t rejected;      /* lines and plans that were not what they should be */
  const char *complaint; /* about the first of them */
  const char *reason;    /* why the planner ended, in its words */
  const char *stopped;   /* why we stopped it */
} Client;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number) { interrupted = number; }

static double now_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void complain(Client *client, const char *what) {
  if (!client->rejected++) client->complaint = memory_string(client->arena, what);
}

static void tell(const Client *client, const char *text) {
  if (client->request->progress) client->request->progress(client->request->context, text);
}

/* ---- judging plans ---- */

/* Is the plan valid, as cheap as it says, and true to the source's constraints? Says what is wrong otherwise. */
static const char *find_fault(MemoryArena *scratch, const PlanGraph *graph, const Plan *plan) {
  Replay *replay = replay_plan(scratch, graph, plan);
  replay_check_claims(scratch, graph, plan, replay);
  if (replay->faults.count) return replay->faults.items[0];
  int32_t storage;
  if (plan_obeys_decisions(scratch, graph, plan, &storage)) return NULL;
  return memory_format(scratch, "breaks the decision on \"%s\"", graph->storages.items[storage].id);
}

static void keep_plan(Client *client, json_t *json, bool fits) {
  const char *error;
  Plan *plan = plan_from_json(client->arena, client->graph, json, &error);
  Plan **slot = fits ? &client->answer.plan : &client->answer.smallest;
  bool worse = *slot && (fits ? plan->cost > (*slot)->cost ||
                                    (plan->cost == (*slot)->cost && plan->lower_bound < (*slot)->lower_bound)
                              : plan->peak >= (*slot)->peak);
  if (worse) return;
  bool better = !*slot || plan->cost < (*slot)->cost;
  *slot = plan;
  if (fits && better)
    tell(client, memory_format(client->arena, "plan: %.2f%% more time than keeping everything",
                               plan->base_cost > 0 ? 100 * (plan->cost / plan->base_cost - 1) : 0));
}

static void receive_plan(Client *client, json_t *json) {
  MemoryArena *scratch = memory_arena_create();
  const char *error;
  Plan *plan = plan_from_json(scratch, client->graph, json, &error);
  if (plan) error = find_fault(scratch, client->graph, plan);
  if (error)
    complain(client, memory_format(scratch, "an invalid plan (%s)", error));
  else
    keep_plan(client, json, plan->peak <= client->request->budget);
  memory_arena_destroy(scratch);
}

static void receive_bound(Client *client, json_t *event) {
  Plan *plan = client->answer.plan;
  double bound = json_number_value(json_object_get(event, "lower_bound"));
  const char *scope = json_string_value(json_object_get(event, "scope"));
  if (!plan || !scope || !(bound > plan->lower_bound) || bound > plan->cost) return;
  plan->lower_bound = bound;
  plan->scope = string_equal(scope, "any") ? PLAN_SCOPE_ANY : PLAN_SCOPE_ORDER;
}

static void receive_end(Client *client, json_t *event) {
  const char *reason = json_string_value(json_object_get(event, "reason"));
  client->ended = true;
  client->reason = memory_string(client->arena, reason ? reason : "no reason given");
  json_t *impossible = json_object_get(event, "largest_impossible");
  if (json_is_integer(impossible)) client->answer.largest_impossible = json_integer_value(impossible);
}

static void receive_line(Client *client, const char *text, int64_t length) {
  json_error_t error;
  json_t *event = json_loadb(text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
  const char *kind = json_string_value(json_object_get(event, "event"));
  if (!kind)
    complain(client, memory_format(client->arena, "a line that is not an event (\"%.*s\")",
                                   (int)(length < 40 ? length : 40), text));
  else if (string_equal(kind, "plan"))
    receive_plan(client, json_object_get(event, "plan"));
  else if (string_equal(kind, "bound"))
    receive_bound(client, event);
  else if (string_equal(kind, "end"))
    receive_end(client, event);
  else if (string_equal(kind, "progress") && json_string_value(json_object_get(event, "what")))
    tell(client, json_string_value(json_object_get(event, "what")));
  json_decref(event);
}

/* ---- the child ---- */

static const char *default_planner(MemoryArena *arena) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  if (length <= 0) return "reprise-planner";
  path[length] = '\0';
  const char *beside = file_sibling(arena, path, "reprise-planner");
  return access(beside, X_OK) == 0 ? memory_format(arena, "'%s'", beside) : "reprise-planner";
}

static const char *write_temporary(Client *client, const char *text) {
  const char *folder = getenv("TMPDIR");
  char *path = memory_format(client->arena, "%s/reprise-XXXXXX", folder && *folder ? folder : "/tmp");
  int descriptor = mkstemp(path);
  FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "wb");
  if (!file) {
    client->answer.note = memory_format(client->arena, "cannot write '%s': %s", path, strerror(errno));
    return NULL;
  }
  bool written = fputs(text, file) >= 0;
  written = fclose(file) == 0 && written;
  if (written) return path;
  client->answer.note = memory_format(client->arena, "cannot write '%s': %s", path, strerror(errno));
  unlink(path);
  return NULL;
}

static bool write_files(Client *client) {
  const PlanRequest *request = client->request;
  client->graph_file = write_temporary(client, plan_graph_text(client->arena, client->graph));
  if (!client->graph_file) return false;
  if (!request->incumbent) return true;
  client->incumbent_file = write_temporary(client, plan_text(client->arena, client->graph, request->incumbent, false));
  return client->incumbent_file != NULL;
}

static _Noreturn void run_child(const char *const *arguments, int output, int64_t memory) {
  setpgid(0, 0);
  limit_address_space(memory);
  signal(SIGINT, SIG_DFL);
  dup2(output, STDOUT_FILENO);
  execv("/bin/sh", (char *const *)arguments);
  _exit(127);
}

static bool start_child(Client *client) {
  const PlanRequest *request = client->request;
  MemoryArena *arena = client->arena;
  const char *planner = request->planner ? request->planner : default_planner(arena);
  const char *arguments[12] = {"sh", "-c", memory_format(arena, "exec %s \"$@\"", planner), "reprise"};
  int count = 4, ends[2];
  arguments[count++] = client->graph_file;
  arguments[count++] = memory_format(arena, "--budget=%lld", (long long)request->budget);
  if (client->incumbent_file) arguments[count++] = memory_format(arena, "--incumbent=%s", client->incumbent_file);
  if (request->nodes) arguments[count++] = memory_format(arena, "--nodes=%lld", (long long)request->nodes);
  if (request->seconds > 0) arguments[count++] = memory_format(arena, "--time=%g", request->seconds);
  if (pipe(ends) != 0) {
    client->answer.note = memory_format(arena, "cannot make a pipe: %s", strerror(errno));
    return false;
  }
  client->child = fork();
  if (client->child == 0) {
    close(ends[0]);
    run_child(arguments, ends[1], request->memory ? request->memory : INT64_C(4) << 30);
  }
  close(ends[1]);
  client->output = ends[0];
  if (client->child > 0) return true;
  close(ends[0]);
  client->answer.note = memory_format(arena, "cannot start the planner: %s", strerror(errno));
  return false;
}

static void take_bytes(Client *client, const char *bytes, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (bytes[i] != '\n') {
      array_push(client->arena, &client->line, bytes[i]);
      continue;
    }
    receive_line(client, client->line.items, client->line.count);
    client->line.count = 0;
  }
}

/* Asks the planner to end, then makes it. */
static void signal_child(Client *client, const char *why, int number) {
  if (!client->stopped) client->stopped = why;
  kill(-client->child, number);
  kill(client->child, number);
}

/* Reads until the stream ends or patience does. */
static void read_stream(Client *client) {
  double deadline = now_seconds() + (client->request->patience > 0 ? client->request->patience : 600);
  bool asked = false;
  char chunk[65536];
  for (;;) {
    bool late = now_seconds() > deadline, lost = client->line.count > LONGEST_LINE;
    if (lost || (asked && late)) {
      signal_child(client, lost ? "it printed a line without end" : "it did not end in time", SIGKILL);
      return;
    }
    if (!asked && (late || interrupted)) {
      signal_child(client, interrupted ? "interrupted" : "it did not end in time", SIGTERM);
      asked = true;
      deadline = now_seconds() + GRACE_SECONDS;
    }
    struct pollfd ready = {.fd = client->output, .events = POLLIN};
    int found = poll(&ready, 1, 100);
    if (found < 0 && errno != EINTR) return;
    if (found <= 0) continue;
    ssize_t got = read(client->output, chunk, sizeof chunk);
    if (got == 0) return;
    if (got > 0) take_bytes(client, chunk, got);
  }
}

/* Has the child ended? It stays to be waited for. */
static bool has_ended(const Client *client) {
  siginfo_t info = {.si_pid = 0};
  return waitid(P_PID, (id_t)client->child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
}

/* Waits for the child; the stream has ended, so it should end too. What it has started ends with it. */
static int wait_for_child(Client *client) {
  int status = 0;
  double deadline = now_seconds() + GRACE_SECONDS;
  while (!has_ended(client)) {
    if (now_seconds() > deadline) {
      signal_child(client, "it did not end after its output", SIGKILL);
      break;
    }
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
  kill(-client->child, SIGKILL);
  while (waitpid(client->child, &status, 0) < 0 && errno == EINTR) continue;
  return status;
}

/* ---- what to make of it ---- */

static const char *describe_failure(Client *client, int status) {
  MemoryArena *arena = client->arena;
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (client->stopped) return memory_format(arena, "the planner was stopped: %s", client->stopped);
  if (WIFSIGNALED(status)) return memory_format(arena, "the planner was killed by signal %d", WTERMSIG(status));
  if (code == 126 || code == 127) return "the planner program could not be run";
  if (!client->ended) return memory_format(arena, "the planner ended early with exit code %d", code);
  if (code != EXIT_OK && code != EXIT_BUDGET_INFEASIBLE && code != EXIT_NO_PLAN && code != EXIT_INTERRUPTED)
    return memory_format(arena, "the planner failed with exit code %d", code);
  if (client->rejected)
    return memory_format(arena, "the planner printed %lld things that were ignored, first %s",
                         (long long)client->rejected, client->complaint);
  return NULL;
}

/* The plan that was handed in, when it holds this budget, with figures of its replay: what it claims may be of other
 * costs. */
static void take_incumbent(Client *client) {
  const PlanGraph *graph = client->graph;
  int32_t storage;
  if (!client->request->incumbent) return;
  Plan *plan = NEW(client->arena, Plan);
  *plan = (Plan){.scope = PLAN_SCOPE_ANY, .base_cost = graph->base_cost, .lower_bound = graph->base_cost};
  plan->steps = client->request->incumbent->steps;
  const Replay *replay = replay_plan(client->arena, graph, plan);
  plan->peak = replay->peak;
  plan->cost = replay->cost;
  memcpy(plan->anatomy, replay->anatomy, sizeof plan->anatomy);
  bool good = !replay->faults.count && plan->peak <= client->request->budget &&
              plan_obeys_decisions(client->arena, graph, plan, &storage);
  if (good) client->answer.plan = plan;
}

/* Without a plan from the planner: the one handed in, or the cheapest of the simple strategies that fits. */
static void fall_back(Client *client) {
  take_incumbent(client);
  for (int s = PLAN_STRATEGY_NONE; s < PLAN_STRATEGY_COUNT; s++) {
    const char *error;
    bool usage;
    Plan *plan =
        plan_by_strategy(client->arena, client->graph, (PlanStrategy)s, client->request->budget, &error, &usage);
    if (!plan) continue;
    int32_t storage;
    if (!plan_obeys_decisions(client->arena, client->graph, plan, &storage)) continue;
    Plan **slot = plan->peak <= client->request->budget ? &client->answer.plan : &client->answer.smallest;
    bool fits = slot == &client->answer.plan;
    if (!fits) plan->budget = 0;
    if (!*slot || (fits ? plan->cost < (*slot)->cost : plan->peak < (*slot)->peak)) *slot = plan;
  }
}

/* What the stream proved and why it ended, whatever the line of the plan said when it was printed. */
static void settle_plan(Client *client, Plan *plan) {
  plan->status = plan_status_of(plan->cost, plan->lower_bound);
  if (plan->status == PLAN_STATUS_OPTIMAL)
    plan->stopped_by = NULL;
  else if (client->answer.note || client->ended)
    plan->stopped_by = client->answer.note ? client->answer.note : client->reason;
}

static void conclude(Client *client, int status) {
  PlanAnswer *answer = &client->answer;
  bool infeasible = client->ended && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_BUDGET_INFEASIBLE;
  answer->note = describe_failure(client, status);
  if (!answer->plan && !infeasible) {
    fall_back(client);
    if (answer->plan && answer->note)
      answer->note = memory_format(client->arena, "%s; the plan is %s%s", answer->note,
                                   answer->plan->strategy ? "that of the strategy " : "the one that was handed in",
                                   answer->plan->strategy ? answer->plan->strategy : "");
  } else if (answer->plan && answer->note) {
    answer->note = memory_format(client->arena, "%s; the plan is the best that it had found", answer->note);
  }
  if (answer->plan) settle_plan(client, answer->plan);
  answer->exit = interrupted ? EXIT_INTERRUPTED : infeasible ? EXIT_BUDGET_INFEASIBLE : EXIT_NO_PLAN;
  if (answer->plan && !interrupted) answer->exit = EXIT_OK;
  if (!answer->plan && !answer->note) answer->note = client->reason;
}

static void run_planner(Client *client) {
  SignalWatch watch;
  interrupted = 0;
  watch_ending_signals(&watch, on_interrupt);
  if (write_files(client) && start_child(client)) {
    read_stream(client);
    close(client->output);
    conclude(client, wait_for_child(client));
  } else {
    client->answer.exit = EXIT_NO_PLAN;
    fall_back(client);
    if (client->answer.plan) client->answer.exit = EXIT_OK;
  }
  if (client->graph_file) unlink(client->graph_file);
  if (client->incumbent_file) unlink(client->incumbent_file);
  restore_ending_signals(&watch);
  if (interrupted && interrupted != SIGINT) raise(interrupted);
}

static void run_simple(Client *client) {
  const PlanRequest *request = client->request;
  PlanAnswer *answer = &client->answer;
  const char *error;
  bool usage;
  Plan *plan = plan_by_strategy(client->arena, client->graph, request->strategy, request->budget, &error, &usage);
  if (!plan) {
    answer->note = error;
    answer->exit = usage ? EXIT_USAGE : EXIT_BUDGET_INFEASIBLE;
  } else if (plan->peak <= request->budget) {
    answer->plan = plan;
  } else {
    plan->budget = 0;
    answer->smallest = plan;
    answer->exit = EXIT_BUDGET_INFEASIBLE;
    answer->note = memory_format(client->arena, "strategy %s has no plan within the budget", plan->strategy);
  }
}

PlanAnswer plan_request(MemoryArena *arena, const PlanGraph *graph, const PlanRequest *request) {
  Client client = {.arena = arena, .graph = graph, .request = request, .answer = {.largest_impossible = -1}};
  if (request->strategy == PLAN_STRATEGY_ILP)
    run_planner(&client);
  else
    run_simple(&client);
  return client.answer;
}
