import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { listGatedUpdates, requireGates } from '../../../src/openshift/release/gated-path.ts';
import {
  type Gate,
  type GateInput,
  listGates,
  minorOfGate,
  readAdminGates,
} from '../../../src/openshift/release/gates.ts';
import { leavesOverrides } from '../../../src/openshift/release/image-policy.ts';

const SIGSTORE = 'ack-4.20-sigstore-in-4.21';

const update = (
  from: string,
  to: string,
  adminGates?: Readonly<Record<string, string>>,
): GateInput['updates'][number] => ({
  from: { version: from, ...(adminGates && { adminGates }) },
  to: { version: to, image: `quay.io/r@sha256:${to}`, risks: [] },
});

const list = (input: Partial<GateInput>): readonly Gate[] =>
  listGates({ updates: [], arch: 'x86_64', bundles: [], hasOverrides: false, ...input });

const keysOf = (gates: readonly Gate[]) =>
  gates.map(({ kind, key, from }) => key ?? `${kind} ${from}`);

/** The manifest as the cluster version operator ships it, empty or with data. */
const manifest = (
  data?: Readonly<Record<string, unknown>>,
  annotation = 'self-managed-high-availability',
) =>
  new Map([
    [
      'release-manifests/0000_00_cluster-version-operator_01_admingate_configmap.yaml',
      Buffer.from(
        stringify({
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: {
            name: 'admin-gates',
            namespace: 'openshift-config-managed',
            annotations: { [`include.release.openshift.io/${annotation}`]: 'true' },
          },
          ...(data && { data }),
        }),
      ),
    ],
    [
      'release-manifests/0000_00_cluster-version-operator_01_adminack_configmap.yaml',
      Buffer.from('kind: ConfigMap\nmetadata: {name: admin-acks}\n'),
    ],
  ]);

describe('the gates of a payload', () => {
  it('are the texts of its ConfigMap admin-gates, and none if it has no data', () => {
    expect(readAdminGates(manifest({ [SIGSTORE]: 'Why.', other: 1 }))).toEqual({
      [SIGSTORE]: 'Why.',
    });
    expect(readAdminGates(manifest())).toEqual({});
    expect(readAdminGates(manifest({ [SIGSTORE]: 'Why.' }, 'hypershift'))).toEqual({});
  });

  it.each([
    ['ack-4.19-kube-1.33', '4.19'],
    ['ack-5.0-x', '5.0'],
    ['ack-4.19--x', undefined],
    ['ack-4.19-', undefined],
    ['ack-4.x-y', undefined],
    ['ack-3.11-x', undefined],
    ['x-ack-4.19-y', undefined],
    ["ack-4.19-'; reboot", undefined],
  ])('by the key %s stop clusters of %s', (key, minor) => {
    expect(minorOfGate(key)).toBe(minor);
  });
});

