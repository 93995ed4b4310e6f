import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { INSTALLER } from '../support/installer-script.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { hasBrowser, openPage, startBrowser } from '../support/page.ts';
import { SENTINEL } from '../support/sentinel.ts';
import { API, PULL_SECRET, SSH_KEY, startService, type TestService } from '../support/service.ts';

const run = promisify(execFile);

/** The networks that the administrator types into forms, as another person would write them. */
const SITE = `kind: InfraEnv
metadata: {name: edge}
spec:
  cpuArchitecture: x86_64
  pullSecretRef: {name: pull-secret}
  nmStateConfigLabelSelector: {matchLabels: {agent-install.openshift.io/infraenv-id: ID}}
---
kind: NMStateConfig
metadata: {name: a, labels: {agent-install.openshift.io/infraenv-id: ID}}
spec:
  interfaces:
  - {name: nic1, macAddress: "00:50:56:00:00:01"}
  - {name: nic2, macAddress: "00:50:56:00:00:02"}
  config:
    interfaces:
    - {name: nic1, type: ethernet, state: up, ipv4: {enabled: false}, ipv6: {enabled: false}}
    - {name: nic2, type: ethernet, state: up, ipv4: {enabled: false}, ipv6: {enabled: false}}
    - name: bond0
      type: bond
      state: up
      link-aggregation: {mode: 802.3ad, options: {miimon: 100}, port: [nic1, nic2]}
      ipv4: {enabled: false}
      ipv6: {enabled: false}
    - name: bond0.100
      type: vlan
      state: up
      vlan: {base-iface: bond0, id: 100}
      ipv4: {enabled: true, dhcp: false, address: [{ip: 192.0.2.10, prefix-length: 24}]}
      ipv6: {enabled: false}
    routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: bond0.100}]}
    dns-resolver: {config: {server: [192.0.2.53, 192.0.2.54]}}
---
kind: NMStateConfig
metadata: {name: b, labels: {agent-install.openshift.io/infraenv-id: ID}}
spec:
  interfaces: [{name: nic1, macAddress: "00:50:56:00:00:03"}]
  config:
    interfaces:
    - name: nic1
      type: ethernet
      state: up
      ipv4: {enabled: true, dhcp: false, address: [{ip: 192.0.2.11, prefix-length: 24}]}
      ipv6: {enabled: false}
    routes: {config: [{destination: 0.0.0.0/0, next-hop-address: 192.0.2.1, next-hop-interface: nic1}]}
    dns-resolver: {config: {server: [192.0.2.53]}}
`;

