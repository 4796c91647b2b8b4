#!/usr/bin/env bash
# Tries wheels where their users are: try_wheels.sh DIST PLACE... For a place that DIST has no wheel for it says so and fails.
#
#   debian11        a Debian 11 root (glibc 2.31) with a CPython 3.11 that is compiled in it
#   musl            a CPython 3.11 compiled by musl-gcc, in place of Alpine
#   arm64           Debian's arm64 CPython 3.11 under QEMU, with tests of the kernels
#   old-processor   a processor without AVX, by QEMU
#   free-threaded   CPython 3.14t, compiled, with a wheel of its own and tests of threads
#
# It runs as root on a Debian, takes sources and packages from the mirror of that Debian and numpy from the index of pip, and
# keeps what it made in build/places (PLACES_DIR). WHEEL_TESTS are what arm64 runs after the smoke test.
set -euo pipefail
# What a make above tells its children is not for CPython's own.
unset MAKEFLAGS MFLAGS MAKELEVEL

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
dist=$(cd "$1" && pwd)
shift
work=${PLACES_DIR:-$root/build/places}
mkdir -p "$work"
work=$(cd "$work" && pwd)
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' 'Component: main' | head -n 1)
host=${PYTHON:-python3}
read -ra tests <<< "${WHEEL_TESTS:-tests/test_weights.py tests/test_gf2.py tests/noise/test_exact.py}"

need() {
  command -v "$1" >/dev/null || { echo "no $1: apt-get install $2"; apt-get install --yes --quiet "$2" >/dev/null; }
}

wheel_for() {
  compgen -G "$dist/hdp_fast-*$1*.whl" | head -n 1 | grep . || { echo "error: $dist has no wheel for $1" >&2; return 1; }
}

# The sources of a Debian package, of a suite whose list of packages is kept apart from the machine's.
get_source() {
  local suite=$1 package=$2 place=$work/sources
  compgen -G "$place/$package"_*.orig.tar.* >/dev/null && return
  mkdir -p "$place/$suite/partial"
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$place/$suite.list"
  local options=(-o "Dir::Etc::sourcelist=$place/$suite.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$place/$suite")
  apt-get "${options[@]}" --quiet update >/dev/null
  (cd "$place" && apt-get "${options[@]}" --quiet source --download-only "$package" >/dev/null)
}

unpack() {
  local package=$1 into=$2
  mkdir -p "$into"
  tar --extract --strip-components=1 --directory="$into" --file="$(compgen -G "$work/sources/$package"_*.orig.tar.* | head -n 1)"
}

# A CPython in its own build folder: what is tried needs neither its optimizations nor its own tests.
compile_python() {
  local folder=$1
  shift
  [ -e "$folder/done" ] && return
  (cd "$folder"
    ./configure --quiet --disable-test-modules OPT='-O1 -DNDEBUG' "$@" > configure.log 2>&1
    make --jobs="$(getconf _NPROCESSORS_ONLN)" > make.log 2>&1
    ./python -c 'import sqlite3, zlib, hashlib')
  touch "$folder/done"
}

# Wheels from the index of pip, for another machine than this one.
get_wheels() {
  local into=$1 version=$2
  shift 2
  mkdir -p "$into"
  local platforms=()
  while [ "$1" != -- ]; do platforms+=(--platform "$1"); shift; done
  shift
  "$host" -m pip --disable-pip-version-check --quiet download --only-binary :all: --python-version "$version" \
    "${platforms[@]}" --dest "$into" "$@"
}

GLIBC=(manylinux_2_17 manylinux_2_27 manylinux_2_28)

# Puts a wheel and numpy into an environment of an interpreter, as pip there does, and runs the smoke test of a folder. What follows
# the five arguments runs commands there.
try_in() {
  local python=$1 place=$2 wheel=$3 wheels=$4 smoke=$5
  shift 5
  "$@" rm -rf "$place"
  "$@" "$python" -m venv "$place"
  "$@" "$place/bin/python" -m pip --isolated --disable-pip-version-check --quiet install --no-index --find-links "$wheels" "$wheel"
  "$@" "$place/bin/python" -I "$smoke/smoke.py"
}

