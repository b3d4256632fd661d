#include "runtime/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/safetensors.h"

enum { MOST_SHOWN = 6 };

static int64_t count_elements(const RpTensorEntry *entry) {
  int64_t elements = 1;
  for (int i = 0; i < entry->rank; i++) elements *= entry->dims[i];
  return elements;
}

static bool print_entry(const RpTensorFile *file, const RpTensorEntry *entry, RpStatus *status) {
  float values[MOST_SHOWN];
  int64_t elements = count_elements(entry), shown = elements < MOST_SHOWN ? elements : MOST_SHOWN;
  bool readable = rp_tensors_readable(entry, RP_F32);
  if (readable && !rp_tensors_read(file, entry, RP_F32, 0, shown, values, status)) return false;
  printf("%s", entry->name);
  if (entry->rank || !readable) {
    printf(" %s[", entry->type_name);
    for (int i = 0; i < entry->rank; i++) printf("%s%lld", i ? ", " : "", (long long)entry->dims[i]);
    printf("]");
  }
  if (readable) printf(" =");
  for (int64_t i = 0; readable && i < shown; i++) printf(" %.9g", (double)values[i]);
  puts(shown < elements ? " ..." : "");
  return true;
}

bool rp_print_dump(const char *path, RpStatus *status) {
  RpTensorFile file;
  bool good = true;
  if (!rp_tensors_open(&file, path, status)) return false;
  for (int64_t i = 0; good && i < file.count; i++) good = print_entry(&file, &file.entries[i], status);
  rp_tensors_close(&file);
  fflush(stdout);
  return good;
}

char *rp_print_temporary(RpStatus *status) {
  const char *folder = getenv("TMPDIR");
  size_t size = strlen(folder && *folder ? folder : "/tmp") + sizeof "/reprise-print-XXXXXX";
  char *path = rp_allocate((int64_t)size, 1, status);
  if (!path) return NULL;
  snprintf(path, size, "%s/reprise-print-XXXXXX", folder && *folder ? folder : "/tmp");
  int descriptor = mkstemp(path);
  if (descriptor >= 0) {
    close(descriptor);
    return path;
  }
  rp_fail_errno(status, "write", path);
  free(path);
  return NULL;
}
