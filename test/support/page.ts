import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { requireTool } from './tools.ts';

export const hasBrowser = requireTool('chromium');

/** Debian's. */
export const startBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu'],
  });

/** A page of the service, and what it should not have done. */
export type OpenPage = {
  readonly page: Page;
  /** Errors in the console, exceptions, and requests to other places. */
  readonly complaints: readonly string[];
};

export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<OpenPage> {
  const context = await browser.newContext({
    permissions: ['clipboard-read', 'clipboard-write'],
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== new URL(url).origin) complaints.push(request.url());
  });
  await page.goto(url);
  return { page, complaints };
}

/** What is typed into the form. */
export type PageValues = {
  readonly name: string;
  readonly pullSecret: string;
  readonly sshKey?: string;
  readonly httpProxy?: string;
  readonly httpsProxy?: string;
  /** Separated by commas, as the time servers. */
  readonly noProxy?: string;
  readonly ntpSources?: string;
  readonly rendezvousIp?: string;
  readonly kernelArguments?: readonly string[];
  /** With one interface each. */
  readonly hosts?: readonly {
    readonly yaml: string;
    readonly mac: string;
    readonly interface: string;
  }[];
};

/** Types them, and creates the cluster. */
export async function createThroughPage(page: Page, values: PageValues): Promise<void> {
  await page.evaluate(`for (const each of document.querySelectorAll('details')) each.open = true`);
  const fields = {
    'name': values.name,
    'ssh-key': values.sshKey,
    'pull-secret': values.pullSecret,
    'http-proxy': values.httpProxy,
    'https-proxy': values.httpsProxy,
    'no-proxy': values.noProxy,
    'ntp-sources': values.ntpSources,
    'rendezvous-ip': values.rendezvousIp,
    'kernel-arguments': values.kernelArguments?.join('\n'),
  };
  for (const [id, value] of Object.entries(fields)) {
    if (value !== undefined) await page.locator(`#${id}`).fill(value);
  }
  for (const [i, host] of (values.hosts ?? []).entries()) {
    await page.getByRole('button', { name: 'Add a host' }).click();
    await page.getByRole('tab', { name: 'YAML' }).nth(i).click();
    await page.locator(`#host-${i + 1}-yaml`).fill(host.yaml);
    await page.locator(`#host-${i + 1}-1-mac`).fill(host.mac);
    await page.locator(`#host-${i + 1}-1-interface`).fill(host.interface);
  }
  await page.getByRole('button', { name: 'Create cluster' }).click();
  await page.getByRole('button', { name: `Download ISO of ${values.name}` }).waitFor();
}

/** Creates a cluster on the page of a service, and downloads its ISO as a person does. */
export async function downloadThroughPage(
  url: string,
  values: PageValues,
  path: string,
): Promise<{ readonly url: string }> {
  const browser = await startBrowser();
  try {
    const { page, complaints } = await openPage(browser, url);
    await createThroughPage(page, values);
    const begun = page.waitForEvent('download');
    await page.getByRole('button', { name: `Download ISO of ${values.name}` }).click();
    const download = await begun;
    await download.saveAs(path); // once it has ended
    if (complaints.length > 0) throw new Error(complaints.join('\n'));
    return { url: download.url() };
  } finally {
    await browser.close();
  }
}
