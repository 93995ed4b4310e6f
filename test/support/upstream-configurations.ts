import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** A configuration as upstream documents, generates or ships it; a pull secret is added to it. */
export type UpstreamConfiguration = {
  /** Where it is from, and what sets it apart. */
  readonly name: string;
  /** The release that it leads to, X.Y.Z. */
  readonly version: string;
  readonly arch?: 'aarch64';
  /** `RELEASE_URL` stands for the pullspec of that release. */
  readonly lines: readonly string[];
};

const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGtleSBvZiBhIHRlc3QsIG5vdGhpbmcgZWxzZSAhICAg me';

const HEAD = ['apiVersion: v1beta1', 'kind: ApplianceConfig'];

const of = (version: string, ...fields: readonly string[]): readonly string[] => [
  ...[...HEAD, 'ocpRelease:', `  version: ${version}`],
  ...fields,
];

/** The newest release of each minor version that the stand-in of the update graph has. */
export const ERAS = [
  '4.14.30',
  '4.17.12',
  '4.18.9',
  '4.20.5',
  '4.21.7',
  '4.22.1',
  '4.23.0',
  '5.0.0',
];

/** The fields of upstream's user guide and of its `generate-config`, each with its documented values. */
export const DOCUMENTED: readonly UpstreamConfiguration[] = [
  { name: 'guide: version X.Y', version: '4.14.30', lines: of('"4.14"') },
  { name: 'guide: version unquoted', version: '4.17.12', lines: of('4.17') },
  { name: 'guide: version that ends in 0, unquoted', version: '4.20.5', lines: of('4.20') },
  {
    name: 'guide: channel fast',
    version: '4.17.12',
    lines: of('4.17.12', '  channel: fast', '  cpuArchitecture: x86_64'),
  },
  { name: 'guide: channel eus', version: '4.18.9', lines: of('"4.18"', '  channel: eus') },
  {
    name: 'guide: channel candidate',
    version: '5.0.0',
    lines: of('"5.0"', '  channel: candidate'),
  },
  {
    name: 'guide: cpuArchitecture aarch64',
    version: '4.20.5',
    arch: 'aarch64',
    lines: of('4.20.5', '  cpuArchitecture: aarch64'),
  },
  {
    name: 'guide: release by url',
    version: '4.14.30',
    lines: of('4.14.30', '  channel: candidate', '  url: RELEASE_URL'),
  },
  {
    name: 'guide: diskSizeGB, sshKey, userCorePass',
    version: '4.14.30',
    lines: of('"4.14"', 'diskSizeGB: 200', `sshKey: ${SSH_KEY}`, 'userCorePass: test-password'),
  },
  {
    name: 'guide: keys in another case, metadata',
    version: '4.17.12',
    lines: of('"4.17"', 'diskSizeGb: 150', 'metadata:', '  name: appliance'),
  },
  {
    name: 'guide: imageRegistry.uri registry:2',
    version: '4.17.12',
    lines: of(
      ...['"4.17"', 'imageRegistry:', '  uri: docker.io/library/registry:2', '  port: 5005'],
    ),
  },
  {
    name: 'guide: imageRegistry.uri libpod',
    version: '4.22.1',
    lines: of('"4.22"', 'imageRegistry:', '  uri: quay.io/libpod/registry:2.8'),
  },
  {
    name: 'guide: imageRegistry.useBinary',
    version: '4.18.9',
    lines: of('"4.18"', 'imageRegistry:', '  uri: ""', '  useBinary: true'),
  },
  {
    name: 'guide: enableDefaultSources, stopLocalRegistry',
    version: '4.17.12',
    lines: of('"4.17"', 'enableDefaultSources: true', 'stopLocalRegistry: true'),
  },
  {
    name: 'guide: createPinnedImageSets',
    version: '4.17.12',
    lines: of('"4.17"', 'createPinnedImageSets: true'),
  },
  { name: 'guide: enableFips', version: '4.20.5', lines: of('"4.20"', 'enableFips: true') },
  {
    name: 'guide: enableInteractiveFlow',
    version: '4.20.5',
    lines: of('"4.20"', 'enableInteractiveFlow: true'),
  },
  {
    name: 'guide: interactive, skipLocalRegistry',
    version: '4.22.1',
    lines: of('"4.22"', 'enableInteractiveFlow: true', 'skipLocalRegistry: true'),
  },
  {
    name: 'guide: additionalImages, blockedImages',
    version: '4.14.30',
    lines: of(
      ...['"4.14"', 'additionalImages:', '  - name: registry.redhat.io/rhel9/support-tools:latest'],
      ...['blockedImages:', '  - name: registry.example.com/unwanted/.*'],
    ),
  },
  {
    name: 'guide: operators with a channel',
    version: '4.14.30',
    lines: of(
      ...['4.14.30', 'useDefaultSourceNames: true', 'disableSigstoreRegistries:'],
      ...['  - registry.redhat.io', 'operators:'],
      ...['  - catalog: registry.redhat.io/redhat/redhat-operator-index:v4.14', '    packages:'],
      ...['      - name: local-storage-operator', '        channels:', '          - name: stable'],
      ...['      - name: kubernetes-nmstate-operator'],
    ),
  },
  {
    name: 'generate-config: everything on',
    version: '4.21.7',
    lines: [
      ...of('4.21.7', '  channel: stable', '  cpuArchitecture: x86_64'),
      ...['diskSizeGB: 200', `sshKey: ${SSH_KEY}`, 'userCorePass: test-password'],
      ...['imageRegistry:', '  uri: quay.io/libpod/registry:2.8', '  port: 5005'],
      ...['  useBinary: false', 'enableDefaultSources: true', 'stopLocalRegistry: true'],
      ...['createPinnedImageSets: true', 'enableFips: true', 'enableInteractiveFlow: true'],
      ...['useDefaultSourceNames: true', 'disableSigstoreRegistries:', '  - registry.redhat.io'],
      ...['additionalImages:', '  - name: registry.redhat.io/rhel9/support-tools:latest'],
      ...['blockedImages:', '  - name: registry.example.com/unwanted/.*', 'operators:'],
      ...['  - catalog: registry.redhat.io/redhat/redhat-operator-index:v4.14', '    packages:'],
      ...['      - name: local-storage-operator', '        channels:', '          - name: stable'],
    ],
  },
];

/** What the OVE builder ships, completed in both ways that its wrapper knows. */
export function readOveConfigurations(folder: string): readonly UpstreamConfiguration[] {
  return readdirSync(folder)
    .sort()
    .flatMap((file) => {
      const minor = /(\d+\.\d+)\.yaml$/.exec(file)?.[1] ?? '';
      const version = ERAS.find((era) => era.startsWith(`${minor}.`)) ?? '';
      const text = readFileSync(join(folder, file), 'utf8').trimEnd();
      const release = ['ocpRelease:', `  version: ${version}`];
      const named = ['  channel: candidate', '  cpuArchitecture: x86_64'];
      return [
        { name: `OVE ${minor}: by version`, version, lines: [text, ...release, ...named] },
        { name: `OVE ${minor}: by url`, version, lines: [text, ...release, '  url: RELEASE_URL'] },
      ];
    });
}
