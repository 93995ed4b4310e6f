import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createComparer } from '../judges/find-judge.ts';
import { INSTALLER } from '../support/installer-script.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { type Answer, startService, type TestService } from '../support/service.ts';
import { requireTool } from '../support/tools.ts';
import { DIFFERENCES, WITHOUT_NMSTATE } from './differences.ts';

/* Owns the replay of recorded requests: answers of the real service, and what official clients send. */

const RECORDED = '../shared/data/judged/assisted';
const isRecorded = existsSync(join(RECORDED, 'requests.json'));

/** The judge served 4.21.0; the ISO of the tests is of another release. */
const SERVED = '4.21.3';

const read = (file: string): unknown =>
  JSON.parse(readFileSync(join(RECORDED, file), 'utf8').replaceAll('4.21.0', SERVED));

type Request = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
};

type Recorded = {
  readonly n: number;
  readonly name: string;
  readonly request: Request;
  readonly answer: { readonly status?: number | null; readonly body?: unknown } | null;
};

type Sent = Request & { readonly client: string; readonly call: string };

describe.skipIf(!isRecorded || !requireTool('xorriso'))('the service', () => {
  let world: LiveWorld;
  let service: TestService;
  beforeAll(async () => {
    world = await createLiveWorld({ installer: INSTALLER });
    await world.writeConfig();
    expect(
      await world.run(
        'build',
        'live-iso',
        '--ignition',
        'installer',
        '--output',
        'store/appliance.iso',
      ),
    ).toMatchObject({
      exitCode: 0,
    });
    service = await startService({ stores: [join(world.directory, 'store')] });
  }, 120_000);
  afterAll(async () => {
    await service.close();
    await world.close();
  });

  const send = ({ method, path, headers, body }: Request): Promise<Answer> =>
    service.call(method, path, {
      headers,
      // A body is sent with the recorded type, or with none.
      ...(body !== null && { raw: new Uint8Array(Buffer.from(body)) }),
    });

  it('answers recorded requests with the status and the words of the real one, but for listed differences', async () => {
    const ids = new Map<string, string>();
    const { requireAgreement, listUnused } = createComparer({ ...DIFFERENCES, ...WITHOUT_NMSTATE });
    const met: string[] = [];
    for (const { n, name, request, answer: theirs } of read('requests.json') as Recorded[]) {
      if (typeof theirs?.status !== 'number') continue; // not judged
      try {
        const ours = await send(corrected(n, fill(request, ids)));
        remember(ids, theirs.body, ours.body);
        const answer = { status: theirs.status, words: wordsOf(theirs.body) };
        const own = { status: ours.status, words: wordsOf(ours.body) };
        // A reason may follow the words.
        const agreed = own.status === answer.status && own.words.startsWith(answer.words);
        requireAgreement(`${n} ${name}`, agreed ? answer : own, answer);
      } catch (error) {
        met.push(String(error));
      }
    }
    expect(met, met.join('\n')).toEqual([]);
    expect(listUnused()).toEqual([]);
    expect(Object.keys(DIFFERENCES).length).toBeLessThanOrEqual(20);
  }, 120_000);

  it.each(['go', 'py', 'ui'])('answers every call as the client %s sends it', async (client) => {
    const ids = new Map<string, string>();
    const refused: unknown[] = [];
    for (const { call, ...request } of (read('clients.json') as Sent[]).filter(
      (each) => each.client === client,
    )) {
      const { status, body } = await send(fill(request, ids));
      if (status === 201 && body['kind'] === 'InfraEnv') {
        ids.set('{infra-env}', String(body['id']));
      } else if (status === 201) ids.set('{cluster}', String(body['id']));
      if (status >= 300) refused.push([call, status, wordsOf(body)]);
    }
    // As the real service does, but for the first.
    expect(refused, JSON.stringify(refused)).toEqual(
      client !== 'py'
        ? []
        : [
            [
              'v2_download_infra_env_files, ipxe-script',
              400,
              expect.stringContaining('its registry is read from the mounted ISO'),
            ],
            [
              'v2_register_host',
              400,
              'Cannot register a host to an InfraEnv with disconnected-iso type',
            ],
            ['v2_update_cluster', 409, expect.stringContaining('is in unmonitored state')],
          ],
    );
  });
});

/** One entry of the recording has the answer of another request: the list of clusters that it ended with. */
const corrected = (n: number, request: Request): Request =>
  n === 306 ? { ...request, method: 'GET', path: '/api/assisted-install/v2/clusters' } : request;

/** Replaces the ids of records, also those that are written in other ways. */
function fill(request: Request, ids: ReadonlyMap<string, string>): Request {
  const text = (value: string): string =>
    value.replaceAll(/(\{[a-z-]+(?:-\d+)?)(:upper|:nodash)?\}/g, (whole, name: string, form) => {
      const id = ids.get(`${name}}`) ?? whole;
      if (form === ':upper') return id.toUpperCase();
      return form === ':nodash' ? id.replaceAll('-', '') : id;
    });
  const { body, ...others } = request;
  return { ...others, path: text(request.path), body: body === null ? null : text(body) };
}

/** Remembers which of our ids belongs to a recorded one. */
function remember(ids: Map<string, string>, theirs: unknown, ours: Answer['body']): void {
  const { id } = (theirs ?? {}) as { readonly id?: unknown };
  if (typeof id === 'string' && !ids.has(id) && 'href' in ours) ids.set(id, String(ours['id']));
}

/**
 * The words of a refusal. Those of libraries are left out: libnmstate quotes the whole document, with its
 * passwords; of Ignition's report, the place stays. Of several reasons, the first is compared.
 */
function wordsOf(body: unknown): string {
  const { reason, message } = (body ?? {}) as {
    readonly reason?: string;
    readonly message?: string;
  };
  return (reason ?? message ?? '')
    .replace(/^\d+ errors? occurred:\n(\t\* [^\n]*).*/s, '$1')
    .replace(/(error report: (?:error at \$[\w.]*)?).*/s, '$1')
    .replace(/(failed to validate network yaml for host \d+, ).*/s, '$1')
    .replace(/(?<=but )\[[A-Z,]+\]/, (methods) => methods.slice(1, -1).split(',').sort().join())
    .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '{uuid}')
    .replaceAll(/\{cluster-\d+\}/g, '{uuid}');
}
