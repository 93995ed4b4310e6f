import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { OUTPUT_STAGES } from '../../../src/cli/terminal/meters.ts';
import { createContinuation } from '../../../src/cli/terminal/progress.ts';

const progress = { type: 'stage-progress', bytes: 3 << 20, total: 40 << 20 } as const;

describe('the hint of an interruption', () => {
  it('is absent before work that can be continued begins, and after it ends', () => {
    const continuation = createContinuation();
    expect(continuation.describe()).toBeUndefined();
    continuation.begin();
    expect(continuation.describe()).toBe('run the same command to continue');
    continuation.end();
    expect(continuation.describe()).toBeUndefined();
  });

  it('says how many bytes of the output are there', () => {
    const continuation = createContinuation();
    continuation.begin();
    continuation.listener({ ...progress, stage: 'pour ISO' });
    continuation.listener({ ...progress, stage: 'fetch base ISO', bytes: 1 });
    expect(continuation.describe()).toBe(
      '3.0 MiB of 40.0 MiB are written; run the same command to continue',
    );
  });

  it('says how many sites are made', () => {
    const continuation = createContinuation();
    continuation.begin();
    const items = { done: 3, total: 12, name: 'sites' };
    continuation.listener({ type: 'stage-progress', stage: 'make ISOs', bytes: 0, items });
    expect(continuation.describe()).toBe(
      '3 of 12 sites are made; run the same command to continue',
    );
  });

  it('forgets the amounts of earlier work', () => {
    const continuation = createContinuation();
    continuation.begin();
    continuation.listener({ ...progress, stage: 'make delta' });
    continuation.begin();
    expect(continuation.describe()).toBe('run the same command to continue');
  });

  it('knows stages that exist', () => {
    const src = new URL('../../../src/', import.meta.url).pathname;
    const text = readdirSync(src, { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('meters.ts'))
      .map((name) => readFileSync(join(src, name), 'utf8'))
      .join('\n');
    const unknown = [...OUTPUT_STAGES.keys()].filter((name) => !text.includes(`'${name}'`));
    expect(unknown).toEqual([]);
  });
});
