/* Owns results with every member that their reports show, and texts of unknown origin in them. */

const D = `sha256:${'ab'.repeat(32)}` as const;
const NAME = 'quay.example/`a|b`\u001b[31m/image';

const signatures = [
  { version: '4.21.3', status: 'verified', identity: 'Red Hat, Inc.', key: 'AB12' },
  { version: '4.22.0', status: 'unsigned', problem: 'no store has one' },
];
const imagePolicy = {
  policies: ['openshift', 'other'],
  unchecked: ['third'],
  isDisabled: false,
  images: 7,
  refused: ['etcd', 'cli', 'a', 'b', 'c', 'd'].map((name) => ({
    name,
    problem: 'it has no signature',
  })),
};
const bytes = { fetched: 5e9, copied: 2e6, reused: 3e3, written: 7e9 };
const made = {
  output: '/work/out/ove.iso',
  isUpToDate: false,
  isoSize: 123_456_789_012,
  digest: D,
  images: 107,
  blobs: 400,
  payloadSize: 3e10,
  dedupeSaved: 4e9,
  bytes,
  verified: { extents: 12, bytes: 34e9, images: 56 },
  rehearsal: {
    will: 20,
    unknown: 2,
    willNot: [{ name: 'boot', reason: 'no kernel\nat all' }, { name: 'join' }],
  },
  release: { version: '4.21.3', architecture: 'x86_64', reference: `${NAME}@${D}` },
  signatures,
  imagePolicy,
  registriesConf: ['/etc/containers/registries.conf'],
  unverifiedTls: ['r.example:5000'],
  warnings: ['a warning'],
  stages: [{ milliseconds: 1234 }, { milliseconds: 2000 }],
  hosts: [{ retries: 1 }, { retries: 2 }],
  secretsOnMedia: ['pullSecret', 'sshKey'],
  notes: ['a note\nof two lines'],
};
const served = { version: '4.21.3', isPreview: true };
const upgrade = {
  ...made,
  volumeId: 'upgrade-4.21.3',
  path: { from: '4.20.6', hops: [{ version: '4.21.0' }, { version: '4.21.3' }] },
  files: ['/work/out/machine-config.yaml'],
  commands: [
    'oc apply -f machine-config.yaml',
    'oc adm upgrade --to 4.21.0',
    'oc adm upgrade --to 4.21.3',
  ],
  preparation: ['oc apply -f machine-config.yaml'],
  acknowledged: ['ack-1', 'ack-unknown'],
  gates: [
    {
      kind: 'admin-gate',
      certainty: 'certain',
      key: 'ack-1',
      from: '4.20.6',
      to: '4.21.0',
      text: 'removed  APIs\u001b',
      url: 'https://example.com/a',
      command: 'oc patch cm',
    },
    {
      kind: 'risk',
      certainty: 'unknown',
      key: undefined,
      from: '4.21.0',
      to: '4.21.3',
      text: 'see https://example.com/b',
      url: 'https://example.com/b',
      command: 'oc adm upgrade --force',
    },
  ],
  catalogs: [{ warnings: ['a catalog warning'] }],
  bytesToFetch: 1e9,
  bytesReused: 2e9,
  freeBytes: 3e12,
  neededBytes: 4e9,
};
const installation = {
  ...made,
  architecture: 'x86_64',
  base: { from: 'rhcos.iso', size: 1e9 },
  seedImage: NAME,
  seedVersion: '4.21.0',
  installationDisk: '/dev/disk/by-id/x\n',
  embedArea: { used: 3000, size: 262_144, grownTo: 1 << 20 },
  embedded: { images: ['a', 'b'], blobs: 20, payloadSize: 5e9, registryImage: 'reg@sha256:1' },
  bytesToFetch: 1e9,
  bytesReused: 2e9,
  freeBytes: 3e12,
  neededBytes: 4e9,
};

