import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { textFile, type File } from '../../../src/ignition/index.ts';
import { renderScript } from '../../../src/openshift/node/registry.ts';
import { hasThrowAwayRoot, runInThrowAwayRoot } from '../../support/throw-away-root.ts';

const runs = describe.skipIf(!hasThrowAwayRoot());

const KUBECONFIG =
  '/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig';

/** Logs what changes the cluster. `answer` is the body of a case over "$1 $2". */
const fakeOc = (answer: string): File =>
  textFile(
    '/usr/local/bin/oc',
    `#!/usr/bin/env bash
case "$1" in apply | label | patch) echo "oc $*" ;; esac
case "$1 $2" in
${answer}
esac
`,
    0o755,
  );

const kubeconfig = textFile(KUBECONFIG, 'apiVersion: v1\n', 0o600);
const faster = (script: string): string =>
  `sed -i 's/interval=60/interval=0.1/' /usr/local/bin/*.sh
  ${script}`;

runs('apply-operator-crs.sh', () => {
  const directory = '/etc/assisted/extra-manifests/post-installation';
  const files = [
    renderScript('apply-operator-crs.sh'),
    textFile(`${directory}/index`, '- a-0.yaml\nns b-0.yaml\nns c-0.yaml\n', 0o600),
    kubeconfig,
  ];

  it('waits for the cluster and the operators, and keeps what already exists', async () => {
    const oc = fakeOc(`
  "get clusterversion") [[ -e /tmp/asked ]] && echo True; touch /tmp/asked ;;
  "get clusterserviceversions")
    [[ -e /tmp/ready ]] && printf 'Succeeded\\nSucceeded\\n' || printf 'Succeeded\\nPending\\n'
    touch /tmp/ready ;;
  "get --filename") [[ "$3" == */c-0.yaml ]] ;;`);
    const { exitCode, stdout } = await runInThrowAwayRoot(
      [...files, oc],
      faster('apply-operator-crs.sh'),
    );
    expect(exitCode).toBe(0);
    expect(stdout).toBe(`oc apply --filename ${directory}/a-0.yaml
custom resources: a-0.yaml is there
custom resources: b-0.yaml waits for the operators of namespace ns
oc apply --filename ${directory}/b-0.yaml
custom resources: b-0.yaml is there
custom resources: c-0.yaml is there
`);
  });
});

runs('create-pinned-image-sets.sh', () => {
  const directory = '/etc/assisted/pinned-image-sets';
  const set = (role: string): File =>
    textFile(
      `${directory}/${role}.yaml`,
      `apiVersion: machineconfiguration.openshift.io/v1\nkind: PinnedImageSet # ${role}\n`,
      0o644,
    );
  const files = [
    ...[renderScript('create-pinned-image-sets.sh'), kubeconfig],
    ...[set('master'), set('worker')],
  ];
  /** `definition` prints whether the definition is established, and what it serves. */
  const run = (definition: string, features = '') =>
    runInThrowAwayRoot(
      [
        ...files,
        fakeOc(`
  "get clusterversion") [[ -e /tmp/asked ]] && echo True; touch /tmp/asked ;;
  "get featuregate") echo "${features}" ;;
  "apply --filename") cat ;;
  "get customresourcedefinition/pinnedimagesets.machineconfiguration.openshift.io") ${definition} ;;`),
      ],
      `sed -i 's/interval=60/interval=1/; s/limit=3600/limit=2/' /usr/local/bin/create-pinned-image-sets.sh
      create-pinned-image-sets.sh`,
    );
  const applied = (version: string): string =>
    ['master', 'worker']
      .map(
        (role) =>
          `oc apply --filename -\napiVersion: machineconfiguration.openshift.io/${version}\n` +
          `kind: PinnedImageSet # ${role}\n`,
      )
      .join('');
  const PATCH =
    'oc patch featuregate cluster --type merge --patch {"spec":{"featureSet":"TechPreviewNoUpgrade"}}\n';

  it.each([
    ['True v1', 'v1'],
    ['True v1alpha1 v1', 'v1'],
    ['True v1alpha1', 'v1alpha1'],
  ])(
    'applies the sets if the definition is "%s" as %s, and does not change the features of the cluster',
    async (definition, version) => {
      const { exitCode, stdout } = await run(`echo ${definition}`);
      expect(exitCode).toBe(0);
      expect(stdout).toBe(applied(version));
    },
  );

  it('makes any other cluster a technology preview, and waits until it serves them', async () => {
    const { exitCode, stdout } = await run(
      '[[ -e /tmp/seen ]] && echo True v1alpha1; touch /tmp/seen',
    );
    expect(exitCode).toBe(0);
    expect(stdout).toBe(PATCH + applied('v1alpha1'));
  });

  it('ends with one message on a technology preview that does not serve them either', async () => {
    const { exitCode, stdout } = await run('true');
    expect(exitCode).toBe(0);
    expect(stdout).toBe(
      `${PATCH}pinned image sets: the cluster does not serve them as a technology preview either, so no image is pinned\n`,
    );
  });

  it('ends with one message on a cluster that has another feature set, and leaves it', async () => {
    const { exitCode, stdout } = await run('true', 'CustomNoUpgrade');
    expect(exitCode).toBe(0);
    expect(stdout).toBe(
      'pinned image sets: the cluster does not serve them with its feature set CustomNoUpgrade, so no image is pinned\n',
    );
  });
});

