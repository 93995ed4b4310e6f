import { cp, mkdir, readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digestFromHex, type Digest } from '../../src/base/digest.ts';
import { runProcess } from '../../src/base/process.ts';
import type { Unit } from '../../src/ignition/index.ts';
import { renderInstallIgnition, RENDEZVOUS_PLACEHOLDER } from '../../src/openshift/node/install.ts';
import { bootstrapInput } from '../support/node-configs.ts';
import { DEFAULT_KARGS, VOLUME_ID } from './base-iso.ts';
import { fileEntry, graft } from './graft.ts';
import { nameImage, REGISTRY_IMAGE } from './images.ts';
import { pushImage, startRegistry } from './registry.ts';
import type { UpgradeIso } from './upgrade-isos.ts';

export type Host = {
  /** A live system, in the place of the system on the host's disk. */
  readonly iso: string;
  /** The file system at /var/lib, which outlives a boot. */
  readonly disk: string;
};

export type HostParts = {
  readonly base: string;
  readonly work: string;
  /** An image of the appliance ISO. */
  readonly component: Digest;
  readonly upgrades: readonly UpgradeIso[];
};

/** The reserve of 10 GiB and more; sparse. */
const DISK_SIZE = 12 * 1024 ** 3;

const SCRIPTS = join(import.meta.dirname, 'host');

/** Not the label of an appliance ISO, which the host would mount. */
const SYSTEM = 'host-system';

const service = (name: string, lines: string): Unit => ({ name, enabled: true, contents: lines });

const UNITS = [
  service(
    'host-setup.service',
    `[Unit]
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target systemd-tmpfiles-setup.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/bin/host-setup
[Install]
WantedBy=sysinit.target
`,
  ),
  ...['proof', 'machine-config-daemon'].map((name) =>
    service(
      `${name}.service`,
      `[Service]
ExecStart=/usr/local/bin/${name}
[Install]
WantedBy=multi-user.target
`,
    ),
  ),
];

/** An installed host with an empty disk. */
export async function makeHost({ base, work, component, upgrades }: HostParts): Promise<Host> {
  const host = { iso: join(work, 'host.iso'), disk: join(work, 'disk') };
  await writeFile(host.disk, '');
  await truncate(host.disk, DISK_SIZE);
  await runProcess('mkfs.ext4', ['-q', '-F', host.disk]);
  const [key, certificate] = await makeCertificate(work);
  const certificates = ['/etc/iri-registry/certs', '/etc/appliance-registry/certs-upgrade'];
  const files = [
    fileEntry('/etc/proof/component', 0o644, component),
    ...upgrades.map(({ version, machineConfig }) =>
      fileEntry(`/etc/proof/upgrade-machine-config-${version}.yaml`, 0o644, machineConfig),
    ),
    ...certificates.flatMap((directory) => [
      fileEntry(`${directory}/tls.key`, 0o600, key),
      fileEntry(`${directory}/tls.crt`, 0o644, certificate),
    ]),
    // A minute between two looks at the cluster is long in a test.
    fileEntry(
      '/etc/systemd/system/upgrade-cluster.service.d/10-soon.conf',
      0o644,
      '[Service]\nRestartSec=1\n',
    ),
  ];
  const kargs = `${DEFAULT_KARGS.replace(VOLUME_ID, SYSTEM)} net.ifnames=0`;
  const user = await describeHost(files, await sumTree(join(work, 'medium/registry')));
  await graft({
    base,
    tree: join(work, 'host'),
    iso: host.iso,
    kargs,
    user,
    volumeId: SYSTEM,
    bootstrap: { ignition: { version: '3.2.0' } },
  });
  return host;
}

/**
 * The install configuration as it is on every medium and as the rendezvous host hands it on, and what
 * stands in for a disk and a cluster.
 */
async function describeHost(files: readonly object[], digest: Digest): Promise<object> {
  const rendered = renderInstallIgnition({
    ...bootstrapInput,
    createPinnedImageSets: false,
    crs: [],
    registryTree: { size: 60_000_000, digest },
  });
  const [from, to] = [RENDEZVOUS_PLACEHOLDER, 'NODE_ZERO_IP=10.0.2.15\n'].map((text) =>
    Buffer.from(text).toString('base64'),
  );
  const install = JSON.parse(
    JSON.stringify(rendered).replaceAll(from ?? '', to ?? ''),
  ) as typeof rendered;
  const scripts = await Promise.all(
    (await readdir(SCRIPTS)).map(async (name) =>
      fileEntry(`/usr/local/bin/${name}`, 0o755, await readFile(join(SCRIPTS, name), 'utf8')),
    ),
  );
  return {
    ...install,
    storage: { files: [...(install.storage?.files ?? []), ...scripts, ...files] },
    systemd: { units: [...(install.systemd?.units ?? []), ...UNITS] },
  };
}

async function sumTree(directory: string): Promise<Digest> {
  const files = 'find docker images -type f -exec sha256sum {} +';
  const script = `${files} | LC_ALL=C sort | sha256sum | cut -c -64`;
  const { stdout } = await runProcess('bash', ['-c', script], { cwd: directory });
  return digestFromHex(stdout.trim());
}

/** As the host would make it: it is slow in the guest, and not what is tested. */
async function makeCertificate(work: string): Promise<readonly [string, string]> {
  const [key, certificate] = [join(work, 'tls.key'), join(work, 'tls.crt')];
  const names = 'subjectAltName=DNS:localhost,DNS:registry.appliance.openshift.com';
  await runProcess('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-sha256', '-nodes', '-days', '365'],
    ...['-subj', '/CN=localhost', '-addext', names, '-keyout', key, '-out', certificate],
  ]);
  return [await readFile(key, 'utf8'), await readFile(certificate, 'utf8')];
}

/** Writes `medium.iso`: the registry tree of an appliance ISO, as a real registry and skopeo write it. */
export async function makeMedium(work: string): Promise<Digest> {
  const registry = await startRegistry(work);
  const tree = join(work, 'medium');
  let component: Digest;
  try {
    const push = { registry, work };
    component = await pushImage(nameImage('cli'), { ...push, target: 'openshift/release:cli' });
    await pushImage(REGISTRY_IMAGE, { ...push, target: 'openshift/release:docker-registry' });
    await mkdir(join(tree, 'registry/images'), { recursive: true });
    await runProcess('skopeo', [
      ...['copy', '--quiet', '--insecure-policy', '--src-tls-verify=false'],
      `docker://${registry.host}/openshift/release:docker-registry`,
      `dir:${join(tree, 'registry/images/registry')}`,
    ]);
  } finally {
    await registry.stop();
  }
  await cp(join(registry.directory, 'docker'), join(tree, 'registry/docker'), { recursive: true });
  const names = ['-R', '-V', 'rhcos-appliance-test'];
  await runProcess('genisoimage', ['-quiet', '-o', join(work, 'medium.iso'), ...names, tree]);
  return component;
}
