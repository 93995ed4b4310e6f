import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { link } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeConfigArea } from '../../src/media/config-area.ts';
import { formatImageSet, IMAGE_SET_PATH } from '../support/config-image.ts';
import {
  API,
  PULL_SECRET,
  startService,
  type Answer,
  type TestService,
} from '../support/service.ts';
import { createSiteWorld, type SiteWorld } from '../support/site-medium.ts';
import { requireTool } from '../support/tools.ts';

const hasTools = ['genisoimage', 'isohybrid', 'xorriso', 'bsdtar', 'openssl'].every(requireTool);

describe.skipIf(!hasTools)('an InfraEnv with the configuration image of a site', () => {
  let world: SiteWorld;
  let service: TestService;
  let image: Buffer;
  beforeAll(async () => {
    world = await createSiteWorld();
    image = readFileSync(world.at(await world.writeImage('site.iso', world.members)));
    // The ISO of the store has the image of another site, which no InfraEnv gets.
    const other = { ...world.members, '/etc/assisted/hostnames/52:54:00:00:00:01': 'other' };
    await world.writeImage('other.iso', other);
    await world.sealift('customize', 'live.iso', '--site', 'other.iso', '--in-place');
    mkdirSync(world.at('store'));
    await link(world.at('live.iso'), world.at('store/live.iso'));
    service = await startService({ stores: [world.at('store')] });
  }, 60_000);
  afterAll(async () => {
    await service.close();
    await world.close();
  });

  const create = (more: object): Promise<Answer> =>
    service.call('POST', `${API}/v2/infra-envs`, {
      body: { name: 'edge', pull_secret: PULL_SECRET, openshift_version: '4.21.3', ...more },
    });
  const download = async ({ body }: Answer): Promise<Buffer> => {
    const answer = await fetch(String(body['download_url']));
    expect(answer.status).toBe(200);
    return Buffer.from(await answer.arrayBuffer());
  };
  const areaOf = (iso: Buffer): Buffer =>
    iso.subarray(world.area.offset, world.area.offset + world.area.size);

  it('is downloaded with the image in its area, verifies, and has nothing of the web interface', async () => {
    const created = await create({ config_image: image.toString('base64') });
    expect([created.status, created.body['config_image_set']]).toEqual([201, true]);
    expect(created.text).not.toContain('"config_image"');
    const iso = await download(created);
    expect(areaOf(iso).equals(encodeConfigArea(image, world.area.size))).toBe(true);
    writeFileSync(world.at('served.iso'), iso);
    expect(await world.sealift('verify', 'served.iso')).toMatch(/^served\.iso is whole/m);
    const config = await world.sealift('ignition', 'show', 'served.iso');
    expect(config).toContain('/root/.docker/config.json');
    expect(config).not.toContain('/etc/assisted/interactive-ui');
  });

  it('gives the same bytes for the same values again, and loses the image with an empty text', async () => {
    const created = await create({ config_image: image.toString('base64') });
    const path = `${API}/v2/infra-envs/${String(created.body['id'])}`;
    const changed = await service.call('PATCH', path, { body: { config_image: '' } });
    expect([changed.status, changed.body['config_image_set']]).toEqual([201, undefined]);
    const without = await download(changed);
    expect(areaOf(without).every((byte) => byte === 0)).toBe(true);
    const back = await service.call('PATCH', path, {
      body: { config_image: image.toString('base64') },
    });
    expect(areaOf(await download(back)).equals(encodeConfigArea(image, world.area.size))).toBe(
      true,
    );
  });

  it('without an image has an empty area, whatever the ISO of the store has there', async () => {
    const iso = await download(await create({}));
    expect(areaOf(iso).every((byte) => byte === 0)).toBe(true);
  });

  it('is refused with the reason if the medium would not take the image, or if it is none', async () => {
    const release = `quay.io/openshift-release-dev/ocp-release@sha256:${'b'.repeat(64)}`;
    await world.writeImage('foreign.iso', {
      ...world.members,
      [IMAGE_SET_PATH]: formatImageSet(release),
    });
    const foreign = readFileSync(world.at('foreign.iso')).toString('base64');
    for (const [config_image, reason] of [
      [foreign, 'the image was made by the installer of another release'],
      [Buffer.from('no image').toString('base64'), 'is not a configuration image'],
      ['%', 'config_image is not base64'],
    ]) {
      const { status, body } = await create({ config_image });
      expect([status, body['reason']]).toEqual([400, expect.stringContaining(reason ?? '')]);
    }
  });
});
