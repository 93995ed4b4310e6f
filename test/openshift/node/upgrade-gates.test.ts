import { parse } from 'yaml';
import { describe, expect, it } from 'vitest';
import { textFile, type File, type Unit } from '../../../src/ignition/index.ts';
import {
  renderUpgradeMachineConfig,
  type CarriedHop,
} from '../../../src/openshift/node/upgrade.ts';
import { listGates, minorOfGate } from '../../../src/openshift/release/gates.ts';
import { sampleKills, type Sample } from '../../support/kills.ts';
import { hasThrowAwayRoot, runInThrowAwayRoot } from '../../support/throw-away-root.ts';
import { commandOf, hop, imageOf, OC, PREPARE } from '../../support/upgrade-cluster.ts';

const runs = describe.skipIf(!hasThrowAwayRoot());

const SIGSTORE = 'ack-4.20-sigstore-in-4.21';
const BOOT = 'ack-4.21-boot-image-opt-out-in-4.22';
const PATH = [hop('4.21.12', ['4.20.9'], 'b'), hop('4.22.3', ['4.21.12'], 'a')];

/** A cluster of 4.20.9 with its operator, on the way to 4.22.3. */
const OPERATED = `
echo Completed 4.20.9 >history
printf '%s 4.21.12\\n%s 4.22.3\\n' ${imageOf('b')} ${imageOf('a')} >releases
gate() { jq --arg key "$1" --arg text "$2" '.[$key] = $text' gates >new && mv new gates; }
drop_gate() { jq --arg key "$1" 'del(.[$key])' gates >new && mv new gates; }
acknowledge() { jq --arg key "$1" '.[$key] = "true"' acks >new && mv new acks; }
finish() { sed -i '1s/Partial/Completed/' history; }
`;

const drive = (
  script: string,
  options: {
    readonly acknowledged?: readonly string[];
    readonly hops?: readonly CarriedHop[];
    readonly more?: readonly File[];
  } = {},
) => {
  const { acknowledged = [], hops = PATH, more = [] } = options;
  const text = renderUpgradeMachineConfig({ hops, arch: 'x86_64', resources: '', acknowledged });
  const { storage, systemd } = (
    parse(text) as { spec: { config: { storage: { files: File[] }; systemd: { units: Unit[] } } } }
  ).spec.config;
  const files = [OC, commandOf(systemd.units[0]), ...storage.files, ...more];
  return runInThrowAwayRoot(files, `${PREPARE}\n${OPERATED}\n${script}`, { timeoutMs: 290_000 });
};

/** The command that the build prints for a gate. */
const commandFor = (key: string): string =>
  listGates({
    updates: [
      {
        from: { version: `${minorOfGate(key) ?? '4.20'}.1`, adminGates: { [key]: 'x' } },
        to: { version: '4.99.0', image: '', risks: [] },
      },
    ],
    arch: 'x86_64',
    bundles: [],
    hasOverrides: true,
  }).find((gate) => gate.key === key || (key === '' && gate.kind === 'overrides'))?.command ?? '';

const APPLY = 'oc apply --filename /etc/assisted/upgrade/resources.yaml';
const request = (letter: string): string =>
  `oc adm upgrade --allow-explicit-upgrade --to-image ${imageOf(letter)}`;
const waiting = (key: string, reason: string): string =>
  `waiting for a person to acknowledge ${key}: ${reason} Then run: ${commandFor(key)}`;

