#!/usr/bin/env bash
# Starts a federation of one control plane and two members, propagates nginx to
# both, shows it, and leaves it running.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/bin:$PATH"

say() { printf '\n$ %s\n' "$*"; "$@"; }

# Not on the terminal: "local up" would print commands to try, whose objects are those of the demo.
say karmadactl local up --members 2 | cat
KUBECONFIG=$(karmadactl local kubeconfig)
export KUBECONFIG
say karmadactl get clusters
say karmadactl apply -f samples/nginx

printf '\nwaiting for nginx to run in both members\n'
for _ in $(seq 300); do
	ready=$(karmadactl get deployment nginx -o jsonpath='{.status.readyReplicas}' 2>/dev/null || true)
	if [[ "$ready" == 2 ]]; then
		break
	fi
	sleep 0.1
done
if [[ "$ready" != 2 ]]; then
	karmadactl why deployment nginx
	echo "nginx does not run in both members after 30 s" >&2
	exit 1
fi

say karmadactl get deployments,pods
say karmadactl get resourcebindings
cat <<'NEXT'

The federation is running. To use it:
  export PATH=$PWD/bin:$PATH KUBECONFIG=$(bin/karmadactl local kubeconfig)
  karmadactl why deployment nginx
To stop it and remove its data:
  bin/karmadactl local down --purge
NEXT
