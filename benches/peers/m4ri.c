/* Times the elimination routes of the M4RI library on one matrix and prints one JSON line.
 *
 *   m4ri ROWS COLS REPEATS dense|sparse|lowrank SEED     a matrix drawn here
 *   m4ri ROWS COLS REPEATS file PATH                     raw little-endian 64-bit words by rows
 *   m4ri ROWS COLS REPEATS product SEED                  mzd_mul of two dense ones, ROWS x COLS and COLS x ROWS
 *
 * A separate executable because M4RI is under the GPL: it is called from here and linked into
 * nothing else. Echelon form only (full = 0), which is what a rank needs. Every repetition works on
 * a fresh copy, and the copy is made before the clock starts. The routes take turns, so that a slow
 * spell of the machine falls on all of them.
 */
#define _POSIX_C_SOURCE 200809L

#include <m4ri/m4ri.h>

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUTES 3
#define MAX_SIDE 1000000L

static const char *const ROUTE_NAMES[ROUTES] = {"echelonize", "echelonize_m4ri", "echelonize_pluq"};

static void fail(const char *what, const char *detail) {
  fprintf(stderr, "m4ri: %s: %s\n", what, detail);
  exit(2);
}

static long parse_count(const char *name, const char *text, long least, long most) {
  char *end = NULL;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < least || value > most) {
    fail(name, text);
  }
  return value;
}

