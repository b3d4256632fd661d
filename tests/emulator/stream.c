/* Streams, events and graphs.
 *
 * Work is queued and, unless settings say otherwise, done as late as the host allows: when it waits. Who forgets to
 * wait for something sees it undone. Beside that every two pieces of work on different streams that touch the same
 * bytes, one of them writing, have to be ordered by events or by the host: each piece carries a vector clock (Fidge
 * 1988, Mattern 1989) with an entry for every stream. */
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/emulator.h"

enum { MOST_STREAMS = 16 };
typedef struct Clock {
  int64_t time[MOST_STREAMS];
} Clock;

typedef enum OperationKind { LAUNCH, COPY_IN, COPY_OUT, FILL, WORK, RECORD, WAIT, GRAPH } OperationKind;

/* One piece of work; in a graph it is part of, or in a queue. */
typedef struct Operation {
  OperationKind kind;
  const char *name;
  Launch launch; /* with copies of the parameters and operands */
  CuPointer device;
  void *host;
  size_t bytes;
  unsigned char value;
  Work work;
  void *data; /* of the launch's parameters, or of the work */
  CuOperand *operands;
  int operand_count;
  CuEvent event;
  int64_t version; /* of the event */
  CuGraphExec graph;
  struct Operation *next;
} Operation;

struct CUgraph_st {
  Operation *first, **last;
};
struct CUgraphExec_st {
  Operation *first;
};
struct CUstream_st {
  int index;
  Operation *first, **last;
  Clock clock;     /* of the piece of work queued last */
  CuGraph capture; /* NULL outside a capture */
};
struct CUevent_st {
  CuStream stream;          /* that it was recorded in */
  int64_t recorded, passed; /* versions */
  Clock clock;
};

/* Operands of queued or done work that the host does not know to be done. */
typedef struct Past {
  int stream;
  int64_t time;
  CuOperand operand;
  const char *name;
} Past;

static struct {
  CuStream streams[MOST_STREAMS];
  Clock host;
  Past *past;
  int past_count, past_capacity;
  CuOperand declared[RP_MAX_ARGUMENTS];
  int declared_count;
} all;

AT_UNLOAD free_past(void) { free(all.past); }

/* ---- order ---- */

static void merge(Clock *clock, const Clock *other) {
  for (int i = 0; i < MOST_STREAMS; i++)
    if (other->time[i] > clock->time[i]) clock->time[i] = other->time[i];
}

static bool overlap(const CuOperand *a, const CuOperand *b) {
  return a->address < b->address + b->bytes && b->address < a->address + a->bytes;
}

static void forget_known(void) {
  int kept = 0;
  for (int i = 0; i < all.past_count; i++)
    if (all.past[i].time > all.host.time[all.past[i].stream]) all.past[kept++] = all.past[i];
  all.past_count = kept;
}

static void check_operand(CuStream stream, const char *name, const CuOperand *operand) {
  for (int i = 0; i < all.past_count; i++) {
    const Past *past = &all.past[i];
    bool reads = operand->use == RP_OPERAND_IN && past->operand.use == RP_OPERAND_IN;
    if (reads || past->time <= stream->clock.time[past->stream] || !overlap(operand, &past->operand)) continue;
    fault(ERROR_LAUNCH_FAILED, "%s on stream %d and %s on stream %d use the same memory, %#llx, in no order", name,
          stream->index, past->name, past->stream, (unsigned long long)operand->address);
    return;
  }
}

static void remember(CuStream stream, const char *name, const CuOperand *operand) {
  if (all.past_count == all.past_capacity) {
    all.past_capacity = all.past_capacity ? 2 * all.past_capacity : 64;
    all.past = realloc(all.past, (size_t)all.past_capacity * sizeof *all.past);
    if (!all.past) abort();
  }
  all.past[all.past_count++] = (Past){stream->index, stream->clock.time[stream->index], *operand, name};
}