describe('the gates on a path', () => {
  it('count where the cluster has their minor version, with text, address and command', () => {
    const text = 'Kubernetes removes APIs. See https://access.redhat.com/articles/7112216.\n';
    const gates = list({
      updates: [
        update('4.19.9', '4.19.12', { 'ack-4.19-a': 'not for a patch update' }),
        update('4.19.12', '4.20.9', {
          'ack-4.19-a': text,
          'ack-4.18-b': 'old',
          'ack-4.19-empty': '',
        }),
      ],
    });
    expect(gates).toEqual([
      {
        kind: 'acknowledgement',
        certainty: 'certain',
        key: 'ack-4.19-a',
        from: '4.19.12',
        to: '4.20.9',
        text: text.trim(),
        url: 'https://access.redhat.com/articles/7112216',
        command: `oc -n openshift-config patch cm admin-acks --type=merge --patch '{"data":{"ack-4.19-a":"true"}}'`,
      },
    ]);
  });

  it('have those that the machine config operator adds on running clusters, each once', () => {
    const path = (arch: GateInput['arch']) =>
      keysOf(
        list({
          arch,
          updates: [
            update('4.18.1', '4.19.1', {}),
            update('4.19.1', '4.20.1', {}),
            update('4.20.1', '4.21.1', { [SIGSTORE]: 'of the payload' }),
            update('4.21.1', '4.22.1', {}),
          ],
        }),
      );
    const usual = [
      'ack-4.18-boot-image-opt-out-in-4.19',
      SIGSTORE,
      'ack-4.21-boot-image-opt-out-in-4.22',
    ];
    expect(path('x86_64')).toEqual(usual);
    expect(path('aarch64')).toEqual([
      usual[0],
      'ack-4.18-aarch64-bootloader-4.19',
      ...usual.slice(1),
    ]);
  });

  it('cannot be known without the payload that the cluster leaves, and the command asks the cluster', () => {
    const { from, ...rest } = update('4.20.6', '4.21.3');
    const gates = list({
      updates: [{ ...rest, from: { ...from, problem: 'the registry is away' } }],
    });
    expect(keysOf(gates)).toEqual([SIGSTORE, 'unknown 4.20.6']);
    expect(gates.at(-1)).toMatchObject({
      certainty: 'unknown',
      text: 'what release 4.20.6 asks to acknowledge cannot be known: the registry is away',
      command: 'oc -n openshift-config-managed get cm admin-gates -o yaml',
    });
  });

  it('have overrides once, before the first update to another minor version', () => {
    const updates = [
      update('4.21.1', '4.21.9', {}),
      update('4.21.9', '4.22.1', {}),
      update('4.22.1', '4.23.1', {}),
    ];
    const gates = list({ updates, hasOverrides: true }).filter(({ kind }) => kind === 'overrides');
    expect(gates.map(({ from, to, command }) => [from, to, command])).toEqual([
      [
        '4.21.9',
        '4.22.1',
        `oc patch clusterversion version --type=json -p '[{"op":"remove","path":"/spec/overrides"}]'`,
      ],
    ]);
  });

  it.each([
    ['4.22.9', '4.22.1-rc.1', undefined, false],
    ['4.22.9', '4.22.9', true, true],
    ['a nightly', '4.22.0-0.nightly-2026-05-01-000000', undefined, true],
    ['a nightly with a policy', '4.22.0-0.nightly-2026-05-01-000000', false, false],
    ['a nightly before the policy', '4.20.0-0.nightly-2025-05-01-000000', undefined, false],
    ['an unknown cluster', undefined, undefined, false],
  ])('count on overrides of %s', (...[, version, wish, expected]) => {
    expect(leavesOverrides(version, wish)).toBe(expected);
  });

  it('have the risks of every update by name, with the option that accepts them', () => {
    const [one] = [update('4.22.1', '4.22.9', {})];
    const risks = [{ name: 'SlowDisks', message: 'Quorum.', url: 'https://issues.example/1' }];
    expect(list({ updates: [{ ...one, to: { ...one.to, risks } }] })).toMatchObject([
      {
        kind: 'conditional',
        key: 'SlowDisks',
        url: 'https://issues.example/1',
        command:
          'oc adm upgrade --allow-explicit-upgrade --allow-not-recommended --to-image quay.io/r@sha256:4.22.9',
      },
    ]);
  });

  it('have runc where a cluster goes to the next major version', () => {
    expect(
      keysOf(list({ updates: [update('4.23.1', '5.0.1', {}), update('5.0.1', '5.1.1', {})] })),
    ).toEqual(['runc 4.23.1']);
  });
});

