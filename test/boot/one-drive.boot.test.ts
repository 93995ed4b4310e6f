import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSealift } from '../support/child.ts';
import { hasBootHost } from './boot-host.ts';
import { JUDGED_LOADER } from './loader.ts';
import { shareLiveMedium } from './live-medium.ts';
import { boot, BOOT_FAILURES } from './qemu.ts';

/** A sheet of one site with two hosts; the second address is QEMU's own for the first interface. */
const SHEET = `name,domain,firstMac,mac,hostname,ip
site-7,edge.example.com,52:54:00:bb:00:01,52:54:00:12:34:56,master-7,192.168.111.80
`;

const INSTALL_CONFIG = `apiVersion: v1
baseDomain: "{{ domain }}"
metadata: {name: "{{ name }}"}
controlPlane: {name: master, replicas: 3}
compute: [{name: worker, replicas: 0}]
networking:
  networkType: OVNKubernetes
  machineNetwork: [{cidr: 192.168.111.0/24}]
  clusterNetwork: [{cidr: 10.128.0.0/14, hostPrefix: 23}]
  serviceNetwork: [172.30.0.0/16]
platform: {baremetal: {apiVIPs: [192.168.111.5], ingressVIPs: [192.168.111.6]}}
pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpwYXNz"}}}'
`;

const AGENT_CONFIG = `apiVersion: v1beta1
kind: AgentConfig
rendezvousIP: "{{ ip }}"
hosts:
- hostname: another-host
  role: master
  interfaces: [{name: eth0, macAddress: "{{ firstMac }}"}]
- hostname: "{{ hostname }}"
  role: master
  interfaces: [{name: eth0, macAddress: "{{ mac }}"}]
  networkConfig:
    interfaces:
    - name: eth0
      type: ethernet
      state: up
      ipv4: {enabled: true, dhcp: false, address: [{ip: "{{ ip }}", prefix-length: 24}]}
    routes:
      config:
      - {destination: 0.0.0.0/0, next-hop-address: 192.168.111.1, next-hop-interface: eth0}
`;

/** From the sheet to the image of its site, as a person would: the program alone. */
async function makeImage(work: string, medium: string): Promise<string> {
  const template = join(work, 'template');
  await mkdir(template);
  await writeFile(join(template, 'install-config.yaml'), INSTALL_CONFIG);
  await writeFile(join(template, 'agent-config.yaml'), AGENT_CONFIG);
  await writeFile(join(work, 'sheet.csv'), SHEET);
  await run(work, 'config-iso', 'build', 'sheet.csv', '--template', 'template', '--medium', medium);
  return join(work, 'config-isos/site-7.iso');
}

async function run(cwd: string, ...args: readonly string[]): Promise<void> {
  const { code, stderr } = await startSealift(args, { cwd }).ended;
  expect(code, stderr).toBe(0);
}

describe.skipIf(!hasBootHost())(
  'a host with one drive, and the image of its site inside the medium',
  () => {
    let work = '';
    let iso = '';
    beforeAll(async () => {
      work = await mkdtemp(join(tmpdir(), 'one-drive-'));
      const { waiting } = await shareLiveMedium(AbortSignal.timeout(1_500_000));
      const image = await makeImage(work, waiting);
      iso = join(work, 'one.iso');
      await run(work, 'customize', waiting, '--site', image, '--output', iso);
    });
    afterAll(() => rm(work, { recursive: true, force: true }));

    it.each([
      ['seabios', 'cdrom'],
      ['ovmf', 'cdrom'],
    ] as const)(
      'loads it with %s from a %s, and registers with the name that it has for its interface',
      async (firmware, as) => {
        const until = /PROOF registers/;
        const { lines, seconds } = await boot({ iso, firmware, as, until, fail: BOOT_FAILURES });
        console.log(`${firmware} ${as}: ${seconds.toFixed(0)} s`);
        const proofs = lines.filter((line) => line.startsWith('PROOF '));
        expect(proofs[0]).toBe('PROOF early name live');
        expect(proofs.at(-1)).toBe('PROOF registers as master-7 at http://192.168.111.80:8090/');
        const said = lines.join('\n');
        if (JUDGED_LOADER !== undefined) {
          expect(said).toMatch(/Successfully copied contents of config\.gz on \/dev\/loop\d+/);
          return;
        }
        expect(said).toMatch(
          /^PROOF mounted \/dev\/loop\d+ from \/run\/media\/iso\/sealift\/config-image\.img +1$/m,
        );
        expect(said).toMatch(/^PROOF loaded 21 files from \/dev\/loop\d+$/m);
      },
    );
  },
);