/* SplitMix64 (Steele, Lea and Flood 2014): a benchmark needs repeatable bits, not secret ones. */
static uint64_t next_word(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* The bits past the last column must be zero, which M4RI relies on. */
static word last_word_mask(long cols) {
  const long used = cols % 64;
  return used == 0 ? ~(word)0 : (((word)1) << used) - 1;
}

static void fill_random(mzd_t *matrix, uint64_t *state, int and_depth) {
  const long width = (matrix->ncols + 63) / 64;
  const word mask = last_word_mask(matrix->ncols);
  for (long i = 0; i < matrix->nrows; i++) {
    word *row = mzd_row(matrix, (rci_t)i);
    for (long j = 0; j < width; j++) {
      word bits = next_word(state);
      for (int k = 0; k < and_depth; k++) {
        bits &= next_word(state);
      }
      row[j] = bits;
    }
    if (width > 0) {
      row[width - 1] &= mask;
    }
  }
}

/* A product of two thin random matrices: rank min(rows, cols) / 2 with overwhelming probability. */
static void fill_low_rank(mzd_t *matrix, uint64_t *state) {
  const rci_t inner = (matrix->nrows < matrix->ncols ? matrix->nrows : matrix->ncols) / 2;
  if (inner == 0) {
    return;
  }
  mzd_t *left = mzd_init(matrix->nrows, inner);
  mzd_t *right = mzd_init(inner, matrix->ncols);
  fill_random(left, state, 0);
  fill_random(right, state, 0);
  mzd_mul(matrix, left, right, 0);
  mzd_free(left);
  mzd_free(right);
}

static word read_little_endian(const unsigned char *bytes) {
  word value = 0;
  for (int k = 7; k >= 0; k--) {
    value = (value << 8) | bytes[k];
  }
  return value;
}

static void fill_from_file(mzd_t *matrix, const char *path) {
  const size_t width = ((size_t)matrix->ncols + 63) / 64;
  const word mask = last_word_mask(matrix->ncols);
  FILE *file = fopen(path, "rb");
  unsigned char *bytes = malloc(width * 8 + 1);
  if (file == NULL || bytes == NULL) {
    fail("cannot open", path);
  }
  for (long i = 0; i < matrix->nrows; i++) {
    if (fread(bytes, 8, width, file) != width) {
      fail("too short for the stated shape", path);
    }
    word *row = mzd_row(matrix, (rci_t)i);
    for (size_t j = 0; j < width; j++) {
      row[j] = read_little_endian(bytes + 8 * j);
    }
    if (width > 0) {
      row[width - 1] &= mask;
    }
  }
  if (fgetc(file) != EOF) {
    fail("too long for the stated shape", path);
  }
  free(bytes);
  fclose(file);
}

/* Where the library has one thread its own processor time, so that a busy machine does not count against it. */
static double now(void) {
  struct timespec t;
  clock_gettime(__M4RI_HAVE_OPENMP ? CLOCK_MONOTONIC : CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static rci_t run_route(int route, mzd_t *matrix) {
  switch (route) {
  case 0:
    return mzd_echelonize(matrix, 0);
  case 1:
    return mzd_echelonize_m4ri(matrix, 0, 0);
  default:
    return mzd_echelonize_pluq(matrix, 0);
  }
}

static void time_products(rci_t rows, rci_t cols, long repeats, uint64_t state) {
  mzd_t *left = mzd_init(rows, cols);
  mzd_t *right = mzd_init(cols, rows);
  mzd_t *product = mzd_init(rows, rows);
  fill_random(left, &state, 0);
  fill_random(right, &state, 0);
  printf("{\"seconds\": [");
  for (long i = 0; i < repeats; i++) {
    const double start = now();
    mzd_mul(product, left, right, 0);
    printf("%s%.9f", i == 0 ? "" : ", ", now() - start);
  }
  printf("]}\n");
  mzd_free(product);
  mzd_free(right);
  mzd_free(left);
}

int main(int argc, char **argv) {
  if (argc != 6) {
    fail("usage", "m4ri ROWS COLS REPEATS dense|sparse|lowrank|product|file SEED|PATH");
  }
  const rci_t rows = (rci_t)parse_count("ROWS", argv[1], 1, MAX_SIDE);
  const rci_t cols = (rci_t)parse_count("COLS", argv[2], 1, MAX_SIDE);
  const long repeats = parse_count("REPEATS", argv[3], 1, 1000000);
  const char *kind = argv[4];

  if (strcmp(kind, "product") == 0) {
    time_products(rows, cols, repeats, (uint64_t)parse_count("SEED", argv[5], 0, INT32_MAX));
    return 0;
  }
  mzd_t *matrix = mzd_init(rows, cols);
  if (strcmp(kind, "file") == 0) {
    fill_from_file(matrix, argv[5]);
  } else {
    uint64_t state = (uint64_t)parse_count("SEED", argv[5], 0, INT32_MAX);
    if (strcmp(kind, "dense") == 0) {
      fill_random(matrix, &state, 0);
    } else if (strcmp(kind, "sparse") == 0) {
      fill_random(matrix, &state, 4); /* 1/32: below the density at which mzd_echelonize turns */
    } else if (strcmp(kind, "lowrank") == 0) {
      fill_low_rank(matrix, &state);
    } else {
      fail("unknown kind", kind);
    }
  }

  mzd_t *copy = mzd_init(rows, cols);
  double *seconds = malloc(sizeof(double) * ROUTES * (size_t)repeats);
  if (seconds == NULL) {
    fail("out of memory", "times");
  }
  rci_t rank = -1;
  for (long i = 0; i < repeats; i++) {
    for (int route = 0; route < ROUTES; route++) {
      mzd_copy(copy, matrix);
      const double start = now();
      const rci_t found = run_route(route, copy);
      seconds[route * repeats + i] = now() - start;
      if (rank >= 0 && found != rank) {
        fail("the routes disagree about the rank", ROUTE_NAMES[route]);
      }
      rank = found;
    }
  }

  printf("{\"rows\": %ld, \"cols\": %ld, \"kind\": \"%s\", \"rank\": %ld, ", (long)rows, (long)cols,
         kind, (long)rank);
  printf("\"openmp\": %s, \"seconds\": {", __M4RI_HAVE_OPENMP ? "true" : "false");
  for (int route = 0; route < ROUTES; route++) {
    printf("%s\"%s\": [", route == 0 ? "" : ", ", ROUTE_NAMES[route]);
    for (long i = 0; i < repeats; i++) {
      printf("%s%.9f", i == 0 ? "" : ", ", seconds[route * repeats + i]);
    }
    printf("]");
  }
  printf("}}\n");

  free(seconds);
  mzd_free(copy);
  mzd_free(matrix);
  return 0;
}
