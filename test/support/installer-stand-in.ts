import { stringify } from 'yaml';

/** Behaviours of `openshift-install agent create unconfigured-ignition` that media meet. */
export type InstallerEra = 'A' | 'B' | 'C';

/** What the files below `--dir` say. */
export type InstallerInputs = {
  /** Of InfraEnv. */
  readonly metadata: object;
  readonly spec: Readonly<Record<string, unknown>>;
  readonly secretName: string;
  readonly pullSecret: string;
  /** Of agent-config.yaml. */
  readonly rendezvousIp?: string;
  /** Of each NMStateConfig, in the order of the hosts, as nmstate made them. */
  readonly hosts?: readonly {
    readonly profiles: Readonly<Record<string, string>>;
    readonly map: string;
  }[];
  /** mirror/ca-bundle.crt */
  readonly trustBundle?: string;
};

const HOST =
  '{{ if $isIPv6 }}{{ printf "[%s]" .RendezvousIP }}{{ else }}{{ .RendezvousIP }}{{ end }}';
const DIRECTIVE =
  '#{{ $isIPv6 := false }}{{ range .RendezvousIP }}{{ if eq . 58 }}{{ $isIPv6 = true }}{{ end }}{{ end }}';
const RENDEZVOUS = '/etc/assisted/rendezvous-host.env';

const AGENT = '[Service]\nExecStart=/usr/bin/true\n\n[Install]\nWantedBy=multi-user.target\n';

type StandInFile = { readonly path: string; readonly mode: number; readonly text: string };

/** The files, users and enabled units that the installer writes, after what is known of each era. */
export function standInForInstaller(era: InstallerEra, inputs: InstallerInputs): string {
  const { spec, hosts = [] } = inputs;
  const key = spec['sshAuthorizedKey'];
  const files: readonly StandInFile[] = [
    ...listRendezvous(era, inputs.rendezvousIp),
    ...hosts.flatMap(({ profiles, map }, index) =>
      Object.entries({ ...profiles, 'mac_interface.ini': map }).map(([name, text]) => ({
        path: `/etc/assisted/network/host${index}/${name}`,
        mode: 0o600,
        text,
      })),
    ),
    ...listTree(inputs),
    ...listManifests(inputs),
    ...(era === 'A' && inputs.trustBundle !== undefined
      ? [
          {
            path: '/etc/pki/ca-trust/source/anchors/domain.crt',
            mode: 0o600,
            text: inputs.trustBundle,
          },
        ]
      : []),
  ];
  const network = { name: 'pre-network-manager-config.service', contents: '', enabled: true };
  return JSON.stringify({
    ignition: { version: '3.2.0' },
    ...(key !== undefined && { passwd: { users: [{ name: 'core', sshAuthorizedKeys: [key] }] } }),
    storage: { files: files.map(toEntry) },
    systemd: {
      units: [
        { name: 'agent.service', contents: AGENT, enabled: true },
        ...(hosts.length > 0 ? [network] : []),
      ],
    },
  });
}

const toEntry = ({ path, mode, text }: StandInFile): object => ({
  path,
  mode,
  overwrite: true,
  user: { name: 'root' },
  contents: {
    source: `data:text/plain;charset=utf-8;base64,${Buffer.from(text).toString('base64')}`,
  },
});

/** Era A has one file, with an address or a hole for one; later ones a template besides. */
function listRendezvous(era: InstallerEra, ip: string | undefined): readonly StandInFile[] {
  const lines = (raw: string, host: string): readonly string[] => [
    `NODE_ZERO_IP=${raw}`,
    `SERVICE_BASE_URL=http://${host}:8090/`,
    `IMAGE_SERVICE_BASE_URL=http://${host}:8888/`,
    'PULL_SECRET_TOKEN=',
    'USER_AUTH_TOKEN=',
    `WORKFLOW_TYPE=install${era === 'A' ? '-interactive-disconnected' : ''}`,
    `AIUI_APP_API_URL=http://${host}:8090/`,
    `AIUI_URL=http://${host}:3001/`,
    '',
  ];
  const host = ip?.includes(':') === true ? `[${ip}]` : ip;
  if (era === 'A') {
    const text = lines(ip ?? '{{.RendezvousIP}}', host ?? '{{.RendezvousIP}}').join('\n');
    return [{ path: RENDEZVOUS, mode: 0o644, text }];
  }
  const mode = era === 'B' ? 0o644 : 0o600;
  const template = [DIRECTIVE, ...lines('{{.RendezvousIP}}', HOST)].join('\n');
  const rendered = ['#', ...lines(ip ?? '', host ?? '')].join('\n');
  return [
    ...(ip === undefined ? [] : [{ path: RENDEZVOUS, mode, text: rendered }]),
    { path: `${RENDEZVOUS}.template`, mode, text: template },
  ];
}

function listTree({ spec, pullSecret }: InstallerInputs): readonly StandInFile[] {
  const proxy = (spec['proxy'] ?? {}) as Readonly<Record<string, string>>;
  const lines = [
    ['HTTP_PROXY', proxy['httpProxy']?.replaceAll('%', '%%')],
    ['HTTPS_PROXY', proxy['httpsProxy']?.replaceAll('%', '%%')],
    ['NO_PROXY', proxy['noProxy']],
  ].flatMap(([name, value]) => (value ? [`DefaultEnvironment=${name ?? ''}="${value}"`] : []));
  const text = lines.length === 0 ? '' : ['[Manager]', ...lines, ''].join('\n');
  return [
    { path: '/etc/systemd/system.conf.d/10-default-env.conf', mode: 0o600, text },
    { path: '/root/.docker/config.json', mode: 0o600, text: pullSecret },
  ];
}

function listManifests({
  metadata,
  spec,
  secretName,
  pullSecret,
}: InstallerInputs): readonly StandInFile[] {
  const infraEnv = {
    apiVersion: 'agent-install.openshift.io/v1beta1',
    kind: 'InfraEnv',
    metadata,
    spec: {
      cpuArchitecture: 'x86_64',
      ipxeScriptType: '',
      nmStateConfigLabelSelector: {},
      ...spec,
    },
    status: { agentLabelSelector: {} },
  };
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: secretName },
    stringData: { '.dockerconfigjson': pullSecret },
    type: 'kubernetes.io/dockerconfigjson',
  };
  return Object.entries({
    'infraenv': stringify(infraEnv),
    'pull-secret': stringify(secret),
    'cluster-image-set': standInForImageSet('quay.io/ocp/release@sha256:1'),
  }).map(([name, text]) => ({ path: `/etc/assisted/manifests/${name}.yaml`, mode: 0o600, text }));
}

/** The file that names the release. */
export const standInForImageSet = (releaseImage: string, version = '4.21.3'): string =>
  stringify({
    apiVersion: 'hive.openshift.io/v1',
    kind: 'ClusterImageSet',
    metadata: { name: `openshift-${version}` },
    spec: { releaseImage },
  });
