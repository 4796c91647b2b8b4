/* Times the elimination routes of the M4RI library on one matrix and prints one JSON line.
 *
 *   m4ri ROWS COLS REPEATS dense|sparse|lowrank SEED     a matrix drawn here
 *   m4ri ROWS COLS REPEATS file PATH                     raw little-endian 64-bit words by rows
 *   m4ri TASK N REPEATS SEED                             another task on N x N matrices drawn here
 *
 * The tasks: multiply, inverse, solve (N right-hand sides), nullspace (N / 2 equations), transpose,
 * slice (half of the rows and columns, beside a word's edge).
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

/* A regular matrix: the product of two triangles with ones on their diagonals. */
static void fill_regular(mzd_t *matrix, uint64_t *state) {
  const rci_t n = matrix->nrows;
  mzd_t *lower = mzd_init(n, n);
  mzd_t *upper = mzd_init(n, n);
  fill_random(lower, state, 0);
  fill_random(upper, state, 0);
  for (rci_t i = 0; i < n; i++) {
    for (rci_t j = 0; j < n; j++) {
      if (j >= i) {
        mzd_write_bit(lower, i, j, i == j);
      }
      if (j <= i) {
        mzd_write_bit(upper, i, j, i == j);
      }
    }
  }
  mzd_mul(matrix, lower, upper, 0);
  mzd_free(lower);
  mzd_free(upper);
}

/* Seconds of one task; what M4RI overwrites is copied before the clock starts. */
static double time_task(const char *task, const mzd_t *a, const mzd_t *b) {
  const rci_t n = a->nrows;
  mzd_t *left = mzd_copy(NULL, a);
  mzd_t *right = mzd_copy(NULL, b);
  mzd_t *result = NULL;
  const double start = now();
  if (strcmp(task, "multiply") == 0) {
    result = mzd_mul(NULL, left, right, 0);
  } else if (strcmp(task, "inverse") == 0) {
    result = mzd_inv_m4ri(NULL, left, 0);
  } else if (strcmp(task, "solve") == 0) {
    if (mzd_solve_left(left, right, 0, 1) != 0) {
      fail("a regular system has no solution", task);
    }
  } else if (strcmp(task, "nullspace") == 0) {
    mzd_t *half = mzd_init_window(left, 0, 0, n / 2, n);
    result = mzd_kernel_left_pluq(half, 0);
    mzd_free_window(half);
  } else if (strcmp(task, "transpose") == 0) {
    result = mzd_transpose(NULL, left);
  } else if (strcmp(task, "slice") == 0) {
    result = mzd_submatrix(NULL, left, 1, 1, n / 2, n / 2);
  } else {
    fail("unknown task", task);
  }
  const double seconds = now() - start;
  if (result != NULL) {
    mzd_free(result);
  }
  mzd_free(left);
  mzd_free(right);
  return seconds;
}

static int run_task(char **argv) {
  const rci_t n = (rci_t)parse_count("N", argv[2], 4, MAX_SIDE);
  const long repeats = parse_count("REPEATS", argv[3], 1, 1000000);
  uint64_t state = (uint64_t)parse_count("SEED", argv[4], 0, INT32_MAX);
  mzd_t *a = mzd_init(n, n);
  mzd_t *b = mzd_init(n, n);
  fill_regular(a, &state);
  fill_random(b, &state, 0);
  printf("{\"seconds\": [");
  for (long i = 0; i < repeats; i++) {
    printf("%s%.9f", i == 0 ? "" : ", ", time_task(argv[1], a, b));
  }
  printf("]}\n");
  mzd_free(a);
  mzd_free(b);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 5) {
    return run_task(argv);
  }
  if (argc != 6) {
    fail("usage", "m4ri ROWS COLS REPEATS dense|sparse|lowrank|file SEED|PATH");
  }
  const rci_t rows = (rci_t)parse_count("ROWS", argv[1], 1, MAX_SIDE);
  const rci_t cols = (rci_t)parse_count("COLS", argv[2], 1, MAX_SIDE);
  const long repeats = parse_count("REPEATS", argv[3], 1, 1000000);
  const char *kind = argv[4];

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
