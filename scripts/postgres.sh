#!/usr/bin/env bash
# Runs a command with a temporary PostgreSQL server. The command gets its address in SWITCHYARD_TEST_POSTGRES (without a
# database name), and its programs on the PATH. Afterwards the server and its data are removed.
set -euo pipefail

programs() { ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1; }

bin=$(programs)
[ -n "$bin" ] || bin=$(dirname "$(command -v initdb 2>/dev/null || echo /nowhere/x)")
if [ ! -x "$bin/initdb" ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    "$(dirname "$0")/apt-install.sh" postgresql
    bin=$(programs)
  else
    echo "postgres: install PostgreSQL; initdb is neither on the PATH nor in /usr/lib/postgresql" >&2
    exit 1
  fi
fi
# One test runs two servers behind PgBouncer; without it, the test is skipped.
if ! command -v pgbouncer >/dev/null && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  "$(dirname "$0")/apt-install.sh" pgbouncer || echo "postgres: PgBouncer cannot be installed; its test is skipped" >&2
fi

# initdb refuses to run as root, so root switches to another user.
as=()
if [ "$(id -u)" = 0 ]; then
  user=postgres
  id -u "$user" >/dev/null 2>&1 || user=nobody
  as=(setpriv "--reuid=$user" "--regid=$(id -gn "$user")" --clear-groups)
fi

dir=$(mktemp -d "${TMPDIR:-/tmp}/switchyard-postgres.XXXXXX")
[ ${#as[@]} -eq 0 ] || chown "$user" "$dir"
stop() {
  (cd / && "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -s -m immediate stop) || true
  rm -rf "$dir"
}
trap stop EXIT

port=$(node -e 'const s=require("net").createServer().listen(0,"127.0.0.1",()=>{console.log(s.address().port);s.close()})')
(
  cd /
  "${as[@]}" "$bin/initdb" -D "$dir/data" -U switchyard -A trust -E UTF8 --locale=C --no-sync >/dev/null
  "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -s -w -l "$dir/log" \
    -o "-p $port -k $dir -c listen_addresses=127.0.0.1 -c max_connections=300 -c fsync=off ${POSTGRES_OPTIONS:-}" start
)

# Tests use copies of a template database that already has the tables.
server=$(ls -t target/serve/switchyard target/debug/switchyard 2>/dev/null | head -1 || true)
if [ -n "$server" ]; then
  template=switchyard_template
  "$bin/createdb" --maintenance-db="postgres://switchyard@127.0.0.1:$port/postgres" "$template"
  "$server" token list --database "postgres://switchyard@127.0.0.1:$port/$template" >/dev/null
  "$bin/psql" -q -v ON_ERROR_STOP=1 -f scripts/postgres.sql "postgres://switchyard@127.0.0.1:$port/$template"
  mkdir "$dir/slots"
  export SWITCHYARD_TEST_POSTGRES_TEMPLATE=$template SWITCHYARD_TEST_POSTGRES_SLOTS=$dir/slots
fi

export PATH="$bin:$PATH" SWITCHYARD_TEST_POSTGRES="postgres://switchyard@127.0.0.1:$port" SWITCHYARD_TEST_POSTGRES_DATA="$dir/data"
"$@"