describe.skipIf(!hasBrowser)('an administrator who never wrote YAML', () => {
  let world: LiveWorld;
  let service: TestService;
  let browser: Browser;
  let page: Page;
  let complaints: readonly string[];
  beforeAll(async () => {
    world = await createLiveWorld({ installer: INSTALLER });
    await world.writeConfig();
    const built = await world.run(
      ...['build', 'live-iso', '--set', 'build.ignition=installer'],
      ...['--output', 'store/appliance.iso'],
    );
    expect(built).toMatchObject({ exitCode: 0 });
    service = await startService({ stores: [join(world.directory, 'store')] });
    browser = await startBrowser();
    ({ page, complaints } = await openPage(browser, service.url));
  });
  afterAll(async () => {
    await browser.close();
    await service.close();
    await world.close();
  });

  const list = async (): Promise<readonly { readonly id: string }[]> =>
    JSON.parse((await service.call('GET', `${API}/v2/infra-envs`)).text) as { id: string }[];

  const press = (name: string) => page.getByRole('button', { name }).click();

  it('fills in forms, pastes a table, and downloads the ISO that customize makes of the values', async () => {
    await page.getByLabel('Name', { exact: true }).fill('edge');
    await page.locator('#ssh-key').fill(SSH_KEY);
    await page.locator('#pull-secret').fill(PULL_SECRET);
    await page.getByText('Proxy, time servers').click();
    await page.locator('#ntp-sources').fill('192.0.2.123');
    await page.getByText('Hosts and their networks').click();
    await page.locator('#kernel-arguments').fill('console=ttyS0');
    await press('Add a host');
    await page.locator('#host-1-1-mac').fill('0050.5600.0001');
    await press('Add a port');
    await page.locator('#host-1-2-mac').fill('005056-000002');
    await page.locator('#host-1-bond').selectOption('802.3ad');
    await page.locator('#host-1-vlan').fill('100');
    await page.locator('#host-1-address').fill('192.0.2.10');
    await page.locator('#host-1-prefix').fill('255.255.255.0');
    await page.locator('#host-1-gateway').fill('192.0.2.1');
    await page.locator('#host-1-dns').fill('192.0.2.53, 192.0.2.54');
    await press('Paste from a sheet');
    const header = 'Name\tMAC Address\tIP Address\tSubnet Mask\tGateway\tDNS\n';
    const row = 'esx2\t00-50-56-00-00-03\t192.0.2.11\t255.255.255.0\tgw\t192.0.2.53\n';
    await page.locator('#host-table').fill(header + row);
    await press('Take these hosts');
    await page.getByText('Row 2, Gateway: "gw" is not an IP address').waitFor();
    await page.locator('#host-table').fill(header + row.replace('gw', '192.0.2.1'));
    await press('Take these hosts');
    await page.getByText('Host 2: esx2').waitFor();
    await press('Create cluster');
    await page.getByText('Ready: download its ISO').waitFor();
    expect(await page.locator('#create-warnings').textContent()).toBe('');
    await press('Details of edge');
    const { size } = await stat(join(world.directory, 'store/appliance.iso'));
    await page.getByText(`(${size.toLocaleString('en')} bytes)`).waitFor();
    await page.getByText('rendezvous host 192.0.2.10, chosen from the hosts').waitFor();
    await expectCustomised('first.iso', ['--ntp', '192.0.2.123']);
    expect(complaints).toEqual([]);
  });

  it('sees what is on the ISO, if the controller takes it, and digests that the downloaded file has', async () => {
    const iso = join(world.directory, 'first.iso');
    const hex = createHash('sha256')
      .update(await readFile(iso))
      .digest('hex');
    await page.locator('.image .sha256').filter({ hasText: hex }).waitFor();
    expect(await page.locator('.image .release').textContent()).toMatch(
      /^OpenShift 4\.21\.3, with the installer, \d+ images, .*@sha256:[0-9a-f]{64}$/,
    );
    const { stdout } = await world.run('inspect', iso);
    const operators = [...stdout.matchAll(/^operator +(.*)$/gm)].map(([, each]) => each);
    expect(await page.locator('.image .operators').textContent()).toBe(
      operators.join('; ') || 'none',
    );
    const [, digest = ''] =
      /--medium-digest (\S+)$/.exec((await page.locator('.image .verify').textContent()) ?? '') ??
      [];
    expect(await world.run('verify', iso, '--medium-digest', digest)).toMatchObject({
      exitCode: 0,
    });
    const choose = async (controller: string): Promise<string | null> => {
      await page.getByLabel('Will my management controller take it?').selectOption(controller);
      return page.locator('.image .verdict').textContent();
    };
    expect(await choose('Dell iDRAC 8')).toMatch(/^It takes http:\S+\.iso \(\d\d characters;/);
    expect(await choose('OpenBMC')).toContain('it needs a URL with https://');
    await press('Details of edge');
    await page.locator('.image .release').waitFor({ state: 'hidden' });
  });

  it('changes the ISO later: what the form shows is what was given, and only changes are sent', async () => {
    const sent: unknown[] = [];
    page.on('request', (request) => {
      if (request.method() === 'PATCH') sent.push(request.postDataJSON());
    });
    await press('Edit edge');
    await page.getByRole('heading', { name: 'Edit edge' }).waitFor();
    expect(await page.locator('#host-1-bond').inputValue()).toBe('802.3ad');
    expect(await page.locator('#host-1-vlan').inputValue()).toBe('100');
    expect(await page.locator('#host-1-1-mac').inputValue()).toBe('00:50:56:00:00:01');
    expect(await page.locator('#host-2-address').inputValue()).toBe('192.0.2.11');
    await page.getByText('Host 2: esx2').waitFor();
    const rendezvous = page.locator('#rendezvous-ip');
    expect(await rendezvous.inputValue()).toBe('');
    expect(await rendezvous.getAttribute('placeholder')).toBe('chosen: 192.0.2.10');
    await page.locator('#ntp-sources').fill('192.0.2.99');
    await press('Save changes');
    await page.getByText('Saved: its ISO has a new URL').waitFor();
    expect(sent).toEqual([{ additional_ntp_sources: '192.0.2.99' }]);
    await expectCustomised('second.iso', ['--ntp', '192.0.2.99']);
    const { text } = await service.call('GET', `${API}/v2/clusters`);
    expect(JSON.parse(text)).toHaveLength(1);
  });

  it('sees YAML that the form cannot show as it is, and keeps it', async () => {
    const [infraEnv] = await list();
    const yaml =
      '# by hand\ninterfaces:\n- {name: br0, type: linux-bridge, bridge: {port: [{name: eth0}]}, ipv4: {enabled: true, dhcp: true}}\n';
    const map = [{ mac_address: '00:50:56:00:00:09', logical_nic_name: 'eth0' }];
    await service.call('PATCH', `${API}/v2/infra-envs/${infraEnv?.id ?? ''}`, {
      body: { static_network_config: [{ network_yaml: yaml, mac_interface_map: map }] },
    });
    await press('Edit edge');
    await page.getByText('The form cannot show this network, because of interfaces[0].').waitFor();
    expect(await page.locator('#host-1-yaml').inputValue()).toBe(yaml);
    await page.getByRole('tab', { name: 'Form' }).click();
    await page.getByText('It stays as it is in YAML.').waitFor();
    await page
      .locator('#host-1-yaml')
      .fill('interfaces: [{name: eth0, ipv4: {enabled: true, dhcp: true}}]');
    await page.getByRole('tab', { name: 'Form' }).focus();
    await page.keyboard.press('Enter');
    await page.locator('#host-1-method').waitFor();
    expect(await page.locator('#host-1-method').inputValue()).toBe('dhcp');
    await press('Cancel');
    await page.getByRole('heading', { name: 'New cluster' }).waitFor();
  });

  /** Downloads the ISO of the page, and requires the bytes of `sealift customize`. */
  async function expectCustomised(name: string, more: readonly string[]): Promise<void> {
    const at = (file: string): string => join(world.directory, file);
    const begun = page.waitForEvent('download');
    await press('Download ISO of edge');
    await (await begun).saveAs(at(name));
    await writeFile(at('secret.json'), PULL_SECRET);
    await writeFile(at('key.pub'), SSH_KEY);
    await writeFile(at('sentinel.ign'), SENTINEL);
    const [infraEnv] = await list();
    await writeFile(at('site.yaml'), SITE.replaceAll('ID', infraEnv?.id ?? ''));
    const customised = await world.run(
      ...['customize', 'store/appliance.iso', '--output', `own-${name}`],
      ...['--ssh-key', 'file:key.pub', '--pull-secret', 'file:secret.json'],
      ...['--infraenv', 'site.yaml', '--kargs-append', 'console=ttyS0'],
      ...['--ignition-override', 'sentinel.ign', ...more],
    );
    expect(customised).toMatchObject({ exitCode: 0 });
    await run('cmp', [at(name), at(`own-${name}`)]);
  }
});