describe('an operator on the path', () => {
  const bundle = (name: string, maxOpenShiftVersion?: string) => ({
    package: 'alpha',
    name,
    ...(maxOpenShiftVersion !== undefined && { maxOpenShiftVersion }),
  });
  const stops = (versions: readonly string[], ...limits: readonly (string | undefined)[]) =>
    list({
      updates: versions.slice(1).map((to, at) => update(versions[at] ?? '', to, {})),
      bundles: limits.map((limit, at) => bundle(`alpha.v${at}`, limit)),
    })
      .filter(({ kind }) => kind === 'operator')
      .map(({ from, text }) => [from, text.replace(/.*bundles is installed: /, '')]);

  it.each([
    ['4.21', 1],
    ['4.22', 0],
    ['v4.22', 0],
    ['4.22.0', 0],
    ['5.0', 0],
    ['4', 1],
    ['', 1],
    ['4.22.1', 1],
    ['4.21, 4.22', 1],
    [undefined, 0],
  ])('with the limit %j stops the update to 4.22 %i times', (limit, count) => {
    expect(stops(['4.21.9', '4.22.1'], limit)).toHaveLength(count);
  });

  it('stops before the next minor version, as OLM compares, also at the next major version', () => {
    expect(stops(['4.22.9', '5.0.1'], '4.22')).toHaveLength(1);
    expect(stops(['4.22.9', '5.0.1'], '4.23')).toHaveLength(0);
  });

  it('is named at the update that it stops first, with a bundle that goes further', () => {
    expect(stops(['4.20.1', '4.21.1', '4.22.1'], '4.20', '4.21', '4.22')).toEqual([
      [
        '4.20.1',
        'alpha.v0 (up to 4.20). Update the operator first: alpha.v1 goes further and is on the medium.',
      ],
      [
        '4.21.1',
        'alpha.v1 (up to 4.21). Update the operator first: alpha.v2 goes further and is on the medium.',
      ],
    ]);
    expect(stops(['4.20.1', '4.21.1'], '4.20', '4.19', '4.18', '4.17')[0]?.[1]).toBe(
      'alpha.v0 (up to 4.20), alpha.v1 (up to 4.19), alpha.v2 (up to 4.18) and 1 more. ' +
        'No bundle on the medium goes further: find one in a later catalog, or remove the operator.',
    );
  });
});

describe('the updates of a path', () => {
  const release = (version: string, previous: readonly string[] = []) => ({
    version,
    adminGates: { [`ack-${version}`]: 'x' },
    metadata: { version, previous, metadata: {} },
  });
  const hopTo = (version: string) => ({ version, image: 'r@sha256:a', risks: [] });

  it('leave the given release first, and then each release on the medium', () => {
    const updates = listGatedUpdates({
      path: { from: '4.20.1', hops: [hopTo('4.21.1'), hopTo('4.22.1')] },
      releases: [release('4.21.1'), release('4.22.1')],
      left: { version: '4.20.1' },
    });
    expect(updates.map(({ from, to }) => [from, to.version])).toEqual([
      [{ version: '4.20.1' }, '4.21.1'],
      [{ version: '4.21.1', adminGates: { 'ack-4.21.1': 'x' } }, '4.22.1'],
    ]);
  });

  it.each([
    ['4.22.1', ['4.21.9', '4.22.0', '4.21.8'], ['4.21']],
    ['4.22.1', ['4.22.0'], []],
    ['4.22.0-0.nightly-2026-05-01-000000', [], ['4.21']],
    ['5.0.0-ec.1', [], []],
  ])('without a start lead to %s from the minor versions of %j', (version, previous, minors) => {
    const updates = listGatedUpdates({
      path: { hops: [hopTo(version)] },
      releases: [release(version, previous)],
    });
    expect(updates.map(({ from }) => from.version)).toEqual(minors);
  });

  it('refuse acknowledgements that fit none of them, with the key that was meant', () => {
    const updates = [update('4.20.1', '4.21.1', {})];
    const gates = list({ updates });
    expect(() => {
      requireGates([SIGSTORE, 'ack-4.20-later-gate'], updates, gates);
    }).not.toThrow();
    expect(() => {
      requireGates(['ack-4.21-sigstore-in-4.21'], updates, gates);
    }).toThrow(
      expect.objectContaining({
        code: 'upgrade.no-such-gate',
        hint: `did you mean "${SIGSTORE}"?`,
      }) as Error,
    );
  });
});