runs('an unattended upgrade in front of a gate', () => {
  it('names the key, its reason and the command on the console and in a ConfigMap, and changes nothing else', async () => {
    const { stdout, stderr } = await drive(`gate ${SIGSTORE} 'Mirror the
      signatures.'; look; cat configmap; look; cat changes`);
    expect(stderr).toBe('');
    const reason = waiting(SIGSTORE, 'Mirror the signatures.');
    expect(stdout.trimEnd().split('\n')).toEqual([
      `cluster upgrade: ${reason}`,
      '[75]',
      'state=waiting',
      `message=${reason}`,
      `cluster upgrade: ${reason}`,
      '[75]',
      'oc apply --filename -',
    ]);
  });

  it('goes on by itself when the gate is open, and records that', async () => {
    const { stdout } = await drive(`
      gate ${SIGSTORE} Signatures.; look >/dev/null; acknowledge ${SIGSTORE}; look; look; cat configmap`);
    expect(stdout.trimEnd().split('\n')).toEqual([
      'cluster upgrade: the signature and the resources of 4.22.3 are applied',
      '[75]',
      APPLY,
      'cluster upgrade: the upgrade to 4.21.12 is requested',
      '[75]',
      request('b'),
      'state=waiting',
      'message=the upgrade to 4.21.12 is requested',
    ]);
  });

  it('goes on when the operator takes the gate away again', async () => {
    const { stdout } = await drive(`
      gate ${SIGSTORE} Signatures.; look >/dev/null; drop_gate ${SIGSTORE}; look`);
    expect(stdout).toContain(APPLY);
  });

  it('waits with health checks that run when a gate appears between request and begin', async () => {
    const { stdout } = await drive(`
      look >/dev/null; look >/dev/null; rm releases
      gate ${SIGSTORE} Signatures.; cp history before; look; cat health; cmp history before
      acknowledge ${SIGSTORE}; look`);
    expect(stdout.trimEnd().split('\n')).toEqual([
      `cluster upgrade: ${waiting(SIGSTORE, 'Signatures.')}`,
      '[75]',
      'ours ',
      'theirs maintenance',
      'cluster upgrade: the cluster has not begun the upgrade to 4.21.12: Retrieving payload',
      '[75]',
    ]);
  });

  it('asks for keys of the minor version that the cluster has now, and of no other', async () => {
    const { stdout } = await drive(`
      gate ack-4.19-old Old.; gate ${BOOT} Boot.; gate ack-4.2-x X.; gate acknowledge-4.20-x X.
      rm releases; look`);
    expect(stdout).toContain(APPLY);
  });

  it.each([
    [
      "gate ack-4.20-empty ''",
      'waiting until the cluster is upgradeable: the gate ack-4.20-empty has no text',
    ],
    ['gate typo x', 'waiting until the cluster is upgradeable: the gate typo is malformed'],
    [
      "echo 'OLM: alpha.v1 stops' >blocked",
      'waiting until the cluster is upgradeable: OLM: alpha.v1 stops',
    ],
  ])("repeats the cluster's own reason after %s", async (change, message) => {
    const { stdout } = await drive(`${change}; look; : >blocked; echo '{}' >gates; look`);
    expect(stdout.split('\n').slice(0, 2)).toEqual([`cluster upgrade: ${message}`, '[75]']);
    expect(stdout).toContain(APPLY);
  });

  it('names the overrides of a cluster without image policy, and the command that removes them', async () => {
    const { stdout } = await drive(`
      echo '[{"kind":"ClusterImagePolicy","name":"openshift","unmanaged":true},{"kind":"Deployment","name":"x"}]' >overrides
      look; echo '[]' >overrides; look`);
    expect(stdout).toContain(
      `waiting until ClusterVersion has no override. It has: ClusterImagePolicy openshift. If they are not needed, run: ${commandFor('')}\n[75]\n`,
    );
    expect(stdout).toContain(APPLY);
  });

  it('ignores all of them for an update within a minor version', async () => {
    const { stdout } = await drive(
      `echo Completed 4.22.1 >history; echo '${imageOf('a')} 4.22.3' >releases
      gate ack-4.22-x X.; echo '[{"kind":"A","name":"b","unmanaged":true}]' >overrides; echo no >blocked; look; look; look`,
      { hops: [hop('4.22.3', ['4.22.1'], 'a')] },
    );
    expect(stdout).toContain(request('a'));
    expect(stdout).toContain('waiting for the end of the upgrade to 4.22.3');
  });
});

runs('an unattended upgrade with acknowledgements of a person', () => {
  it('acknowledges a gate of that key once it exists, and no other', async () => {
    const { stdout } = await drive(
      `look >/dev/null; cat acks; gate ${SIGSTORE} Signatures.; gate ack-4.20-other Other.; look; cat acks; look`,
      { acknowledged: [SIGSTORE, BOOT] },
    );
    expect(stdout.trimEnd().split('\n')).toEqual([
      '{}',
      `cluster upgrade: acknowledged as asked for at build time: ${SIGSTORE}`,
      '[75]',
      `oc patch configmap admin-acks --namespace openshift-config --type merge --patch {"data":{"${SIGSTORE}":"true"}}`,
      '{',
      `  "${SIGSTORE}": "true"`,
      '}',
      `cluster upgrade: ${waiting('ack-4.20-other', 'Other.')}`,
      '[75]',
    ]);
  });

  it('requests an update whose risks are accepted, and repeats the refusal of others', async () => {
    const refusal = 'the update 4.21.12 is not one of the recommended updates';
    const script = `echo '${refusal}' >conditional; look >/dev/null; look`;
    const refused = await drive(script);
    expect(refused.stdout).toContain(
      `the cluster does not take the request for 4.21.12: ${refusal}\n[75]\n`,
    );
    const accepted = await drive(script, {
      hops: PATH.map((one) => ({ ...one, isAccepted: true })),
    });
    expect(accepted.stdout).toContain(`${request('b')} --allow-not-recommended\n`);
  });
});

