import { cp, mkdir, mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { digestFromHex, hexOf, type Digest } from '../../src/base/digest.ts';
import { runProcess } from '../../src/base/process.ts';
import { renderInstallIgnition } from '../../src/openshift/node/install-ignition.ts';
import { bootstrapInput } from '../support/node-configs.ts';
import { buildBaseIso, DEFAULT_KARGS } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';
import { fileEntry, graft } from './graft.ts';
import { nameImage, REGISTRY_IMAGE } from './images.ts';
import { boot, BOOT_FAILURES } from './qemu.ts';
import { pushImage, startRegistry } from './registry.ts';

/** The reserve of 10 GiB and more; sparse. */
const DISK_SIZE = 12 * 1024 ** 3;

/**
 * A host whose system does not come from the appliance ISO: a live system without a registry, with
 * the configuration of installed hosts, and a disk at /var/lib that outlives a boot. The live
 * system's own label is that of an appliance ISO, so one of these units attaches the right one.
 */
const HOST_DISK = `#!/bin/bash
set -euo pipefail
umount --lazy /run/media/iso
mkdir -p /run/disk
mount -t ext4 /dev/vdb /run/disk
[[ -e /run/disk/containers ]] || cp -a /var/lib/. /run/disk/
umount /run/disk
mount -t ext4 /dev/vdb /var/lib
if [[ -b /dev/vdc ]]; then mount -t iso9660 -o ro /dev/vdc /run/media/iso; fi
`;

const PROOF = `#!/bin/bash
set -uo pipefail
say() { printf '\\nPROOF %s\\n' "$*" >/dev/console; }
get() {
  curl -fsS --max-time 10 --cacert /etc/iri-registry/certs/tls.crt \\
    -H 'Accept: application/vnd.oci.image.manifest.v1+json' "https://localhost:22625$1"
}
wait_for() {
  local limit=$((SECONDS + 800))
  until "$@" >/dev/null 2>&1; do
    if ((SECONDS >= limit)); then
      journalctl --no-pager -o cat -u start-local-registry -u copy-registry-data -n 40 >/dev/console
      say "FAILED $*"
      exit 1
    fi
    sleep 0.5
  done
}
is_free_of_medium() {
  [[ /var/lib/appliance-registry -ef /mnt/agentdata ]] && ! mountpoint -q /run/media/iso
}
digest=$(cat /etc/proof-digest)
say "medium: $(test -b /dev/vdc && echo attached || echo none)"
wait_for get /v2/
say "answers from $(findmnt -no SOURCE /mnt/agentdata | tail -n 1)"
wait_for is_free_of_medium
wait_for get /v2/
say "manifest $(get "/v2/openshift/release/manifests/$digest" | sha256sum | cut -c -64)"
sync
say done
`;

const unit = (name: string, contents: string): object => ({ name, enabled: true, contents });

const UNITS = [
  unit(
    'host-disk.service',
    `[Unit]
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target systemd-tmpfiles-setup.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/bin/host-disk
[Install]
WantedBy=sysinit.target
`,
  ),
  unit(
    'proof.service',
    `[Service]
ExecStart=/usr/local/bin/proof
[Install]
WantedBy=multi-user.target
`,
  ),
];

describe.skipIf(!hasBootHost())('an installed host', () => {
  let work = '';
  let component: Digest = 'sha256:';
  const at = (name: string): string => join(work, name);

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'installed-host-'));
    const base = await buildBaseIso(BOOT_CACHE);
    component = await makeMedium(work);
    await writeFile(at('disk'), '');
    await truncate(at('disk'), DISK_SIZE);
    await runProcess('mkfs.ext4', ['-q', '-F', at('disk')]);
    const user = await describeHost(work, component);
    await graft({
      ...{ base, tree: at('host'), iso: at('host.iso'), kargs: DEFAULT_KARGS, user },
      bootstrap: { ignition: { version: '3.2.0' } },
    });
  }, 600_000);

  afterAll(() => rm(work, { recursive: true, force: true }));

  /** Ends the guest as a power cut does. */
  async function bootHost(isMediumAttached: boolean): Promise<string> {
    const disk = { path: at('disk'), readonly: false };
    const medium = { path: at('medium.iso'), readonly: true };
    const { lines, seconds } = await boot({
      ...{ iso: at('host.iso'), firmware: 'seabios', as: 'disk', timeoutMs: 900_000 },
      disks: isMediumAttached ? [disk, medium] : [disk],
      ...{ until: /PROOF done/, fail: BOOT_FAILURES },
    });
    const told = lines.filter((line) => /PROOF |registry data: /.test(line)).join('\n');
    console.log(`${seconds.toFixed(0)} s\n${told}`);
    return told;
  }

  it('copies the registry of the appliance ISO, and serves it after the next boot without the ISO', async () => {
    const first = await bootHost(true);
    expect(first).toContain('PROOF medium: attached');
    expect(first).toContain('is complete: the appliance ISO is no longer needed');
    expect(first).toContain(`PROOF manifest ${hexOf(component)}`);
    const second = await bootHost(false);
    expect(second).toContain('PROOF medium: none');
    expect(second).toContain('PROOF answers from /dev/vdb[/appliance-registry]');
    expect(second).not.toContain('registry data: copying');
    expect(second).toContain(`PROOF manifest ${hexOf(component)}`);
  });
});

/** The registry tree of an ISO, as a real registry and skopeo write it. */
async function makeMedium(work: string): Promise<Digest> {
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

async function sumTree(directory: string): Promise<Digest> {
  const files = 'find docker images -type f -exec sha256sum {} +';
  const script = `${files} | LC_ALL=C sort | sha256sum | cut -c -64`;
  const { stdout } = await runProcess('bash', ['-c', script], { cwd: directory });
  return digestFromHex(stdout.trim());
}

/** The install configuration as it is on every medium, and what stands in for a disk and for udev. */
async function describeHost(work: string, component: Digest): Promise<object> {
  const install = renderInstallIgnition({
    ...{ ...bootstrapInput, createPinnedImageSets: false, crs: [] },
    registryTree: { size: 60_000_000, digest: await sumTree(join(work, 'medium/registry')) },
  });
  const [key, certificate] = await makeCertificate(work);
  return {
    ...install,
    storage: {
      files: [
        ...(install.storage?.files ?? []),
        fileEntry('/usr/local/bin/host-disk', 0o755, HOST_DISK),
        fileEntry('/usr/local/bin/proof', 0o755, PROOF),
        fileEntry('/etc/proof-digest', 0o644, component),
        fileEntry('/etc/iri-registry/certs/tls.key', 0o600, key),
        fileEntry('/etc/iri-registry/certs/tls.crt', 0o644, certificate),
      ],
    },
    systemd: { units: [...(install.systemd?.units ?? []), ...UNITS] },
  };
}

/** As the host would make it: it is slow in the guest, and not what is tested. */
async function makeCertificate(work: string): Promise<readonly [string, string]> {
  const [key, certificate] = [join(work, 'tls.key'), join(work, 'tls.crt')];
  await runProcess('openssl', [
    ...['req', '-x509', '-newkey', 'rsa:2048', '-sha256', '-nodes', '-days', '365'],
    ...['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'],
    ...['-keyout', key, '-out', certificate],
  ]);
  return [await readFile(key, 'utf8'), await readFile(certificate, 'utf8')];
}
