import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseReference, type Reference } from '../../../src/registry/reference.ts';
import { createTagLedger } from '../../../src/stages/resolved/tags.ts';
import { createImageWorld, type ImageWorld } from '../../support/image-tools.ts';
import { buildLayeredImage } from '../../support/release.ts';

let world: ImageWorld;
let reference: Reference;
beforeEach(async () => {
  world = await createImageWorld();
  world.registry.add('team/tool', await buildLayeredImage([[['a', 'one']]]), '1');
  reference = parseReference(`${world.registry.host}/team/tool:1`);
});
afterEach(() => world.close());

describe('a ledger of tags', () => {
  it('has the digest of every tag, and no image that was asked for by digest', async () => {
    const { client, list } = createTagLedger(world.client);
    const { descriptor } = await client.fetchManifest(reference, world);
    const { registry, repository } = reference;
    await client.fetchManifest({ registry, repository, digest: descriptor.digest }, world);
    await client.resolveTag({ registry, repository, tag: 'none' }, world);
    expect(list()).toEqual({ [`${registry}/team/tool:1`]: descriptor.digest });
  });

  it('pins each tag to its earlier digest, and refuses a tag that it did not have', async () => {
    const earlier = createTagLedger(world.client);
    const { descriptor } = await earlier.client.fetchManifest(reference, world);
    const { registry, repository } = reference;
    const signature = { registry, repository, tag: 'sha256-abc.sig' };
    world.registry.add('team/tool', await buildLayeredImage([[['a', 'two']]]), '1', signature.tag);
    const { client } = createTagLedger(world.client, {
      saved: { tags: earlier.list(), contents: '' },
    });
    expect((await client.fetchManifest(reference, world)).descriptor.digest).toBe(
      descriptor.digest,
    );
    expect((await client.resolveTag(reference, world))?.digest).toBe(descriptor.digest);
    expect(await client.resolveTag(signature, world)).toBeUndefined();
    await expect(client.fetchManifest(signature, world)).rejects.toMatchObject({
      code: 'plan.unknown-tag',
    });
  });
});