static void order_operands(CuStream stream, const Operation *operation) {
  for (int i = 0; i < operation->operand_count; i++) check_operand(stream, operation->name, &operation->operands[i]);
  for (int i = 0; i < operation->operand_count; i++) remember(stream, operation->name, &operation->operands[i]);
}

/* A piece of work follows what its stream had, and what the host knows to be done. */
static void order(CuStream stream, const Operation *operation) {
  merge(&stream->clock, &all.host);
  if (operation->kind == WAIT) merge(&stream->clock, &operation->event->clock);
  stream->clock.time[stream->index]++;
  forget_known();
  order_operands(stream, operation);
  if (operation->kind == RECORD) operation->event->clock = stream->clock;
  for (const Operation *part = operation->kind == GRAPH ? operation->graph->first : NULL; part; part = part->next)
    order_operands(stream, part);
}

/* ---- doing ---- */

static CuResult perform(Operation *operation);

static CuResult flush_until(CuStream stream, CuEvent event, int64_t version) {
  while (stream->first && !broken() && (!event || event->passed < version)) {
    Operation *operation = stream->first;
    stream->first = operation->next;
    if (!stream->first) stream->last = &stream->first;
    perform(operation);
    free(operation->data);
    free(operation->operands);
    free(operation);
  }
  return broken();
}

static CuResult perform_graph(const Operation *operation) {
  for (Operation *part = operation->graph->first; part && !broken(); part = part->next) perform(part);
  return broken();
}

static CuResult perform(Operation *operation) {
  void *device = (void *)(uintptr_t)operation->device;
  switch (operation->kind) {
    case LAUNCH:
      counters.launches++;
      return run_grid(&operation->launch);
    case COPY_IN:
      memcpy(device, operation->host, operation->bytes);
      touch(operation->device, operation->bytes);
      return 0;
    case COPY_OUT:
      memcpy(operation->host, device, operation->bytes);
      return 0;
    case FILL:
      memset(device, operation->value, operation->bytes);
      touch(operation->device, operation->bytes);
      return 0;
    case WORK:
      return operation->work(operation->data);
    case RECORD:
      operation->event->passed = operation->version;
      return 0;
    case WAIT:
      if (operation->event->passed >= operation->version) return 0;
      return flush_until(operation->event->stream, operation->event, operation->version);
    case GRAPH:
      return perform_graph(operation);
  }
  return ERROR_INVALID_VALUE;
}

static void host_knows(const Clock *clock) {
  merge(&all.host, clock);
  forget_known();
}

CuResult synchronize_all(void) {
  for (int i = 0; i < MOST_STREAMS; i++)
    if (all.streams[i]) flush_until(all.streams[i], NULL, 0), host_knows(&all.streams[i]->clock);
  return broken();
}

/* ---- queueing ---- */

static CuResult enqueue(CuStream stream, Operation operation) {
  if (unusable()) return broken();
  bool plain = operation.kind != RECORD && operation.kind != WAIT && operation.kind != GRAPH;
  if (stream->capture && !plain) return fault(ERROR_CAPTURE_UNSUPPORTED, "events and graphs inside a capture");
  Operation *queued = malloc(sizeof *queued);
  if (!queued) abort();
  *queued = operation;
  queued->next = NULL;
  Operation ***last = stream->capture ? &stream->capture->last : &stream->last;
  **last = queued;
  *last = &queued->next;
  if (stream->capture) return 0;
  order(stream, queued);
  if (settings()->eager && !broken()) return flush_until(stream, NULL, 0);
  return broken();
}

static void *copy(const void *from, size_t bytes) {
  void *to = malloc(bytes ? bytes : 1);
  if (!to) abort();
  if (bytes) memcpy(to, from, bytes);
  return to;
}

static CuOperand *one_operand(CuPointer address, size_t bytes, int use) {
  return copy(&(CuOperand){address, bytes, use}, sizeof(CuOperand));
}

/* For the launch that follows. */
EXPORT void repriseEmulatorDeclareOperands(const CuOperand *operands, int count) {
  memcpy(all.declared, operands, (size_t)count * sizeof *operands);
  all.declared_count = count;
}