debian11() {
  local wheel place=$work/debian11
  wheel=$(wheel_for manylinux*x86_64)
  need debootstrap debootstrap
  [ -e "$place/etc/debian_version" ] || debootstrap --variant=minbase \
    --include=gcc,make,libc6-dev,zlib1g-dev,libffi-dev,libsqlite3-dev bullseye "$place" "$mirror" > "$work/debian11.log"
  if [ ! -e "$place/python/done" ]
  then
    get_source bookworm python3.11
    unpack python3.11 "$place/python"
    chroot "$place" bash -c "$(declare -f compile_python); compile_python /python"
  fi
  get_wheels "$place/wheels" 3.11 "${GLIBC[@]/%/_x86_64}" -- numpy
  cp "$wheel" "$place/wheels"
  cp "$root/tests/smoke.py" "$place"
  chroot "$place" ldd --version | head -n 1
  try_in /python/python /venv "/wheels/$(basename "$wheel")" /wheels "" chroot "$place"
}

musl() {
  local wheel place=$work/musl
  wheel=$(wheel_for musllinux*x86_64)
  need musl-gcc musl-tools
  need tclsh tcl
  if [ ! -e "$place/python/done" ]
  then
    local package
    for package in zlib sqlite3 python3.11; do get_source bookworm "$package"; unpack "$package" "$place/${package%3.11}"; done
    # It names the folders of glibc: configure asks it with two dashes and wants no answer, setup.py with one and takes what is no folder.
    # shellcheck disable=SC2016
    printf '#!/bin/sh\ncase $1 in --print-multiarch) ;; -print-multiarch) echo none ;; *) exec musl-gcc "$@" ;; esac\n' > "$place/cc"
    chmod +x "$place/cc"
    export CC=$place/cc CFLAGS='-O1 -fPIC'
    (cd "$place/zlib" && ./configure --static --prefix="$place/usr" >/dev/null && make install >/dev/null)
    (cd "$place/sqlite3" && ./configure --quiet --disable-readline --disable-tcl --disable-shared --prefix="$place/usr" \
      && make sqlite3.c sqlite3.h && musl-gcc -O1 -fPIC -c sqlite3.c && ar r "$place/usr/lib/libsqlite3.a" sqlite3.o \
      && cp sqlite3.h "$place/usr/include") > "$place/sqlite3.log" 2>&1
    compile_python "$place/python" CPPFLAGS="-I$place/usr/include" LDFLAGS="-L$place/usr/lib" \
      PKG_CONFIG=false LIBSQLITE3_CFLAGS="-I$place/usr/include" LIBSQLITE3_LIBS="-L$place/usr/lib -lsqlite3"
    unset CC CFLAGS
  fi
  get_wheels "$place/wheels" 3.11 musllinux_1_1_x86_64 musllinux_1_2_x86_64 -- numpy
  try_in "$place/python/python" "$place/venv" "$wheel" "$place/wheels" "$root/tests" env
}