/** By report; each item is the arguments of the function that describes it. */
export const VALUES = {
  liveIso: [
    [
      {
        ...made,
        interactive: true,
        fips: false,
        ignition: 'installer',
        internalReleaseImage: served,
      },
      undefined,
    ],
    [
      {
        ...made,
        isUpToDate: true,
        digest: undefined,
        noChecksum: 'it was cloned',
        bytes: { ...bytes, copiedByServer: 9e9 },
        output: 's3://bucket/ove.iso',
        interactive: false,
        fips: true,
        ignition: 'installer',
        internalReleaseImage: null,
        secretsOnMedia: [],
        verified: undefined,
        rehearsal: undefined,
        device: { serial: '', report: '/work/out/stick.report.json' },
      },
      '/work/keys.gpg',
    ],
    [
      {
        ...made,
        output: 'oci://r.example/a:1',
        manifest: D,
        interactive: false,
        fips: false,
        ignition: 'embedded',
        internalReleaseImage: null,
        imagePolicy: { ...imagePolicy, isDisabled: true, refused: [] },
      },
      undefined,
    ],
  ],
  installationIso: [
    [installation],
    [{ ...installation, embedded: undefined, embedArea: { used: 1, size: 2 }, manifest: D }],
  ],
  installationPlan: [[installation], [{ ...installation, embedded: undefined }]],
  upgradeIso: [[upgrade], [{ ...upgrade, path: { hops: [] }, gates: [], preparation: [] }]],
  upgradePlan: [[upgrade]],
  livePlan: [
    [
      {
        ...upgrade,
        base: { from: 'the payload', size: 1e9, osStream: 'rhel-9' },
        ignitionArea: { used: 10, size: 262_144 },
        internalReleaseImage: { ...served, isPreview: false },
        extras: ['x', 'y'],
        parts: [
          { part: 'release', images: 100, size: 1e10, marginalSize: 9e9 },
          { part: 'registry.example/a/long/catalog:v4.21', images: 7, size: 1e6, marginalSize: 5 },
        ],
        additions: [
          {
            bundle: 'b.v1',
            package: 'p',
            channel: 'stable',
            images: 2,
            size: 1e6,
            marginalSize: 1e5,
            requiredBy: { bundle: 'a.v1' },
            reason: 'package p',
          },
        ],
        largestBlobs: [{ digest: D, size: 1e9, users: ['a', 'b', 'c', 'd'] }],
      },
    ],
    [
      {
        ...made,
        ...upgrade,
        base: { from: 'a.iso', size: 1e9 },
        ignitionArea: { used: 10, size: 262_144 },
        internalReleaseImage: null,
        registriesConf: [],
        secretsOnMedia: [],
        extras: [],
        parts: [],
        additions: [],
        largestBlobs: [],
      },
    ],
  ],
  verification: [
    [
      'a.iso',
      {
        state: 'whole',
        ok: true,
        problems: [],
        oddities: ['odd'],
        damagedImages: [],
        notCompared: ['the tail'],
        mediumDigest: D,
        customised: true,
        areas: [{ kind: 'built', state: 'bare' }],
        sample: {
          seed: 'abc',
          bytes: 1e9,
          extents: 1,
          confidence: [{ damaged: 0.01, scattered: 0.99, together: 0.123_456 }],
        },
        checked: { extents: 1, bytes: 1e9, images: 2 },
        compared: { bytes: 1, of: 2 },
      },
    ],
    [
      'a.iso',
      {
        state: 'damaged',
        ok: false,
        problems: Array.from({ length: 22 }, (_, index) => ({
          severity: 'error',
          kind: index === 0 ? 'structure' : 'file',
          code: 'verify.file',
          file: 'a.iso',
          problem: `is wrong at ${index}`,
        })),
        oddities: [],
        damagedImages: ['x', 'y'],
        checked: { extents: 1, bytes: 1e9, images: 2 },
        compared: { bytes: 1, of: 2 },
      },
    ],
  ],
  folder: [
    ['isos', { isos: 3, damaged: [] }],
    [
      'isos',
      {
        isos: 30,
        damaged: Array.from({ length: 22 }, (_, at) => ({ iso: `${at}.iso`, problem: 'is cut' })),
      },
    ],
  ],
  repair: [
    [
      'a.iso',
      {
        ok: true,
        damaged: Array.from({ length: 22 }, (_, at) => ({
          offset: at,
          size: 5,
          path: at === 0 ? undefined : `/f${at}`,
          problem: 'differs',
          source: at === 1 ? undefined : 'b.iso',
        })),
        problems: [{ severity: 'error', code: 'x.y', file: 'a.iso', problem: 'is wrong' }],
        bytes: { damaged: 1e6, read: 2e6, written: 3e6 },
      },
    ],
  ],
  delta: [
    [
      '/work/out/d.delta',
      {
        size: 1e6,
        digest: D,
        carried: 2e6,
        shared: 3e6,
        parts: ['/work/out/d.delta.1'],
        values: ['ssh\nkey'],
      },
    ],
  ],
  customised: [
    [{ output: 'a.iso', action: 'unchanged', changed: 0, undone: true }],
    [{ output: 'a.iso', action: 'customised', changed: 1024, undone: false }],
    [{ output: 'a.iso', action: 'reset', changed: 1024, undone: false }],
  ],
  customisation: [
    [
      'a.iso',
      {
        customised: true,
        bare: false,
        builtSecrets: true,
        ignition: {
          used: 1,
          size: 262_144,
          sshKeys: ['ssh-ed25519 AAAA me'],
          pullSecret: true,
          rendezvousIp: '10.0.0.1',
          rendezvousHost: ['52:54:00:00:00:01'],
          proxy: { httpProxy: 'http://p:1' },
          ntpSources: ['a', 'b'],
          trustBundle: true,
          hostnames: { '52:54:00:00:00:01': 'node' },
          networkFiles: ['eth0'],
          manifests: ['a.yaml'],
          others: [{ kind: 'file', name: '/etc/x' }],
          notRead: [{ source: 'merge', reason: 'absent' }],
          files: ['/etc/assisted/manifests/x', '/etc/other'],
        },
        kernelArguments: { now: 'a b', default: 'a' },
      },
    ],
  ],
  inspection: [
    [
      {
        volume: { id: 'OVE', size: 1e9 },
        size: 2e9,
        extensions: { rockRidge: true, joliet: false },
        bootEntries: [{ platform: 'x86 BIOS', loadSectors: 4, offset: 2048 }],
        partitions: [{ table: 'GPT', type: 'EFI', size: 1e6, offset: 4096 }],
        partitionsProblem: 'a hole',
        coreos: {
          embedArea: { used: 1, size: 262_144, file: '/images/ignition.img', grown: true },
          ignition: {},
          bootstrapIgnition: {},
          osStream: 'rhel-9',
          kargs: 'a b',
          defaultKargs: 'a',
        },
        product: 'live-iso',
        media: {
          product: 'live-iso',
          program: '0.1.0',
          release: made.release,
          unsigned: ['4.22.0'],
          images: { release: 100, operators: 5 },
          sizes: { release: 1e10 },
          catalogs: [
            {
              packages: [
                {
                  name: 'p\u001b',
                  bundles: [{ name: 'p.v1', version: '1.0.0' }, { name: 'p.v2' }],
                },
              ],
            },
          ],
          payloadSize: 1e10,
          bundle: { name: 'b', images: 3 },
          extents: 12,
          indexDigest: D,
        },
        areas: [
          { kind: 'ignition', state: 'as built' },
          { kind: 'kernel-arguments', state: 'customized', problem: 'it was cut' },
        ],
        areasProblem: 'no index',
      },
    ],
    [
      {
        volume: { id: 'X', size: 1 },
        size: 2,
        extensions: { rockRidge: false, joliet: false },
        bootEntries: [],
        partitions: [],
        product: 'coreos-live',
        notCoreos: 'no file',
      },
    ],
    [
      {
        volume: { id: 'X', size: 1 },
        size: 2,
        extensions: { rockRidge: true, joliet: true },
        bootEntries: [],
        partitions: [],
        product: 'minimal-iso',
        proof: { program: '0.1.0', of: 'a.iso', digest: D },
      },
    ],
  ],
  rehearsal: [
    [
      'a.iso',
      {
        ok: false,
        release: made.release,
        steps: [
          { part: 'firmware', name: 'boot\u001b', outcome: 'will', place: 'x' },
          {
            part: 'firmware',
            name: 'stop',
            outcome: 'will-not',
            reason: 'no file',
            place: '/boot',
          },
          { part: 'operators', name: 'guess', outcome: 'unknown', reason: 'not on the medium' },
        ],
        needs: [
          { host: 'control plane', count: 3, cores: 4, memory: 16e9, disk: 120e9, because: 'odf' },
          { host: 'rendezvous', cores: 8, memory: 32e9, disk: 1e9 },
        ],
        reading: { least: 1e9, most: 2e9, seconds: [{ rate: 1e7, least: 100, most: 200 }] },
      },
    ],
  ],
  configIsos: [
    [
      {
        out: '/work/isos',
        sites: [{ iso: 'alpha.iso', size: 1000 }],
        failed: Array.from({ length: 12 }, (_, at) => ({ name: `site\n${at}` })),
        made: 1,
        reused: 0,
      },
      { dropIn: false },
    ],
    [{ out: '/work', sites: [], failed: [], made: 0, reused: 0 }, { dropIn: true }],
  ],
  configIso: [
    [
      'a.iso',
      {
        volumeId: 'cluster-config',
        size: 1000,
        entries: [{ path: '/d\u001b' }, { path: '/f', size: 5, digest: D }],
        manifest: { a: { b: ['c'] } },
      },
    ],
  ],
  check: [
    [
      {
        fits: true,
        obstacles: [{ severity: 'error', code: 'a.b', file: 'x', problem: 'is wrong' }],
        cautions: ['soon expired'],
        releaseImage: NAME,
        cluster: {
          nodes: { masters: 3, arbiters: 0, workers: 2 },
          hosts: 5,
          rendezvousIp: '10.0.0.1',
          certificates: [{ path: '/c', notBefore: 'then', notAfter: 'now' }],
        },
      },
      { image: 'i.iso', medium: 'm.iso' },
    ],
  ],
  catalogView: [
    [
      {
        packages: [
          {
            name: 'p',
            defaultChannel: 'stable',
            channels: [
              { name: 'stable', head: 'p.v2', entries: [1, 2] },
              { name: 'a-channel-with-a-very-long-name', entries: [] },
            ],
          },
        ],
        bundles: [{ name: 'p.v2', version: '2.0.0' }, { name: 'p.v1' }],
        relatedImages: [NAME],
        warnings: ['a warning'],
      },
    ],
  ],
  locked: [
    [
      {
        file: 'sealift.lock.json',
        secrets: 'sealift.lock.secrets',
        release: made.release,
        images: 107,
        catalogs: 2,
        tags: 3,
      },
      'sealift build --locked',
    ],
  ],
  reproduced: [
    [
      'a.iso',
      {
        result: 'equal-as-compared',
        size: { found: 5, expected: 6 },
        differences: Array.from({ length: 22 }, (_, at) => ({
          part: 'blob',
          offset: at,
          size: 7,
          paths: at === 0 ? [] : [`/b/${at}`],
        })),
        notCompared: [{ size: 1e6 }],
      },
    ],
    [
      'a.iso',
      { result: 'equal', size: { found: 6, expected: 6 }, differences: [], notCompared: [] },
    ],
  ],
  explainedImage: [
    [
      {
        name: 'etcd',
        size: 1e9,
        marginalSize: 1e6,
        reference: NAME,
        repository: 'openshift/release',
        tags: ['a', 'b'],
        unknown: 'not in the index',
        neededBy: [{ part: 'release' }, { part: 'operators', bundle: 'p.v1', catalog: 'cat:v1' }],
      },
    ],
  ],
  verdict: [
    [
      {
        file: 'a.yaml',
        valid: true,
        problems: [],
        notes: [
          {
            severity: 'note',
            code: 'config.note',
            file: 'a.yaml',
            line: 1,
            column: 1,
            path: 'a',
            lineText: 'a: 1',
            problem: 'is odd',
          },
        ],
      },
    ],
  ],
} as const;

export const HOST = { cwd: '/work' };
