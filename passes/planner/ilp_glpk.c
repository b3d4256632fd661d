/* passes/planner/ilp_glpk.c - the only file that sees GLPK (GPL-3.0-or-later): solves a Mip by branch and cut.
 *
 * Settings that were measured to matter: no presolve (column numbers stay those of the Mip), the root relaxation by the
 * dual simplex with the long-step ratio test after geometric scaling, MIR and cover cuts. GLPK abort()s on internal
 * errors; the error hook jumps out instead, the environment is freed, and the caller sees MIP_FAILED. */
#include <glpk.h>
#include <math.h>
#include <setjmp.h>

#include "passes/planner/mip.h"

enum { MANY_COLUMNS = 4000 };

typedef struct Session {
  Mip *mip;
  const MipLimits *limits;
  const MipEvents *events;
  glp_prob *problem;
  double *values;
  double bound;
  int64_t nodes; /* for which cuts were sought */
  int64_t root_work;
  bool stopped;
} Session;

static void set_row(Session *session, int number, const MipRow *row) {
  int *columns = NEW_ARRAY(session->mip->arena, int, row->count + 1);
  double *values = NEW_ARRAY(session->mip->arena, double, row->count + 1);
  for (int32_t e = 0; e < row->count; e++) {
    columns[e + 1] = session->mip->entries.items[row->start + e].column + 1;
    values[e + 1] = session->mip->entries.items[row->start + e].value;
  }
  bool below = row->lower == -HUGE_VAL, above = row->upper == HUGE_VAL;
  int kind = below ? (above ? GLP_FR : GLP_UP) : above ? GLP_LO : row->lower == row->upper ? GLP_FX : GLP_DB;
  glp_set_row_bnds(session->problem, number, kind, row->lower, row->upper);
  glp_set_mat_row(session->problem, number, row->count, columns, values);
}

static void load_problem(Session *session) {
  const Mip *mip = session->mip;
  glp_prob *problem = session->problem;
  glp_set_obj_dir(problem, GLP_MIN);
  glp_set_obj_coef(problem, 0, mip->constant);
  if (mip->columns.count) glp_add_cols(problem, (int)mip->columns.count);
  for (int j = 1; j <= mip->columns.count; j++) {
    const MipColumn *column = &mip->columns.items[j - 1];
    bool above = column->upper == HUGE_VAL;
    int kind = column->lower == column->upper ? GLP_FX : above ? GLP_LO : GLP_DB;
    glp_set_col_kind(problem, j, column->integer ? GLP_IV : GLP_CV);
    glp_set_col_bnds(problem, j, kind, column->lower, column->upper);
    glp_set_obj_coef(problem, j, column->cost);
  }
  if (mip->rows.count) glp_add_rows(problem, (int)mip->rows.count);
  for (int i = 1; i <= mip->rows.count; i++) set_row(session, i, &mip->rows.items[i - 1]);
}

static bool read_values(Session *session) {
  bool integral = true;
  for (int64_t j = 0; j < session->mip->columns.count; j++) {
    double value = glp_get_col_prim(session->problem, (int)j + 1);
    session->values[j] = value;
    if (session->mip->columns.items[j].integer && fabs(value - round(value)) > 1e-6) integral = false;
  }
  return integral;
}

/* Shows an integral relaxation to the caller and passes the rows on that it comes back with. */
static void generate_rows(Session *session) {
  if (!session->events->candidate || !read_values(session)) return;
  int64_t before = session->mip->rows.count;
  session->events->candidate(session->events->context, session->mip, session->values);
  for (int64_t r = before; r < session->mip->rows.count; r++) {
    int number = glp_add_rows(session->problem, 1);
    set_row(session, number, &session->mip->rows.items[r]);
  }
}

static void note_bound(Session *session, glp_tree *tree) {
  int best = glp_ios_best_node(tree);
  if (best) session->bound = fmax(session->bound, glp_ios_node_bound(tree, best));
}

/* Work done so far: simplex iterations and, for branching and cuts, what each node costs. */
static int64_t work_done(const Session *session) {
  int64_t iterations = glp_get_it_cnt(session->problem);
  return iterations * (3 * session->mip->rows.count + 1000) +
         session->nodes * (10 * session->mip->entries.count + 30000);
}

