#include "runtime/dump.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/arena.h"
#include "runtime/types.h"

static bool phase_has(const RpPhase *phase, const char *name) {
  for (int64_t i = 0; i < phase->observable_count; i++) {
    if (strcmp(phase->observables[i].tensor.name, name) == 0) return true;
  }
  return false;
}

static void add(RpDump *dump, const RpPhase *phase, const RpObservable *observable) {
  dump->observables[dump->count] = observable;
  dump->phases[dump->count++] = phase;
}

/* Micro-step's observables that the update's do not replace, then the update's. */
static void collect(RpDump *dump, const RpProgram *program) {
  const RpPhase *micro_step = &program->micro_step, *update = &program->update;
  for (int64_t i = 0; i < micro_step->observable_count; i++) {
    const RpObservable *observable = &micro_step->observables[i];
    if (!phase_has(update, observable->tensor.name)) add(dump, micro_step, observable);
  }
  for (int64_t i = 0; i < update->observable_count; i++) add(dump, update, &update->observables[i]);
}

bool rp_dump_start(RpDump *dump, const RpProgram *program, const char *path, RpStatus *status) {
  int64_t most = program->micro_step.observable_count + program->update.observable_count;
  *dump = (RpDump){0};
  dump->observables = rp_allocate(most, sizeof *dump->observables, status);
  dump->phases = rp_allocate(most, sizeof *dump->phases, status);
  dump->written = rp_allocate(most, sizeof *dump->written, status);
  RpTensor *tensors = rp_allocate(most, sizeof *tensors, status);
  dump->active = dump->observables && dump->phases && dump->written && tensors;
  if (dump->active) {
    collect(dump, program);
    for (int64_t i = 0; i < dump->count; i++) tensors[i] = dump->observables[i]->tensor;
    dump->active = rp_writer_open(&dump->writer, path, tensors, dump->count, NULL, 0, status);
  }
  free(tensors);
  if (!dump->active) rp_dump_discard(dump);
  return dump->active;
}

static double load(const RpTensor *tensor, const char *data, int64_t index) {
  return tensor->type == RP_F64 ? ((const double *)(const void *)data)[index]
                                : (double)((const float *)(const void *)data)[index];
}

/* The values divided by the scalar at divisor_offset, in the tensor's type, a chunk at a time. */
static bool write_quotient(RpDump *dump, int64_t index, const RpContext *context, RpStatus *status) {
  enum { CHUNK = 4096 };
  _Alignas(8) char chunk[8 * CHUNK];
  const RpTensor *tensor = &dump->observables[index]->tensor;
  int64_t elements = rp_tensor_elements(tensor), size = rp_type_size(tensor->type);
  float divisor;
  if (!rp_arena_read(context, dump->observables[index]->divisor_offset, &divisor, sizeof divisor, status)) return false;
  if (tensor->type != RP_F32 && tensor->type != RP_F64) {
    return rp_fail(status, RP_INTERNAL, "'%s' of type %s has a divisor", tensor->name, rp_type_name(tensor->type));
  }
  for (int64_t at = 0; at < elements; at += CHUNK) {
    int64_t count = elements - at < CHUNK ? elements - at : CHUNK;
    if (!rp_arena_read(context, tensor->offset + at * size, chunk, count * size, status)) return false;
    for (int64_t i = 0; i < count; i++) {
      double value = load(tensor, chunk, i);
      rp_store(tensor->type, chunk, i, tensor->type == RP_F32 ? (double)((float)value / divisor) : value / divisor);
    }
    if (!rp_writer_put_part(&dump->writer, index, at * size, chunk, count * size, status)) return false;
  }
  return true;
}

static bool write_observable(RpDump *dump, int64_t index, const RpContext *context, RpStatus *status) {
  if (dump->observables[index]->divisor_offset >= 0) return write_quotient(dump, index, context, status);
  return rp_arena_save(context, &dump->writer, index, &dump->observables[index]->tensor, status);
}

void rp_dump_kernel(RpDump *dump, const RpContext *context, int64_t kernel) {
  for (int64_t i = 0; i < dump->count && dump->status.code == RP_OK; i++) {
    const RpObservable *observable = dump->observables[i];
    if (dump->written[i] || dump->phases[i] != context->phase || observable->step != kernel) continue;
    if (observable->kind == RP_OBSERVE_LOSS) continue; /* written combined */
    dump->written[i] = write_observable(dump, i, context, &dump->status);
  }
}

bool rp_dump_finish(RpDump *dump, double loss, RpStatus *status) {
  bool complete = dump->status.code == RP_OK;
  if (!complete) *status = dump->status;
  for (int64_t i = 0; i < dump->count && complete; i++) {
    if (dump->observables[i]->kind == RP_OBSERVE_LOSS) {
      _Alignas(8) char value[8];
      rp_store(dump->observables[i]->tensor.type, value, 0, loss);
      complete = dump->written[i] = rp_writer_put(&dump->writer, i, value, status);
    } else if (!dump->written[i]) {
      complete = rp_fail(status, RP_INTERNAL, "'%s' was not made at step %lld as the program's table says",
                         dump->observables[i]->tensor.name, (long long)dump->observables[i]->step);
    }
  }
  if (complete) complete = rp_writer_commit(&dump->writer, status);
  rp_dump_discard(dump);
  return complete;
}

void rp_dump_discard(RpDump *dump) {
  rp_writer_discard(&dump->writer);
  free(dump->observables);
  free(dump->phases);
  free(dump->written);
  *dump = (RpDump){0};
}
