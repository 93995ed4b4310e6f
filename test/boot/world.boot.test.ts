import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProcess } from '../../src/base/process.ts';
import { buildBaseIso, DEFAULT_KARGS } from './base-iso.ts';
import { BOOT_CACHE, hasBootHost } from './boot-host.ts';
import { digestTree } from './digest-tree.ts';
import { fileEntry, graft } from './graft.ts';
import { nameImage, REGISTRY_IMAGE } from './images.ts';
import { boot, BOOT_FAILURES } from './qemu.ts';
import { pushImage, startRegistry, type Registry } from './registry.ts';

const SOURCE = 'quay.io/openshift-release-dev/ocp-v4.0-art-dev';

/**
 * The world itself, without our program: what the boot tests rest on is shown to hold for a medium
 * that xorriso and a hand-written config make.
 */
describe.skipIf(!hasBootHost())('the live system of the boot tests', () => {
  let work = '';
  let registry: Registry | undefined;
  let iso = '';

  beforeAll(async () => {
    work = await mkdtemp(join(tmpdir(), 'world-'));
    const base = await buildBaseIso(BOOT_CACHE);
    registry = await startRegistry(work);
    const push = { registry, work };
    const component = await pushImage(nameImage('cli'), {
      ...push,
      target: 'openshift/release:cli',
    });
    const additional = await pushImage(nameImage('ubi'), { ...push, target: 'ubi9/ubi:latest' });
    await pushImage(REGISTRY_IMAGE, { ...push, target: 'openshift/release:docker-registry' });
    const tree = join(work, 'tree');
    await mkdir(join(tree, 'registry/images'), { recursive: true });
    await runProcess('skopeo', [
      ...['copy', '--quiet', '--insecure-policy', '--src-tls-verify=false'],
      `docker://${registry.host}/openshift/release:docker-registry`,
      `dir:${join(tree, 'registry/images/registry')}`,
    ]);
    await registry.stop();
    await cp(join(registry.directory, 'docker'), join(tree, 'registry/docker'), {
      recursive: true,
    });
    iso = join(work, 'world.iso');
    const kargs = proofKargs(component, additional);
    await graft({ base, tree, iso, kargs, user: USER_CONFIG, bootstrap: BOOTSTRAP_CONFIG });
  });

  afterAll(async () => {
    await rm(work, { recursive: true, force: true });
  });

  it('applies both Ignition configs and serves pulls from the registry on the medium', async () => {
    const { lines } = await boot({
      iso,
      firmware: 'seabios',
      as: 'disk',
      timeoutMs: 480_000,
      until: /PROOF done/,
      fail: BOOT_FAILURES,
    });
    const proofs = lines.filter((line) => line.startsWith('PROOF')).join('\n');
    console.log(proofs);
    expect(proofs).toMatch(/PROOF ignition-user ok/);
    expect(proofs).toMatch(/PROOF ignition-base ok/);
    expect(proofs).toMatch(/PROOF agentdata ok .*iso9660/);
    expect(proofs).toMatch(/PROOF registry tls 22625 ok/);
    expect(proofs).toMatch(/PROOF pull component sha256:\S+ ok/);
    expect(proofs).toMatch(/PROOF pull additional sha256:\S+ ok/);
    expect(proofs).toMatch(/PROOF ssh key mode ok 600 core/);
    expect(proofs).toMatch(/PROOF pull-secret mode ok 600 root:root/);
    const [count, digest] = await digestTree(iso);
    expect(proofs).toContain(`PROOF tree ${count} ${digest}`);
  });
});

function proofKargs(component: string, additional: string): string {
  return [
    ...[
      DEFAULT_KARGS,
      'sealift.proof',
      'sealift.proof.only=ignition,agentdata,registry,pull,ssh,secret,tree',
    ],
    `sealift.proof.component=${SOURCE}@${component}`,
    `sealift.proof.additional=registry.access.redhat.com/ubi9/ubi@${additional}`,
  ].join(' ');
}

const USER_CONFIG = {
  ignition: { version: '3.2.0' },
  passwd: {
    users: [{ name: 'core', sshAuthorizedKeys: ['ssh-ed25519 AAAAtest core@example.com'] }],
  },
  storage: {
    files: [
      fileEntry(
        '/root/.docker/config.json',
        0o600,
        '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}',
      ),
    ],
  },
};

const REGISTRIES_CONF = `unqualified-search-registries = []

[[registry]]
  location = "${SOURCE}"
  prefix = ""

  [[registry.mirror]]
    location = "localhost:22625/openshift/release"

[[registry]]
  location = "registry.access.redhat.com/ubi9"
  prefix = ""

  [[registry.mirror]]
    location = "localhost:22625/ubi9"
`;

/** What a node does with the medium, in its shortest form. */
const SETUP = `#!/bin/bash
set -euo pipefail
mkdir -p /mnt/agentdata /etc/iri-registry/certs /etc/containers/certs.d/localhost:22625
mountpoint -q /mnt/agentdata || mount --bind /run/media/iso/registry /mnt/agentdata
mount -o remount,bind,ro /mnt/agentdata
id=$(podman pull -q dir:/mnt/agentdata/images/registry)
podman tag "$id" localhost/registry:latest
podman run --rm --privileged --net=host --user 0 --entrypoint openssl \\
  -v /etc/iri-registry/certs:/certs localhost/registry:latest \\
  req -x509 -newkey rsa:2048 -sha256 -nodes -days 365 -subj /CN=localhost \\
  -addext subjectAltName=DNS:localhost -keyout /certs/tls.key -out /certs/tls.crt
cp /etc/iri-registry/certs/tls.crt /etc/containers/certs.d/localhost:22625/
`;

const UNIT = `[Unit]
Description=Registry on the medium
[Service]
ExecStartPre=/usr/local/bin/setup.sh
ExecStart=/usr/bin/podman run --replace --name registry --privileged --net=host --log-driver=journald \\
  -v /mnt/agentdata/:/var/lib/registry:ro -v /etc/iri-registry/certs:/certs:ro --user 0 \\
  -e REGISTRY_HTTP_ADDR=0.0.0.0:22625 -e REGISTRY_HTTP_TLS_CERTIFICATE=/certs/tls.crt \\
  -e REGISTRY_HTTP_TLS_KEY=/certs/tls.key --entrypoint /usr/bin/distribution \\
  localhost/registry:latest serve /etc/registry/config.yaml
[Install]
WantedBy=multi-user.target
`;

const BOOTSTRAP_CONFIG = {
  ignition: { version: '3.2.0' },
  storage: {
    files: [
      fileEntry('/usr/local/bin/setup.sh', 0o555, SETUP),
      fileEntry('/etc/containers/registries.conf', 0o644, REGISTRIES_CONF),
    ],
  },
  systemd: { units: [{ name: 'start-local-registry.service', enabled: true, contents: UNIT }] },
};