runs('the health checks during an unattended upgrade', () => {
  it('are paused from the begin of an update until the hosts have restarted', async () => {
    const { stdout } = await drive(`
      look >/dev/null; look >/dev/null; look >/dev/null; head -n 1 health
      restart_workers; finish; look; head -n 1 health
      gate ${BOOT} Boot.; settle_workers; look; head -n 1 health`);
    expect(stdout.trimEnd().split('\n')).toEqual([
      'ours upgrade-cluster',
      'cluster upgrade: waiting until the hosts of these pools have restarted: worker',
      '[75]',
      'ours upgrade-cluster',
      `cluster upgrade: ${waiting(BOOT, 'Boot.')}`,
      '[75]',
      'oc annotate machinehealthchecks.machine.openshift.io ours --namespace openshift-machine-api cluster.x-k8s.io/paused-',
      'ours',
    ]);
  });
});

/** Kills the whole run at its n-th change of the cluster, before or after it takes effect. */
const KILLER = textFile(
  '/opt/kill/oc',
  `#!/usr/bin/env bash
if [[ "$1" == get || "$1" == exec || "$1" == create ]]; then exec /usr/local/bin/oc "$@"; fi
echo >>/tmp/steps
if (($(wc -l </tmp/steps) * 2 - 1 == kill_at)); then kill -9 0; fi
/usr/local/bin/oc "$@"
code=$?
if (($(wc -l </tmp/steps) * 2 == kill_at)); then kill -9 0; fi
exit $code
`,
  0o755,
);

/**
 * Looks until the end, while a person and an operator act between the looks. Each look then starts
 * again from the state before it, is killed at each of its changes, and looks once more: that must
 * lead to the state after the look, or after a second one.
 */
const killSome = ({ first, stride }: Sample): string => `
run_unit() { : >/tmp/steps; : >changes; PATH=/opt/kill:$PATH setsid --wait bash -c "$(</opt/command)" >/dev/null 2>&1; }
state() { rm -rf "$1" && mkdir "$1" && cp -a /cluster "$1" && cp -a /run/upgrade-cluster-* "$1" 2>/dev/null; rm -f "$1"/cluster/{requests,changes}; }
restore() { rm -rf /cluster/* /run/upgrade-cluster-* && cp -a "$1"/cluster/. /cluster && cp -a "$1"/upgrade-cluster-* /run 2>/dev/null; }
check_health() {
  if grep -q acknowledge configmap && grep -q 'ours upgrade-cluster' health; then echo "$1: paused while it waits"; fi
}
act() {
  if grep -q '^message=.*ack-4.20-person' configmap; then acknowledge ack-4.20-person; fi
  if ! grep -q 'ours upgrade-cluster' health; then return; fi
  case "$(sed -n 1p history)" in
    'Partial 4.21.12') gate ${BOOT} Boot.; restart_workers; finish ;;
    Partial*) finish ;;
    *) settle_workers ;;
  esac
}
export kill_at=0 kills=0
for ((looks = 1; looks < 30; looks++)); do
  state /tmp/before; run_unit && isDone=1; check_health $looks; steps=$(wc -l </tmp/steps)
  state /tmp/once; run_unit; state /tmp/twice
  for ((kill_at = 1; kill_at <= steps * 2; kill_at++)); do
    kills=$((kills + 1)); ((kills % ${stride} == ${first} % ${stride})) || continue
    restore /tmp/before; run_unit; cp changes /tmp/log; kill_at=0 run_unit; cat changes >>/tmp/log
    check_health "$looks, $kill_at"; state /tmp/found
    (($(grep -c '^oc adm upgrade' /tmp/log) <= 1)) || echo "look $looks, kill $kill_at: requested again"
    diff -r /tmp/found /tmp/once >/dev/null || diff -r /tmp/found /tmp/twice || echo "look $looks, kill $kill_at: differs"
  done
  kill_at=0; restore /tmp/once; act
  if [[ -v isDone ]]; then break; fi
done
`;

runs('an unattended upgrade that is killed', () => {
  it('continues after each of its changes, and never waits with paused health checks', async () => {
    const { stdout, exitCode } = await drive(
      `gate ${SIGSTORE} Signatures.; gate ack-4.20-person Look.
      ${killSome(sampleKills('an unattended upgrade', 8))}
      cat history health configmap; jq -c . acks; echo "$kills kills"`,
      { acknowledged: [SIGSTORE, BOOT], more: [KILLER] },
    );
    expect(stdout.trimEnd().split('\n')).toEqual([
      ...['Completed 4.22.3', 'Completed 4.21.12', 'Completed 4.20.9'],
      ...['ours ', 'theirs maintenance'],
      ...['state=done', 'message=the cluster has been upgraded to 4.22.3'],
      `{"${SIGSTORE}":"true","ack-4.20-person":"true","${BOOT}":"true"}`,
      '40 kills',
    ]);
    expect(exitCode).toBe(0);
  }, 300_000);
});