static void on_event(glp_tree *tree, void *info) {
  Session *session = info;
  int active, current, total;
  glp_ios_tree_size(tree, &active, &current, &total);
  note_bound(session, tree);
  if (glp_ios_reason(tree) == GLP_ICUTGEN) session->nodes++;
  bool over = total > session->limits->nodes || work_done(session) > session->limits->work ||
              session->bound >= session->limits->cutoff;
  if (over || (session->events->stop && session->events->stop(session->events->context))) {
    session->stopped = true;
    glp_ios_terminate(tree);
    return;
  }
  if (glp_ios_reason(tree) == GLP_IROWGEN) generate_rows(session);
}

/* Solves the root relaxation; on numerical failure tries again with the LP presolver. */
static int solve_root(Session *session) {
  glp_smcp settings;
  glp_init_smcp(&settings);
  settings.msg_lev = GLP_MSG_OFF;
  settings.meth = GLP_DUALP;
  settings.r_test = GLP_RT_FLIP;
  int64_t most = session->limits->work / (3 * session->mip->rows.count + 1000) + 1;
  settings.it_lim = most < INT32_MAX ? (int)most : INT32_MAX;
  glp_scale_prob(session->problem, GLP_SF_GM | GLP_SF_EQ | GLP_SF_2N);
  glp_adv_basis(session->problem, 0);
  int fault = glp_simplex(session->problem, &settings);
  if (fault == 0 || fault == GLP_EITLIM) return fault;
  glp_adv_basis(session->problem, 0);
  settings.presolve = GLP_ON;
  settings.meth = GLP_PRIMAL;
  return glp_simplex(session->problem, &settings);
}

static int branch(Session *session) {
  glp_iocp settings;
  glp_init_iocp(&settings);
  settings.msg_lev = GLP_MSG_OFF;
  /* Driebeck and Tomlin's rule looks at a row of the tableau for every fractional column: too slow on large programs.
   */
  if (session->mip->columns.count > MANY_COLUMNS) settings.br_tech = GLP_BR_MFV;
  settings.mip_gap = session->limits->gap;
  settings.mir_cuts = GLP_ON;
  settings.cov_cuts = GLP_ON;
  settings.sr_heur = GLP_OFF; /* would record roundings that the caller has not checked */
  settings.cb_func = on_event;
  settings.cb_info = session;
  return glp_intopt(session->problem, &settings);
}

static MipStatus run(Session *session) {
  load_problem(session);
  int fault = solve_root(session);
  session->root_work = work_done(session);
  if (fault == GLP_EITLIM) return MIP_LIMIT;
  if (fault) return MIP_FAILED;
  int relaxed = glp_get_status(session->problem);
  if (relaxed == GLP_NOFEAS) return MIP_INFEASIBLE;
  if (relaxed != GLP_OPT) return MIP_FAILED;
  session->bound = glp_get_obj_val(session->problem);
  fault = branch(session);
  if (fault && fault != GLP_EMIPGAP && fault != GLP_ESTOP) return MIP_FAILED;
  int status = glp_mip_status(session->problem);
  if (status == GLP_NOFEAS) return MIP_INFEASIBLE;
  if (status == GLP_OPT && !session->stopped) return MIP_OPTIMAL;
  return status == GLP_OPT || status == GLP_FEAS ? MIP_FEASIBLE : MIP_LIMIT;
}

static jmp_buf broken;

static void on_error(void *info) {
  (void)info;
  longjmp(broken, 1);
}

MipResult mip_solve(Mip *mip, const MipLimits *limits, const MipEvents *events) {
  /* Everything that is read after a jump lives in the arena: locals may be lost. */
  Session *session = NEW(mip->arena, Session);
  *session = (Session){.mip = mip, .limits = limits, .events = events, .bound = -HUGE_VAL};
  session->values = NEW_ARRAY(mip->arena, double, mip->columns.count + 1);
  MipResult *result = NEW(mip->arena, MipResult);
  glp_term_out(GLP_OFF);
  if (setjmp(broken)) {
    glp_free_env();
    return (MipResult){.status = MIP_FAILED, .bound = -HUGE_VAL, .work = limits->work, .root_work = limits->work};
  }
  glp_error_hook(on_error, NULL);
  session->problem = glp_create_prob();
  result->status = run(session);
  result->bound = session->bound;
  result->work = work_done(session);
  result->root_work = session->root_work;
  if (result->status == MIP_OPTIMAL) {
    double objective = glp_mip_obj_val(session->problem);
    result->bound = fmin(objective, fmax(session->bound, objective - limits->gap * fabs(objective)));
  }
  glp_delete_prob(session->problem);
  glp_error_hook(NULL, NULL);
  glp_free_env();
  return *result;
}