/* Pointers to the parameters, then the parameters, each at a multiple of 16. */
static void **copy_parameters(const Launch *launch) {
  const RepriseKernel *kernel = launch->function->kernel;
  size_t count = (size_t)kernel->count, head = (count * sizeof(void *) + 15) / 16 * 16;
  char *memory = calloc(1, head + 16 * count + 1);
  if (!memory) abort();
  void **pointers = (void **)(void *)memory;
  for (size_t i = 0; i < count; i++) {
    pointers[i] = memory + head + 16 * i;
    memcpy(pointers[i], launch->parameters[i], kernel->sizes[i]);
  }
  return pointers;
}

CuResult enqueue_launch(CuStream stream, const Launch *launch) {
  Operation operation = {.kind = LAUNCH, .name = launch->function->name, .launch = *launch};
  operation.operand_count = all.declared_count;
  operation.operands = copy(all.declared, (size_t)all.declared_count * sizeof *all.declared);
  all.declared_count = 0;
  operation.data = operation.launch.parameters = copy_parameters(launch);
  operation.launch.operands = operation.operands;
  operation.launch.operand_count = operation.operand_count;
  return enqueue(stream, operation);
}

CuResult enqueue_work(CuStream stream, const char *name, Work work, const void *data, size_t bytes,
                      const CuOperand *operands, int count) {
  counters.products++;
  return enqueue(stream, (Operation){.kind = WORK,
                                     .name = name,
                                     .work = work,
                                     .data = copy(data, bytes),
                                     .operands = copy(operands, (size_t)count * sizeof *operands),
                                     .operand_count = count});
}

static CuResult check_device(CuPointer address, size_t bytes, const char *what) {
  if (broken() || find_allocation(address, bytes)) return broken();
  return fault(ERROR_ILLEGAL_ADDRESS, "%s %zu bytes at %#llx, which is not allocated", what, bytes,
               (unsigned long long)address);
}

static CuResult check_host(const void *address, size_t bytes) {
  if (broken() || in_pinned_memory(address, bytes)) return broken();
  return fault(ERROR_INVALID_VALUE, "a copy on a stream needs pinned host memory");
}

EXPORT CuResult cuMemcpyHtoDAsync_v2(CuPointer to, const void *from, size_t bytes, CuStream stream) {
  if (check_device(to, bytes, "copies") || check_host(from, bytes)) return broken();
  return enqueue(stream, (Operation){.kind = COPY_IN,
                                     .name = "copy in",
                                     .device = to,
                                     .host = (void *)(uintptr_t)from,
                                     .bytes = bytes,
                                     .operands = one_operand(to, bytes, RP_OPERAND_OUT),
                                     .operand_count = 1});
}

EXPORT CuResult cuMemcpyDtoHAsync_v2(void *to, CuPointer from, size_t bytes, CuStream stream) {
  if (check_device(from, bytes, "copies") || check_host(to, bytes)) return broken();
  return enqueue(stream, (Operation){.kind = COPY_OUT,
                                     .name = "copy out",
                                     .device = from,
                                     .host = to,
                                     .bytes = bytes,
                                     .operands = one_operand(from, bytes, RP_OPERAND_IN),
                                     .operand_count = 1});
}

EXPORT CuResult cuMemsetD8Async(CuPointer to, unsigned char value, size_t bytes, CuStream stream) {
  if (check_device(to, bytes, "fills")) return broken();
  return enqueue(stream, (Operation){.kind = FILL,
                                     .name = "fill",
                                     .device = to,
                                     .value = value,
                                     .bytes = bytes,
                                     .operands = one_operand(to, bytes, RP_OPERAND_OUT),
                                     .operand_count = 1});
}

/* ---- streams ---- */

