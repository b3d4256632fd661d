/* Phases as CUDA graphs, and batches on their way into the arena.
 *
 * The first run of a phase is queued kernel by kernel, so that libraries load their code outside a capture; the second
 * is captured, the others replay it.
 *
 * On the stream of the steps: wait for the inputs, control block in, the phase, scalars and control block out, event
 * phase_end. On the stream of copies: wait for phase_end, inputs in, event inputs_end. So the host reads a batch while
 * the phase before runs, and its copy starts when that phase ends, without waiting for the host. */
#include <string.h>

#include "runtime/cuda/device.h"
#include "runtime/types.h"

static int phase_index(const RpContext *context) {
  const RpProgram *program = context->program;
  return context->phase == &program->micro_step ? 0 : context->phase == &program->update ? 1 : 2;
}

static bool report(const RpContext *context, RpStatus *status) {
  if (context->device->status.code == RP_OK) return true;
  *status = context->device->status;
  return false;
}

/* ---- the phase ---- */

static bool capture(RpContext *context, CuGraphExec *executable) {
  RpDevice *device = context->device;
  const CudaLibraries *cuda = &device->cuda;
  CuGraph graph = NULL;
  if (!rp_cuda_check(context, cuda->capture_begin(device->stream, CU_CAPTURE_THREAD_LOCAL), "record a step"))
    return false;
  context->phase->run(context);
  bool ended = rp_cuda_check(context, cuda->capture_end(device->stream, &graph), "record a step");
  if (ended) rp_cuda_check(context, cuda->graph_instantiate(executable, graph, 0), "prepare a step");
  if (graph) cuda->graph_destroy(graph);
  return device->status.code == RP_OK;
}

static void run_phase(RpContext *context) {
  RpDevice *device = context->device;
  CuGraphExec *executable = &device->graphs[phase_index(context)];
  bool *warm = &device->warm[phase_index(context)], direct = context->observer || device->synchronous || !*warm;
  *warm = true;
  if (direct) {
    context->phase->run(context);
  } else if (*executable || capture(context, executable)) {
    context->kernel = -1;
    rp_cuda_check(context, device->cuda.graph_launch(*executable, device->stream), "run a step");
  }
}

static void copy_out(RpContext *context, void *to, int64_t offset, int64_t bytes) {
  RpDevice *device = context->device;
  CuPointer from = device->arena + (CuPointer)offset;
  rp_cuda_check(context, device->cuda.copy_out(to, from, (size_t)bytes, device->stream), "read the results");
}

/* The scalars are read before the next inputs may come: both may have the same bytes. */
static void queue_results(RpContext *context) {
  RpDevice *device = context->device;
  const RpPhase *phase = context->phase;
  copy_out(context, device->pinned.control_out, context->program->control_offset, sizeof(RpControl));
  for (int64_t i = 0; i < phase->scalar_count; i++) {
    const RpScalar *scalar = &phase->scalars[i];
    float *to = &device->pinned.scalars[2 * i];
    copy_out(context, to, scalar->offset, sizeof *to);
    if (scalar->denominator_offset >= 0) copy_out(context, to + 1, scalar->denominator_offset, sizeof *to);
  }
  rp_cuda_check(context, device->cuda.event_record(device->phase_end, device->stream), "end a step");
}

bool rp_cuda_start(RpContext *context, const RpControl *control, RpStatus *status) {
  RpDevice *device = context->device;
  CuPointer to = device->arena + (CuPointer)context->program->control_offset;
  *device->pinned.control_in = *control;
  context->kernel = -1;
  rp_cuda_check(context, device->cuda.stream_wait(device->stream, device->inputs_end, 0), "wait for the inputs");
  rp_cuda_check(context, device->cuda.copy_in(to, device->pinned.control_in, sizeof *control, device->stream),
                "write the control block");
  context->kernel = 0;
  if (device->status.code == RP_OK) run_phase(context);
  context->kernel = -1;
  if (device->status.code == RP_OK) queue_results(context);
  return report(context, status);
}

bool rp_cuda_finish(RpContext *context, RpControl *control, float *scalars, RpStatus *status) {
  RpDevice *device = context->device;
  const RpPhase *phase = context->phase;
  rp_cuda_check(context, device->cuda.event_synchronize(device->phase_end), "finish a step");
  if (!report(context, status)) return false;
  *control = *device->pinned.control_out;
  for (int64_t i = 0; i < phase->scalar_count; i++) {
    scalars[2 * i] = device->pinned.scalars[2 * i];
    scalars[2 * i + 1] = phase->scalars[i].denominator_offset < 0 ? 1 : device->pinned.scalars[2 * i + 1];
  }
  return true;
}

/* ---- inputs ---- */

char *rp_cuda_stage(RpContext *context, bool evaluation, const int64_t **offsets) {
  RpDevice *device = context->device;
  device->slot = (device->slot + 1) % RP_SLOTS;
  *offsets = evaluation ? device->evaluation_offsets : device->input_offsets;
  return device->pinned.slots[device->slot];
}

bool rp_cuda_send(RpContext *context, bool evaluation, RpStatus *status) {
  RpDevice *device = context->device;
  const RpProgram *program = context->program;
  const int64_t *offsets = evaluation ? device->evaluation_offsets : device->input_offsets;
  context->kernel = -1;
  rp_cuda_check(context, device->cuda.stream_wait(device->copies, device->phase_end, 0), "wait for a step");
  for (int64_t i = 0; i < program->input_count && device->status.code == RP_OK; i++) {
    const RpInput *input = &program->inputs[i];
    if (offsets[i] < 0) continue;
    CuPointer to = device->arena + (CuPointer)(evaluation ? input->evaluation_offset : input->tensor.offset);
    const char *from = device->pinned.slots[device->slot] + offsets[i];
    rp_cuda_check(context, device->cuda.copy_in(to, from, (size_t)rp_tensor_bytes(&input->tensor), device->copies),
                  "send the inputs");
  }
  rp_cuda_check(context, device->cuda.event_record(device->inputs_end, device->copies), "send the inputs");
  return report(context, status);
}