# QEMU runs a program of another processor without chroot and without binfmt_misc: a script in place of the interpreter starts it,
# and starts it again where the command is run.
arm64() {
  local wheel place=$work/arm64 deb
  wheel=$(wheel_for manylinux*aarch64)
  need debootstrap debootstrap
  need qemu-aarch64-static qemu-user-static
  if [ ! -e "$place/done" ]
  then
    debootstrap --arch=arm64 --foreign --variant=minbase --include=python3 bookworm "$place" "$mirror" > "$work/arm64.log"
    for deb in "$place"/var/cache/apt/archives/*.deb; do dpkg -x "$deb" "$place"; done
    touch "$place/done"
  fi
  local venv=$place/venv
  rm -rf "$venv"
  mkdir -p "$venv/bin" "$venv/lib/python3.11/site-packages"
  printf 'home = %s/usr/bin\ninclude-system-site-packages = false\nversion = 3.11\n' "$place" > "$venv/pyvenv.cfg"
  printf '#!/bin/sh\nexec qemu-aarch64-static -L %s -0 %s/bin/python %s/usr/bin/python3.11 "$@"\n' "$place" "$venv" "$place" > "$venv/bin/python"
  printf '#!%s/bin/python\nimport sys\nfrom hdp_fast.cli import main\nsys.exit(main())\n' "$venv" > "$venv/bin/hdp-fast"
  chmod +x "$venv/bin/"*
  get_wheels "$place/wheels" 3.11 "${GLIBC[@]/%/_aarch64}" -- numpy
  get_wheels "$place/wheels" 3.11 any -- pytest joblib
  cp "$wheel" "$place/wheels"
  install_for_arm() {
    "$host" -m pip --disable-pip-version-check --quiet install --no-index --find-links "$place/wheels" --only-binary :all: \
      --python-version 3.11 --platform any "${platforms[@]}" "$@"
  }
  local platforms=()
  for deb in "${GLIBC[@]}"; do platforms+=(--platform "${deb}_aarch64"); done
  install_for_arm --target "$venv/lib/python3.11/site-packages" hdp-fast
  "$venv/bin/python" -c 'import platform; print(platform.machine(), *platform.libc_ver())'
  "$venv/bin/python" -I "$root/tests/smoke.py"
  install_for_arm --target "$place/tools" --upgrade pytest joblib
  cd "$root"
  # OpenBLAS for AArch64 leaves flags of divisions that it has not made.
  PYTHONPATH=$place/tools OPENBLAS_NUM_THREADS=1 "$venv/bin/python" -m pytest --quick -q -p no:cacheprovider \
    -W ignore:divide:RuntimeWarning -W ignore:overflow:RuntimeWarning -W ignore:invalid:RuntimeWarning "${tests[@]}"
}

old-processor() {
  local wheel place=$work/old-processor
  wheel=$(wheel_for manylinux*x86_64)
  need qemu-x86_64-static qemu-user-static
  [ -e "$place/bin/python" ] || "$host" -m venv "$place"
  "$place/bin/python" -m pip --disable-pip-version-check --quiet install --force-reinstall "$wheel"
  # The second generation of x86-64, which numpy's wheels ask for.
  qemu-x86_64-static -cpu Nehalem "$place/bin/python" -I "$root/tests/smoke.py"
}

free-threaded() {
  local place=$work/free-threaded python
  python=$place/python/python
  if [ ! -e "$place/python/done" ]
  then
    get_source forky python3.14
    unpack python3.14 "$place/python"
    compile_python "$place/python" --disable-gil
  fi
  rm -rf "$place/venv"
  "$python" -m venv "$place/venv"
  # Threads are tried here, not speed.
  (cd "$root" && CARGO_TARGET_DIR=$place/target CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=32 \
    CARGO_PROFILE_RELEASE_OPT_LEVEL=1 PYO3_PYTHON=$place/venv/bin/python \
    maturin build --release --locked --interpreter "$place/venv/bin/python" --out "$place/dist")
  local pip=("$place/venv/bin/python" -m pip --disable-pip-version-check --quiet)
  "${pip[@]}" install --only-binary :all: "$place"/dist/*.whl
  "$place/venv/bin/python" -I "$root/tests/smoke.py"
  "${pip[@]}" install --only-binary :all: pytest joblib
  cd "$root"
  OPENBLAS_NUM_THREADS=1 "$place/venv/bin/python" -m pytest -q -p no:cacheprovider tests/faults/test_many_threads.py
}

for name in "$@"
do
  case $name in
    debian11|musl|arm64|old-processor|free-threaded) echo "== $name"; ("$name") ;;
    *) echo "error: $name is no place: debian11, musl, arm64, old-processor or free-threaded" >&2; exit 1 ;;
  esac
done