EXPORT CuResult cuStreamCreate(CuStream *stream, unsigned flags) {
  (void)flags;
  if (unusable()) return broken();
  int index = 0;
  while (index < MOST_STREAMS && all.streams[index]) index++;
  if (index == MOST_STREAMS) return ERROR_INVALID_VALUE;
  *stream = all.streams[index] = calloc(1, sizeof **stream);
  if (!*stream) abort();
  (*stream)->index = index;
  (*stream)->last = &(*stream)->first;
  return broken();
}

static void drop(Operation *operation) {
  while (operation) {
    Operation *next = operation->next;
    free(operation->data);
    free(operation->operands);
    free(operation);
    operation = next;
  }
}

EXPORT CuResult cuStreamDestroy_v2(CuStream stream) {
  CuResult result = synchronize_all();
  drop(stream->first);
  all.streams[stream->index] = NULL;
  all.host.time[stream->index] = stream->clock.time[stream->index]; /* an index that is given out again goes on */
  if (stream->capture) drop(stream->capture->first);
  free(stream->capture);
  free(stream);
  return result;
}

EXPORT CuResult cuStreamSynchronize(CuStream stream) {
  if (stream->capture) return fault(ERROR_CAPTURE_UNSUPPORTED, "a stream is waited for inside its capture");
  flush_until(stream, NULL, 0);
  host_knows(&stream->clock);
  return broken();
}

EXPORT CuResult cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned flags) {
  (void)flags;
  if (strcmp(settings()->without, "cuStreamWaitEvent") == 0) return broken();
  return enqueue(stream, (Operation){.kind = WAIT, .name = "wait", .event = event, .version = event->recorded});
}

/* ---- events ---- */

EXPORT CuResult cuEventCreate(CuEvent *event, unsigned flags) {
  (void)flags;
  if (unusable()) return broken();
  *event = calloc(1, sizeof **event);
  if (!*event) abort();
  return broken();
}

EXPORT CuResult cuEventDestroy_v2(CuEvent event) {
  CuResult result = synchronize_all();
  free(event);
  return result;
}

EXPORT CuResult cuEventRecord(CuEvent event, CuStream stream) {
  event->stream = stream;
  event->recorded++;
  return enqueue(stream, (Operation){.kind = RECORD, .name = "event", .event = event, .version = event->recorded});
}

EXPORT CuResult cuEventSynchronize(CuEvent event) {
  if (strcmp(settings()->without, "cuEventSynchronize") == 0) return broken();
  if (event->passed < event->recorded) flush_until(event->stream, event, event->recorded);
  host_knows(&event->clock);
  return broken();
}

/* ---- graphs ---- */

EXPORT CuResult cuStreamBeginCapture_v2(CuStream stream, int mode) {
  (void)mode;
  if (broken()) return broken();
  if (stream->capture) return ERROR_INVALID_VALUE;
  stream->capture = calloc(1, sizeof *stream->capture);
  if (!stream->capture) abort();
  stream->capture->last = &stream->capture->first;
  return 0;
}

EXPORT CuResult cuStreamEndCapture(CuStream stream, CuGraph *graph) {
  *graph = stream->capture;
  stream->capture = NULL;
  return *graph ? broken() : ERROR_INVALID_VALUE;
}

/* Takes the graph's work over; a graph is instantiated once. */
EXPORT CuResult cuGraphInstantiateWithFlags(CuGraphExec *executable, CuGraph graph, unsigned long long flags) {
  (void)flags;
  *executable = calloc(1, sizeof **executable);
  if (!*executable) abort();
  (*executable)->first = graph->first;
  graph->first = NULL;
  return broken();
}

EXPORT CuResult cuGraphLaunch(CuGraphExec executable, CuStream stream) {
  counters.graph_launches++;
  return enqueue(stream, (Operation){.kind = GRAPH, .name = "graph", .graph = executable});
}

EXPORT CuResult cuGraphExecDestroy(CuGraphExec executable) {
  CuResult result = synchronize_all();
  drop(executable->first);
  free(executable);
  return result;
}

EXPORT CuResult cuGraphDestroy(CuGraph graph) {
  drop(graph->first);
  free(graph);
  return broken();
}
