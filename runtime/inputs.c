#include "runtime/inputs.h"

#include "runtime/arena.h"

static bool stage(RpRun *run, RpData *data, int64_t number, RpStatus *status) {
  const RpBackend *backend = rp_backend(&run->context);
  const int64_t *offsets;
  char *to = backend->stage(&run->context, data->test, &offsets);
  return rp_data_load_at(data, run->program, number, to, offsets, status) &&
         backend->send(&run->context, data->test, status);
}

bool rp_inputs_load(RpRun *run, RpData *data, int64_t number, RpStatus *status) {
  bool staged = run->staged_data == data && run->staged == number;
  run->staged_data = NULL;
  if (staged) return true;
  if (!rp_backend(&run->context)) return rp_data_load(data, run->program, number, run->context.arena, status);
  return stage(run, data, number, status);
}

void rp_inputs_prefetch(RpRun *run, RpData *data, int64_t number) {
  RpStatus ignored = {0};
  if (!rp_backend(&run->context) || !stage(run, data, number, &ignored)) return;
  run->staged_data = data;
  run->staged = number;
}
