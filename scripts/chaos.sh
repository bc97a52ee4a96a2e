#!/usr/bin/env bash
# Runs the tests of reliability for much longer than `make test` does:
#
#     chaos.sh [--database sqlite|postgres] [NAME…] -- COMMAND
#
# Without names, all runs of the table below, each on its databases. The variable in the environment replaces the number
# of a run: SWITCHYARD_KILLS=20 chaos.sh kills. COMMAND runs the tests with cargo-nextest. The output of each run is in
# target/chaos; at the end, a table shows the result, the time and the figures of each.
set -uo pipefail
cd "$(dirname "$0")/.."

# name, databases, variable, number, test
runs='
storm      sqlite,postgres SWITCHYARD_STORM_S      600     storm::no_job_is_lost_or_duplicated
kills      sqlite,postgres SWITCHYARD_KILLS        200     crash::kill_9_under_load_loses_no_acknowledged_job
walks      sqlite,postgres SWITCHYARD_STEPS        20000   a_random_walk_agrees_with_the_model
model      sqlite          SWITCHYARD_MODEL_STEPS  1000000 model::every_verb_agrees_with_a_model_in_memory
model      postgres        SWITCHYARD_MODEL_STEPS  100000  model::every_verb_agrees_with_a_model_in_memory
simulation sqlite          SWITCHYARD_SEEDS        20000   simulation::the_promises_hold_for_every_seed
upgrades   sqlite,postgres SWITCHYARD_JOBS         100000  upgrade::
cuts       sqlite          SWITCHYARD_CUTS         200     power_loss_keeps
restarts   postgres        SWITCHYARD_RESTARTS     16      outage::a_postgres_crash_under_load_loses_nothing
freezes    postgres        SWITCHYARD_FREEZES      10      frozen::a_frozen_server_loses_nothing_and_completes_nothing_twice
jumps      postgres        SWITCHYARD_JUMPS        60      machine_clock::a_jump_of_one_servers_clock_ends_no_lease
network    postgres        SWITCHYARD_BREAKS       20      network::connections_ network::responses_ network::a_slow
failovers  postgres        SWITCHYARD_FAILOVERS    20      network::a_standby_that_takes_over
patroni    postgres        SWITCHYARD_PATRONI      10      network::a_leader_that_patroni
polls      sqlite,postgres SWITCHYARD_POLLS        10000   many::idle_long_polls
slow       sqlite,postgres SWITCHYARD_SLOW_CLIENTS 1000    many::slow_clients
queues     sqlite,postgres SWITCHYARD_QUEUES       10000   many::many_queues
long       sqlite,postgres SWITCHYARD_LONG_QUEUE   10000000 many::jobs_of_a_long_queue
namespaces sqlite,postgres SWITCHYARD_NAMESPACES   50000   many::many_namespaces
chain      sqlite,postgres SWITCHYARD_CHAIN        10000   many::a_long_chain
dependents sqlite,postgres SWITCHYARD_DEPENDENTS   1000    many::a_job_with_many_dependents
soak       sqlite,postgres SWITCHYARD_SOAK_S       600     soak::half_of_the_maximum_load
'
databases=sqlite,postgres
names=()
while [ $# -gt 0 ]; do
    case $1 in
    --database) databases=$2 && shift ;;
    --) shift && break ;;
    *) names+=("$1") ;;
    esac
    shift
done
cargo nextest --version >/dev/null || { echo "chaos: install cargo-nextest first" >&2; exit 1; }
for name in ${names[@]+"${names[@]}"}; do
    grep -q "^$name " <<<"$runs" || { echo "chaos: unknown run $name; known are$(awk '!seen[$1]++ { printf " %s", $1 }' <<<"$runs")" >&2; exit 2; }
done

folder=target/chaos
mkdir -p "$folder"
status=0
results=()
while read -r name on variable number tests; do
    [ -n "$name" ] || continue
    [ ${#names[@]} -eq 0 ] || [[ " ${names[*]} " == *" $name "* ]] || continue
    number=${!variable:-$number}
    for database in ${on//,/ }; do
        [[ ,$databases, == *,$database,* ]] || continue
        log=$folder/$name-$database.log
        [ "$name" != patroni ] || scripts/unpack.sh patroni
        # shellcheck disable=SC2206 # several names of tests
        command=("$@" --profile chaos --success-output final --no-fail-fast $tests)
        [ "$database" = sqlite ] || command=(scripts/postgres.sh "${command[@]}")
        echo "chaos: $name on $database, $variable=$number"
        result=ok
        SECONDS=0
        env "$variable=$number" "${command[@]}" >"$log" 2>&1 </dev/null || { result=FAILED && status=1; }
        # The figures that tests print end their output.
        figures=$(sed -nE 's/^ *([0-9]+ (jobs|calls|steps|seeds), .*)/\1/p' "$log" | tail -4 | paste -sd ';' | sed 's/;/; /g')
        results+=("$(printf '%-10s %-9s %8s %-7s %5s s  %s' "$name" "$database" "$number" "$result" "$SECONDS" "$figures")")
    done
done <<<"$runs"
printf '%s\n' "${results[@]}"
exit "$status"
