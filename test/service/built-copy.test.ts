import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decodeFileContent, parseIgnition } from '../../src/ignition/index.ts';
import { createLiveWorld, type LiveWorld } from '../support/live-iso.ts';
import { TEST_SSH_KEY } from '../support/installation-iso.ts';
import { API, PULL_SECRET, SSH_KEY, startService, type TestService } from '../support/service.ts';
import { requireTool } from '../support/tools.ts';
import { expectDone } from '../support/two-nights.ts';

const BUILDER = '{"auths":{"quay.io":{"auth":"YnVpbGRlcjp3b3Jk"}}}';

describe.skipIf(!requireTool('genisoimage'))(
  'an image of an ISO that was built with values',
  () => {
    let world: LiveWorld;
    let service: TestService;
    const at = (name: string): string => join(world.directory, name);
    const done = async (...args: readonly string[]): Promise<string> =>
      (await expectDone(world, ...args)).stdout;

    beforeAll(async () => {
      world = await createLiveWorld();
      await world.writeConfig(`sshKey: ${TEST_SSH_KEY}`);
      await writeFile(at('builder.json'), BUILDER);
      const secret = ['--set', 'build.embed.pullSecret=file:builder.json'];
      await done('build', '--output', 'store/appliance.iso', ...secret);
      service = await startService({ stores: [at('store')] });
    });
    afterAll(async () => {
      await service.close();
      await world.close();
    });

    const create = async (type: string): Promise<string> => {
      const cluster = { name: 'edge', openshift_version: '4.21.3' };
      const { body } = await service.call('POST', `${API}/v2/clusters/disconnected`, {
        body: cluster,
      });
      const infraEnv = {
        name: 'edge',
        cluster_id: body['id'],
        image_type: type,
        pull_secret: PULL_SECRET,
        ssh_authorized_key: SSH_KEY,
      };
      const made = await service.call('POST', `${API}/v2/infra-envs`, { body: infraEnv });
      expect([made.status, made.text]).toEqual([201, expect.any(String)]);
      return String(made.body['download_url']);
    };

    it('has nothing of the builder: no key, no pull secret, no copy of what the build left', async () => {
      const built = await readFile(at('store/appliance.iso'), 'latin1');
      expect(built).toContain('sealift built 1');
      const answer = await fetch(await create('disconnected-iso'));
      expect(answer.status).toBe(200);
      const iso = Buffer.from(await answer.arrayBuffer());
      expect(iso.includes('sealift built 1')).toBe(false);
      await writeFile(at('served.iso'), iso);
      const shown = JSON.parse(await done('customize', 'served.iso', '--show', '-o', 'json')) as {
        readonly builtSecrets: boolean;
        readonly ignition: { readonly sshKeys: readonly string[] };
      };
      expect(shown).toMatchObject({ builtSecrets: false, ignition: { sshKeys: [SSH_KEY] } });
      const config = parseIgnition(await done('ignition', 'show', 'served.iso'), 'served.iso');
      const texts = (config.storage?.files ?? []).map((file) =>
        decodeFileContent(file)?.toString(),
      );
      expect(texts.join('\n')).toContain('dXNlcjpjYW5hcnktcGFzc3dvcmQ=');
      expect(texts.join('\n')).not.toContain('YnVpbGRlcjp3b3Jk');
      expect(await done('verify', 'served.iso')).toContain('served.iso');
    });
  },
);
