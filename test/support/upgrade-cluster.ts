import { textFile, type File, type Unit } from '../../src/ignition/index.ts';
import type { CarriedHop } from '../../src/openshift/node/upgrade.ts';

/* A cluster in the files of /cluster, as the scripts that upgrade it see it through oc. */

export const imageOf = (letter: string): string =>
  `quay.io/openshift-release-dev/ocp-release@sha256:${letter.repeat(64)}`;

export const hop = (version: string, fromVersions: string[], letter: string): CarriedHop => ({
  version,
  fromVersions,
  isSigned: true,
  isAccepted: false,
  releaseImage: imageOf(letter),
});

/**
 * `history` has lines of a state and a version, newest first. A request for an upgrade is only
 * stored, unless the file `releases` exists, with lines of an image and its version: then the
 * cluster version operator looks at it before each answer about it, by the rules of its own code. Every call
 * is in `requests`, every call that changed something in `changes`.
 */
export const OC = textFile(
  '/usr/local/bin/oc',
  `#!/usr/bin/env bash
set -o pipefail
cd /cluster
echo "oc $*" >>requests

# Prints why the operator lets the cluster into no other minor version (adminack, overrides, operators).
list_reasons() {
  jq -rn --arg minor "$1" --slurpfile gates gates --slurpfile acks acks --slurpfile overrides overrides '
    ($gates[0] | to_entries[] | [.key | match("^ack-([4-5][.][0-9]{1,})-[^-]").captures[0].string] as $found |
      if $found == [] then "the gate \\(.key) is malformed"
      elif $found[0] != $minor then empty
      elif .value == "" then "the gate \\(.key) has no text"
      elif $acks[0][.key] == "true" then empty
      else .value end),
    ($overrides[0][] | select(.unmanaged) | "overrides are set")'
  cat blocked
}

minor_of() { local core="\${1%%-*}"; echo "\${core%.*}"; }

operate() {
  local current wanted next reasons
  current="$(sed -n 's/^Completed //p' history | head -n 1)"
  reasons="$(list_reasons "$(minor_of "$current")")"
  echo "$reasons" >upgradeable
  wanted="$(cat desired)"
  next="$(sed -n "s|^$wanted ||p" releases)"
  if [[ -z "$wanted" ]] || grep -q " $next\\$" history; then return; fi
  if [[ "$(minor_of "$next")" != "$(minor_of "$current")" && -n "$reasons" ]]; then
    echo "$reasons" >accepted
  else
    sed -i "1i Partial $next" history
  fi
}
if [[ -e releases && "$*" == 'get clusterversion '* ]]; then operate; fi

show() { # file of members
  jq '{data: .}' "$1"
}

change() {
  echo "oc $*" >>changes
  case "$*" in
    'annotate machinehealthchecks'*)
      sed -i "s|^$3 .*|$3 \${6#*=}|; s|cluster.x-k8s.io/paused-||" health ;;
    'apply --filename -') cat >configmap ;;
    'apply --filename'*) cp "$3" applied ;;
    'adm upgrade'*)
      if [[ -e conditional && "$*" != *--allow-not-recommended* ]]; then cat conditional >&2; exit 1; fi
      echo "\${5}" >desired ;;
    'patch configmap admin-acks --namespace openshift-config --type merge --patch '*)
      jq --argjson patch "$9" '. + $patch.data' acks >acks.new && mv acks.new acks ;;
    'delete machineconfig --selector'*) [[ "$4" == "$(cat machine-config)" ]] && rm machine-config || true ;;
    'delete machineconfig 99-start-cluster-upgrade'*) rm machine-config ;;
    *) echo "unexpected: $*" >&2; exit 1 ;;
  esac
}

case "$*" in
  *.status.history*) cat history ;;
  *.spec.desiredUpdate.image*) cat desired ;;
  *'"Available"'*) cat available ;;
  *'"Updated"'*) cat updated ;;
  *'"ReleaseAccepted"'*) cat accepted ;;
  'get clusterversion version --output json')
    jq -n --rawfile reasons upgradeable --slurpfile overrides overrides '{
      spec: {overrides: $overrides[0]},
      status: {conditions: [if $reasons == "" or $reasons == "\\n" then {type: "Upgradeable", status: "True"}
        else {type: "Upgradeable", status: "False", message: $reasons} end]}}' ;;
  'get machineconfigpool --output json') cat pools ;;
  'get configmap admin-gates --namespace openshift-config-managed '*) show gates ;;
  'get configmap admin-acks --namespace openshift-config '*) show acks ;;
  'create configmap cluster-upgrade --namespace openshift-config --dry-run=client '*)
    for word; do case "$word" in state=* | message=*) echo "$word" ;; esac; done ;;
  'get nodes --selector node-role.kubernetes.io/master '*) cat masters ;;
  'get nodes'*) cat nodes ;;
  'get pods'*) while read -r node; do echo "$node mcd-$node"; done <pods ;;
  'get customresourcedefinition'*) cat health-kind ;;
  'get machinehealthchecks'*) cat health ;;
  exec*) for word; do case "$word" in mcd-*) grep -qx "\${word#mcd-}" attached ;; esac || exit 1; done ;;
  'get machineconfig 99-start-cluster-upgrade'*) cat machine-config ;;
  *) change "$@" ;;
esac
`,
  0o755,
);

const POOLS = (updating: string): string =>
  JSON.stringify({
    items: ['master', 'worker'].map((name) => ({
      metadata: { name },
      status: { conditions: [{ type: 'Updating', status: name === updating ? 'True' : 'False' }] },
    })),
  });

export const PREPARE = `
mkdir /cluster && cd /cluster
printf 'Completed 4.22.1\\nCompleted 4.21.9\\n' >history
echo True >available; echo True >updated; : >desired; echo Retrieving payload >accepted
printf 'master-0\\nmaster-1\\nworker-0\\n' | tee nodes pods >attached
echo crd >health-kind; printf 'ours \\ntheirs maintenance\\n' >health
echo '{}' | tee gates >acks; echo '[]' >overrides; : | tee blocked >upgradeable
echo '${POOLS('')}' >pools
restart_workers() { echo '${POOLS('worker')}' >pools; }
settle_workers() { echo '${POOLS('')}' >pools; }
echo appliance-upgrade=4.22.3 >machine-config
own="$(</proc/sys/kernel/random/boot_id)"
printf 'master-0 %s\\nmaster-1 0123-other\\n' "$own" >masters
# A run of the unit: its code, and the requests that change something but the recorded state.
look() {
  : >requests
  eval "$(</opt/command)" && code=0 || code=$?
  echo "[$code]"; grep -E '^oc (apply|annotate|adm|delete|patch)' requests | grep -v 'apply --filename -$' || true
}
reboot() { rm -f /run/upgrade-cluster-*; }
`;

/** What the unit starts, as the command of a shell. */
export const commandOf = (unit: Unit | undefined, instance = ''): File => {
  const command = /^ExecStart=(.+)$/m.exec(unit?.contents ?? '')?.[1] ?? 'false';
  return textFile('/opt/command', command.replace('%i', instance), 0o644);
};
