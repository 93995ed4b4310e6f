import { join } from 'node:path';
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
  readonly sshKey: string;
  readonly pullSecret: string;
  readonly rendezvousIp?: string;
};

/** Creates a cluster on the page of a service, and downloads its ISO into a folder as a person does. */
export async function downloadThroughPage(
  url: string,
  values: PageValues,
  folder: string,
): Promise<string> {
  const browser = await startBrowser();
  try {
    const { page, complaints } = await openPage(browser, url);
    await page.getByLabel('Name', { exact: true }).fill(values.name);
    await page.getByLabel('SSH public key').fill(values.sshKey);
    await page.getByRole('textbox', { name: 'Pull secret' }).fill(values.pullSecret);
    if (values.rendezvousIp !== undefined) {
      await page.getByText('Hosts and their networks').click();
      await page.getByLabel('Rendezvous IP').fill(values.rendezvousIp);
    }
    await page.getByRole('button', { name: 'Create cluster' }).click();
    const begun = page.waitForEvent('download');
    await page.getByRole('button', { name: `Download ISO of ${values.name}` }).click();
    const download = await begun;
    const path = join(folder, download.suggestedFilename());
    await download.saveAs(path); // once it has ended
    if (complaints.length > 0) throw new Error(complaints.join('\n'));
    return path;
  } finally {
    await browser.close();
  }
}