/** Takes no time, and brings the cluster after 150 calls of 60 seconds. */
const LONG_SLEEP = `#!/bin/bash
echo "$1" >>/tmp/slept
mapfile -t slept </tmp/slept
((\${#slept[@]} < 150)) || { mkdir -p ${dirname(KUBECONFIG)}; echo yes >${KUBECONFIG}; }
`;

runs('stop-local-registry.sh', () => {
  const systemctl = textFile('/usr/local/bin/systemctl', '#!/bin/sh\necho systemctl "$@"\n', 0o755);
  const files = [renderScript('stop-local-registry.sh'), systemctl];
  const oc = fakeOc('  "get clusterversion") echo True ;;');

  it('stops the registry of a control plane host when the cluster is installed', async () => {
    const { stdout } = await runInThrowAwayRoot(
      [...files, oc, kubeconfig],
      faster('stop-local-registry.sh'),
    );
    expect(stdout).toBe('systemctl disable --now start-local-registry.service\n');
  });

  it('waits until this host has pulled every pinned image, if images are pinned', async () => {
    const set = textFile('/etc/assisted/pinned-image-sets/master.yaml', '', 0o644);
    const { stdout } = await runInThrowAwayRoot(
      [...files, oc, kubeconfig, set],
      `mkdir -p /etc/crio/crio.conf.d
      (sleep 0.5; touch /etc/crio/crio.conf.d/50-pinned-images) &
      ${faster('stop-local-registry.sh')}`,
    );
    const lines = stdout.trim().split('\n');
    expect(lines[0]).toBe('local registry: it runs until this host has every pinned image');
    expect(lines.at(-1)).toBe('systemctl disable --now start-local-registry.service');
  });

  it('leaves the registry of a worker alone, because a worker cannot see the cluster', async () => {
    const { stdout } = await runInThrowAwayRoot(
      [...files, oc],
      faster('stop-local-registry.sh & sleep 1; kill %1 && echo still waiting'),
    );
    expect(stdout).toBe('still waiting\n');
  });

  it('waits longer than two hours for a cluster that comes from a slow medium', async () => {
    const hour = textFile('/usr/local/bin/sleep', LONG_SLEEP, 0o755);
    const { stdout } = await runInThrowAwayRoot(
      [...files, oc, hour],
      'stop-local-registry.sh; wc -l </tmp/slept',
    );
    expect(stdout).toBe('systemctl disable --now start-local-registry.service\n150\n');
  });
});

runs('drop-registry-mirrors.sh', () => {
  const files = [
    renderScript('drop-registry-mirrors.sh'),
    kubeconfig,
    fakeOc(`
  "get clusterversion") [[ -e /tmp/asked ]] && echo True; touch /tmp/asked ;;
  "get machineconfig") [[ "$3" == 99-master-generated-registries ]] ;;`),
  ];
  const CHANGES = [
    'oc label machineconfig 99-master-generated-registries machineconfiguration.openshift.io/role-',
    'oc patch machineconfigpool master --type merge --patch {"spec":{"paused":true}}',
    'oc patch machineconfigpool master --type merge --patch {"spec":{"paused":false}}',
  ];

  it('waits for the cluster, and removes the mirrors from the pools that have any', async () => {
    const { exitCode, stdout } = await runInThrowAwayRoot(
      files,
      faster('drop-registry-mirrors.sh'),
    );
    expect(exitCode).toBe(0);
    expect(stdout.trim().split('\n')).toEqual(CHANGES);
  });

  it('waits until this host has pulled every pinned image, if images are pinned', async () => {
    const set = textFile('/etc/assisted/pinned-image-sets/master.yaml', '', 0o644);
    const { stdout } = await runInThrowAwayRoot(
      [...files, set],
      `mkdir -p /etc/crio/crio.conf.d
      (sleep 0.5; touch /etc/crio/crio.conf.d/50-pinned-images) &
      ${faster('drop-registry-mirrors.sh')}`,
    );
    const lines = stdout.trim().split('\n');
    expect(lines[0]).toBe('registry mirrors: they stay until this host has every pinned image');
    expect(lines.slice(-3)).toEqual(CHANGES);
  });
});
