import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import axe from 'axe-core';
import { SignJWT } from 'jose';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import {
  createThroughPage,
  downloadThroughPage,
  hasBrowser,
  openPage,
  startBrowser,
} from '../support/page.ts';
import { API, PULL_SECRET, SSH_KEY, startService, type TestService } from '../support/service.ts';
import { requireTool } from '../support/tools.ts';

const run = promisify(execFile);
const hasJudges = ['xorriso', 'curl', 'cpio', 'sha256sum'].map(requireTool).every(Boolean);
const VALUES = { name: 'edge', sshKey: SSH_KEY, pullSecret: PULL_SECRET };
const SIZES = [
  { width: 320, height: 640 },
  { width: 1280, height: 900 },
] as const;

describe.skipIf(!hasBrowser || !hasJudges)('the page', () => {
  let world: LiveWorld;
  let service: TestService;
  let browser: Browser;
  let stores: readonly string[];
  beforeAll(async () => {
    world = await createLiveWorld();
    await world.writeConfig();
    const built = await world.run('build', 'live-iso', '--output', 'store/appliance.iso');
    expect(built).toMatchObject({ exitCode: 0 });
    stores = [join(world.directory, 'store')];
    service = await startService({ stores });
    browser = await startBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await service.close();
    await world.close();
  });

  const list = async (
    kind: 'clusters' | 'infra-envs',
  ): Promise<readonly Record<string, string>[]> =>
    JSON.parse((await service.call('GET', `${API}/v2/${kind}`)).text) as Record<string, string>[];

  it('creates, copies, downloads and deletes by keyboard, and the ISO has the bytes of the URL', async () => {
    const { page, complaints } = await openPage(browser, service.url);
    const { keyboard } = page;
    await tabTo(page, 'Name');
    await keyboard.type('edge');
    await tabTo(page, 'OpenShift version');
    await tabTo(page, 'SSH public key optional');
    await keyboard.type(SSH_KEY);
    await tabTo(page, 'Pull secret');
    await keyboard.type(PULL_SECRET);
    await tabTo(page, 'Create cluster');
    await keyboard.press('Enter');
    await isFocused(page, 'Download ISO of edge');
    await tabTo(page, 'Copy URL of edge');
    await keyboard.press('Space');
    await page.getByText('The URL is copied.').waitFor();
    const url = await page.evaluate<string>('navigator.clipboard.readText()');
    await keyboard.press('Shift+Tab');
    const begun = page.waitForEvent('download');
    await keyboard.press('Enter');
    const download = await begun;
    expect(download.suggestedFilename()).toBe('edge-4.21.3-x86_64.iso');
    const [ours, theirs] = [await download.path(), join(world.directory, 'by-curl.iso')];
    await run('curl', ['-sSf', '-o', theirs, url]);
    const { stdout } = await run('sha256sum', [ours, theirs]);
    const [first, second] = stdout.split('\n').map((line) => line.split(' ')[0]);
    expect(first).toBe(second);
    expect(await readConfig(ours)).toContain(SSH_KEY);

    await tabTo(page, 'Delete edge');
    await keyboard.press('Enter');
    await isFocused(page, 'Cancel');
    await keyboard.press('Escape');
    await isFocused(page, 'Delete edge');
    expect(await list('infra-envs')).toHaveLength(1);
    await keyboard.press('Enter');
    await isFocused(page, 'Cancel');
    await keyboard.press('Shift+Tab');
    await keyboard.press('Enter');
    await page.getByText('There are no clusters yet.').waitFor();
    expect([await list('clusters'), await list('infra-envs')]).toEqual([[], []]);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('has no fault that axe-core finds, and nothing wider than the window, in any state', async () => {
    const { page, complaints } = await openPage(browser, service.url);
    await page.evaluate(axe.source);
    await page.getByText('There are no clusters yet.').waitFor();
    await isSound(page, 'the empty list');
    await page.getByRole('button', { name: 'Create cluster' }).click();
    await page.getByText('Proxy, time servers').click();
    await page.getByText('Hosts and their networks').click();
    await page.getByRole('button', { name: 'Add a host' }).click();
    await page.getByText('2 fields need attention.').waitFor();
    await page.getByText('IPv6, search domains, MTU').click();
    await page.getByRole('button', { name: 'Add a port' }).click();
    await isSound(page, 'a form with errors');
    await page.getByRole('tab', { name: 'YAML' }).click();
    await isSound(page, 'a host in YAML');
    await page.getByRole('button', { name: 'Paste from a sheet' }).click();
    await page.locator('#host-table').fill('mac\tgatway\n1\t2');
    await page.getByRole('button', { name: 'Take these hosts' }).click();
    await page.getByText('did you mean "gateway"?').waitFor();
    await isSound(page, 'a table with a problem');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('button', { name: 'Remove this host: 1' }).click();
    for (const name of ['edge', 'nobreak'.repeat(7)]) {
      await createThroughPage(page, { ...VALUES, name });
    }
    await isSound(page, 'a list of two');
    await page.getByRole('button', { name: 'Details of edge' }).click();
    await page
      .locator('.sha256')
      .filter({ hasText: /^[0-9a-f]{64}$/ })
      .waitFor();
    await isSound(page, 'the details of an image');
    await page.evaluate('navigator.clipboard.writeText = () => Promise.reject(new Error())');
    await page.getByRole('button', { name: 'Copy URL of edge' }).click();
    await page.getByRole('dialog', { name: 'URL of the ISO' }).waitFor();
    expect(await page.locator('#url').inputValue()).toMatch(
      /\/i\/[\w-]{32}\/1\/edge-4\.21\.3-x86_64\.iso$/,
    );
    await isSound(page, 'the URL to copy by hand');
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Delete edge' }).click();
    await isSound(page, 'the dialog');
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('button', { name: 'Delete edge' }).waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('puts the networks of several hosts and a secret from a file into the InfraEnv', async () => {
    const { page, complaints } = await openPage(browser, service.url);
    const file = join(world.directory, 'pull-secret.txt');
    await writeFile(file, PULL_SECRET);
    await page.route('**/openshift-versions', (route) =>
      route.fulfill({
        json: {
          '4.21.3': { cpu_architectures: ['aarch64', 'x86_64'], default: true },
          '4.20.9': { cpu_architectures: ['aarch64'], default: false },
        },
      }),
    );
    await page.route('**/sealift/contents?*aarch64*', (route) =>
      route.fulfill({ json: { openshift_version: '4.21.3', size_bytes: 1, has_agents: true } }),
    );
    await page.reload();
    await page.getByLabel('CPU architecture').selectOption('x86_64');
    await page.locator('#pull-secret-file').setInputFiles(file);
    await page.getByText('Filled in from pull-secret.txt.').waitFor();
    await createThroughPage(page, {
      name: '<img src=x>',
      pullSecret: await page.locator('#pull-secret').inputValue(),
      httpProxy: 'http://proxy.example:3128',
      noProxy: '.example, 192.0.2.0/24',
      ntpSources: '192.0.2.1, ntp.example',
      kernelArguments: ['console=ttyS0', 'quiet'],
      hosts: [1, 2].map((host) => ({
        yaml: `interfaces: [{ name: eth${host}, ipv4: { enabled: true, address: [{ ip: 192.0.2.1${host}, prefix-length: 24 }] } }]`,
        mac: `52:54:00:00:00:0${host}`,
        interface: `eth${host}`,
      })),
    });
    const infraEnv = (await list('infra-envs')).find(({ name }) => name === '<img src=x>');
    expect(infraEnv).toMatchObject({
      proxy: { http_proxy: 'http://proxy.example:3128', no_proxy: '.example,192.0.2.0/24' },
      additional_ntp_sources: '192.0.2.1, ntp.example',
      cpu_architecture: 'x86_64',
      kernel_arguments: JSON.stringify(
        ['console=ttyS0', 'quiet'].map((value) => ({ operation: 'append', value })),
      ),
    });
    expect(await page.locator('#create-warnings').textContent()).toContain(
      'with warnings: host 1: there is no default route',
    );
    const networks = JSON.parse(infraEnv?.['static_network_config'] ?? '') as object[];
    expect(networks).toMatchObject(
      [1, 2].map((host) => ({
        mac_interface_map: [
          { mac_address: `52:54:00:00:00:0${host}`, logical_nic_name: `eth${host}` },
        ],
      })),
    );
    expect(await page.locator('#pull-secret').inputValue()).toBe('');
    expect(await readStored(page)).toBe('');
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('shows all problems at once, each next to its field, and creates nothing until they are solved', async () => {
    const before = await list('clusters');
    const { page } = await openPage(browser, service.url);
    const create = () => page.getByRole('button', { name: 'Create cluster' }).click();
    const errorOf = (id: string): Promise<string | null> =>
      page.locator(`#${id}-error`).textContent({ timeout: 20_000 });
    await page.getByLabel('Name', { exact: true }).fill('n'.repeat(55));
    await page.locator('#pull-secret').fill('{\n  "auths": {\n  },\n}');
    await page.locator('#ssh-key').fill('-----BEGIN OPENSSH PRIVATE KEY-----');
    await page.getByText('Proxy, time servers').click();
    await page.locator('#https-proxy').fill('proxy:3128');
    await page.locator('#ntp-sources').fill('a b');
    await page.getByText('Hosts and their networks').click();
    await page.locator('#rendezvous-ip').fill('here');
    await page.locator('#kernel-arguments').fill('quiet\n\na b');
    await page.getByRole('button', { name: 'Add a host' }).click();
    await page.locator('#host-1-1-mac').fill('52:54');
    await page.locator('#host-1-address').fill('192.0.2.300');
    await page.locator('#host-1-prefix').fill('255.255.0.255');
    await page.locator('#host-1-gateway').fill('gw');
    await page.getByRole('button', { name: 'Add a host' }).click();
    await page.getByRole('tab', { name: 'YAML' }).nth(1).click();
    await page.locator('#host-2-1-mac').fill('52-54-00-00-00-02');
    await page.locator('#host-2-1-interface').fill('eth0');
    await page.locator('#host-2-yaml').fill('interfaces:\n  - name: eth0\n    mtu: [');
    await create();
    await page.getByText(/fields need attention/).waitFor();
    const found: Readonly<Record<string, RegExp>> = {
      'name': /54/,
      'pull-secret': /^Line 4, column 1: pull secret must be a well-formed JSON\.$/,
      'ssh-key': /^This is a private key; give the public key\.$/,
      'https-proxy': /scheme must be http/,
      'ntp-sources': /a b/,
      'rendezvous-ip': /^This is not an IPv4 or IPv6 address\.$/,
      'kernel-arguments': /^Line 3, column 1: /,
      'host-1-1-interface': /^Enter the name that the port has on the host, such as eno1\.$/,
      'host-1-1-mac': /^This is not a MAC address; write it as /,
      'host-1-address': /^"192\.0\.2\.300" is not an IP address\.$/,
      'host-1-prefix': /^"255\.255\.0\.255" is not a subnet mask\.$/,
      'host-1-gateway': /^"gw" is not an IP address\.$/,
      'host-2-yaml': /^Line 3, column 11: is not YAML: /,
    };
    for (const [id, message] of Object.entries(found)) expect(await errorOf(id)).toMatch(message);
    await isFocused(page, 'Name');
    expect(await list('clusters')).toEqual(before);

    await page.getByRole('button', { name: 'Remove this host: 2' }).click();
    await page.getByRole('button', { name: 'Remove this host: 1' }).click();
    for (const id of ['ssh-key', 'https-proxy', 'ntp-sources', 'kernel-arguments']) {
      await page.locator(`#${id}`).fill('');
    }
    await page.getByLabel('Name', { exact: true }).fill('refused');
    await page.locator('#pull-secret').fill(PULL_SECRET);
    // The medium has no agents that would read it.
    await page.locator('#rendezvous-ip').fill('192.0.2.1');
    await create();
    await page.getByText('One field needs attention.').waitFor();
    expect(await errorOf('rendezvous-ip')).toContain('has no effect on this ISO');
    expect(await list('clusters')).toEqual(before);

    await page.locator('#rendezvous-ip').fill('');
    await page.route('**/infra-envs', (route) =>
      route.request().method() === 'POST'
        ? route.fulfill({ status: 502, body: '<p>' })
        : route.continue(),
    );
    await create();
    await page.getByText('The server answered with status 502.').waitFor();
    expect(await list('clusters')).toEqual(before);
    await page.route('**/openshift-versions', (route) => route.fulfill({ json: {} }));
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('This server has no release yet').waitFor();
    await page.route('**/*', (route) => route.abort());
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('The server does not answer').waitFor();
    expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('refused');
    await page.context().close();
  });

  it('makes up no names of ports on an ISO without the installer, and takes those of a pasted table', async () => {
    const { page } = await openPage(browser, service.url);
    await page.getByLabel('Name', { exact: true }).fill('named-ports');
    await page.locator('#pull-secret').fill(PULL_SECRET);
    await page.getByText('Hosts and their networks').click();
    await page.getByText('name each port as the host itself does').waitFor();
    await page.getByRole('button', { name: 'Paste from a sheet' }).click();
    const rows = ['mac\tinterface\tip\tprefix', '52:54:00:00:00:01\tens192\t192.0.2.10\t24'];
    await page.locator('#host-table').fill(rows.join('\n'));
    await page.getByRole('button', { name: 'Take these hosts' }).click();
    expect(await page.locator('#host-1-1-interface').inputValue()).toBe('ens192');
    await page.getByRole('button', { name: 'Create cluster' }).click();
    await page.getByRole('button', { name: 'Download ISO of named-ports' }).waitFor();
    const made = (await list('infra-envs')).find(({ name }) => name === 'named-ports');
    const network = made?.['static_network_config'] ?? '';
    expect(network).toContain('"logical_nic_name":"ens192"');
    expect(network).not.toContain('nic1');
    expect(made).not.toHaveProperty('rendezvous_ip');
    const facts = page.locator('.row', { hasText: 'named-ports' }).locator('.facts');
    expect(await facts.textContent()).not.toMatch(/rendezvous|static address/);
    await page.context().close();
  });

  it('shows the records of every page of a list', async () => {
    const { page } = await openPage(browser, service.url);
    await createThroughPage(page, { ...VALUES, name: 'second-page' });
    const link = '</behind/a/proxy/api/assisted-install/v2/infra-envs?after=0>; rel="next"';
    await page.route(/v2\/infra-envs$/, (route) =>
      route.fulfill({ json: [], headers: { Link: link } }),
    );
    await page.reload();
    await page.getByRole('button', { name: 'Download ISO of second-page' }).waitFor();
    await page.context().close();
  });

  it('asks for a token if there is authentication, and puts it into no URL and no storage', async () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519');
    const keys = String(publicKey.export({ type: 'spki', format: 'pem' }));
    const guarded = await startService({ stores, auth: { type: 'local', keys } });
    const sign = (time: string): Promise<string> =>
      new SignJWT({ sub: 'alice' })
        .setProtectedHeader({ alg: 'EdDSA' })
        .setExpirationTime(time)
        .sign(privateKey);
    const token = await sign('1h');
    const { page } = await openPage(browser, guarded.url);
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    const signIn = async (text: string): Promise<void> => {
      await page.getByLabel('Bearer token').fill(text);
      await page.getByRole('button', { name: 'Sign in' }).click();
    };
    await signIn(await sign('-1h'));
    await page.getByText('The token has expired.').waitFor();
    await isFocused(page, 'Bearer token');
    await signIn(`Bearer ${token}`);
    await isFocused(page, 'Name');
    await createThroughPage(page, { ...VALUES, name: 'guarded' });
    const begun = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download ISO of guarded' }).click();
    const download = await begun;
    expect(new URL(download.url()).pathname).toMatch(/^\/i\/[\w-]{32}\/1\/guarded-4/);
    expect(await readConfig(await download.path())).toContain(SSH_KEY);
    expect(asked.join('\n')).not.toContain(token);
    expect(await readStored(page)).toBe('');
    expect(await page.content()).not.toContain(token);
    const isForgotten = async (): Promise<void> => {
      await page.getByLabel('Bearer token').waitFor();
      expect(await page.getByRole('listitem').count()).toBe(0);
      expect(await page.getByLabel('Bearer token').inputValue()).toBe('');
    };
    await page.getByRole('button', { name: 'Sign out' }).click();
    await isForgotten();
    await signIn(token);
    await page.getByText('guarded').waitFor();
    await page.reload();
    await isForgotten();
    await page.context().close();
    await guarded.close();
  });

  it('is sent with headers that let a browser run nothing else, and is not sent twice', async () => {
    const curl = async (path: string, ...args: string[]): Promise<string> =>
      (await run('curl', ['-sS', '-D', '-', '--path-as-is', ...args, service.url + path])).stdout;
    const page = await curl('/');
    expect(page).toMatch(/^HTTP\/1.1 200/);
    expect(page).not.toMatch(
      /<script(?! type="module" src=)|<style|\son\w+=|\sstyle=|https?:\/\/(?!proxy\.example)/i,
    );
    for (const [, path = ''] of page.matchAll(/(?:src|href)="(page\/[^"]+)"/g)) {
      const file = await curl(`/${path}`);
      expect(file).toMatch(/^content-security-policy: default-src 'none'; script-src 'self';/im);
      expect(file).toMatch(/^x-content-type-options: nosniff\r$/im);
      expect(file).toMatch(/^referrer-policy: no-referrer\r$/im);
      expect(file).toMatch(/^cache-control: no-cache\r$/im);
      const [, etag = ''] = /^etag: (\S+)\r$/im.exec(file) ?? [];
      expect(await curl(`/${path}`, '-H', `If-None-Match: ${etag}`)).toMatch(/^HTTP\/1.1 304/);
    }
    for (const path of [
      '/page/tsconfig.json',
      '/page/..%2f..%2fpackage.json',
      '/page/../package.json',
      '/page/',
    ]) {
      expect(await curl(path)).toMatch(/^HTTP\/1.1 404/);
    }
  });

  it('can be driven by other tests: one call downloads an ISO through it', async () => {
    const iso = join(world.directory, 'by-call.iso');
    const { url } = await downloadThroughPage(service.url, VALUES, iso);
    const { stdout } = await run('sh', ['-c', 'curl -sSf "$0" | cmp - "$1"', url, iso]);
    expect(stdout).toBe('');
    expect(await readConfig(iso)).toContain(SSH_KEY);
  });
});

/** Presses Tab until an element of that name has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  for (let i = 0; i < 40; i++) {
    await page.keyboard.press('Tab');
    if ((await nameFocused(page)) === name) return;
  }
  throw new Error(`Tab does not come to ${name}`);
}

const isFocused = (page: Page, name: string): Promise<unknown> =>
  expect.poll(() => nameFocused(page), { timeout: 60_000 }).toBe(name);

const nameFocused = (page: Page): Promise<string> =>
  page.evaluate(`(() => {
    const focused = document.activeElement;
    const text = focused.getAttribute('aria-label') ?? focused.labels?.[0]?.innerText ?? focused.innerText;
    return text.trim();
  })()`);

/** A placeholder is a name for axe-core; here each field has a label that can be seen. */
const FIND = `(async () => {
  const { violations } = await axe.run({ resultTypes: ['violations'] });
  const found = violations.map(({ id, nodes }) =>
    [id, ...nodes.map(({ html, failureSummary }) => html + failureSummary)]);
  const fields = [...document.querySelectorAll('input, select, textarea')];
  const unnamed = fields.filter(({ labels }) => labels.length === 0).map(({ id }) => id);
  return { faults: [...found, ...unnamed], width: document.documentElement.scrollWidth };
})()`;

async function isSound(page: Page, state: string): Promise<void> {
  for (const viewport of SIZES) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      const { faults, width } = await page.evaluate<{ faults: unknown[]; width: number }>(FIND);
      const where = `${state}, ${viewport.width} px, ${colorScheme}`;
      expect(faults, where).toEqual([]);
      expect(width, where).toBe(viewport.width);
    }
  }
}

const readStored = (page: Page): Promise<string> =>
  page.evaluate(
    `JSON.stringify([localStorage, sessionStorage]).replaceAll(/[[\\]{},]/g, '') + document.cookie`,
  );

/** The Ignition config of an ISO. */
async function readConfig(iso: string): Promise<string> {
  const area = `${iso}.area`;
  await run('xorriso', ['-osirrox', 'on', '-indev', iso, '-extract', '/images/ignition.img', area]);
  const unpack = `gzip -dc ${area} 2>/dev/null | cpio -i --to-stdout --quiet config.ign`;
  return (await run('sh', ['-c', unpack])).stdout;
}
