import { readFile, rm, writeFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { addRelease } from '../support/release.ts';
import { DOCUMENTED, type UpstreamConfiguration } from '../support/upstream-configurations.ts';
import { ARGUMENTS, describeUpstream, INSTALLER, SIGNATURES } from '../support/upstream-suite.ts';

describeUpstream(
  "upstream's documented configurations",
  DOCUMENTED,
  ({ releases, at, configure, readRegistry, world, graph }) => {
    describe('for a release before 4.21', () => {
      const OLD: UpstreamConfiguration = {
        name: 'old',
        version: '4.17.12',
        lines: ['apiVersion: v1beta1', 'ocpRelease:', '  version: "4.17.12"'],
      };

      it('take the planned registry server, although a newer release has appeared since', async () => {
        await configure(OLD);
        const plan = await world().run(...ARGUMENTS.plan);
        await writeFile(at('plan.json'), plan.stdout);
        const { registryImage } = JSON.parse(plan.stdout) as { readonly registryImage: string };
        const iso = await readFile(at('test.iso'));
        const registry = { ...world().registry, host: 'quay.io' };
        const later = await addRelease(registry, { version: '4.21.9', iso, installer: INSTALLER });
        releases.set('4.21.9 amd64', later);
        const moved = await world().run(...ARGUMENTS.build, '--plan', 'plan.json');
        expect(moved.exitCode, moved.stderr).toBe(0);
        expect((await readRegistry()).image).toBe(registryImage);
        const fresh = await world().run(...ARGUMENTS.plan);
        releases.delete('4.21.9 amd64');
        expect(fresh.stderr).toContain('release 4.21 of stable has moved since the last plan');
        expect((JSON.parse(fresh.stdout) as { readonly registryImage: string }).registryImage).toBe(
          `quay.io/ocp/art-dev@${later.components['docker-registry'] ?? ''}`,
        );
      }, 120_000);

      it('are refused with imageRegistry.uri in the hint if the graph has no release with a registry server', async () => {
        await configure(OLD);
        const saved = [...releases];
        for (const [key] of saved) if (key.startsWith('4.21.')) releases.delete(key);
        const { exitCode, stderr } = await world().run('plan', ...SIGNATURES);
        for (const [key, release] of saved) releases.set(key, release);
        expect(exitCode).toBe(3);
        expect(stderr).toContain('release 4.17.12 has no registry that can serve the media');
        expect(stderr).toContain('[release.not-found]');
        expect(stderr).toContain('hint: set imageRegistry.uri to');
      });

      it('are refused with imageRegistry.uri in the hint if there is no update graph', async () => {
        const url = releases.get('4.17.12 amd64')?.pullspec ?? '';
        await configure({ ...OLD, lines: [...OLD.lines, `  url: ${url}`] });
        world().env['UPDATE_URL_OVERRIDE'] = `${graph().url}/gone`;
        const { exitCode, stderr } = await world().run('plan', ...SIGNATURES);
        world().env['UPDATE_URL_OVERRIDE'] = graph().url;
        expect(exitCode).toBe(4);
        expect(stderr).toContain('[graph.refused]');
        expect(stderr).toContain('hint: set imageRegistry.uri to');
      });

      it('are refused, before the payload is fetched, by the name of a registry image that cannot be started', async () => {
        const image = 'registry.redhat.io/rhel9/support-tools:latest';
        await configure({ ...OLD, lines: [...OLD.lines, `imageRegistry: {uri: "${image}"}`] });
        await rm(at('.sealift'), { recursive: true, force: true });
        const before = world().registry.requests.length;
        const { exitCode, stderr } = await world().run(...ARGUMENTS.build);
        expect(exitCode).toBe(3);
        expect(stderr).toContain('image registry.redhat.io/rhel9/support-tools@sha256:');
        expect(stderr).toMatch(/\[registry-image\.(no-command|not-distribution)\]/);
        const blobs = world()
          .registry.requests.slice(before)
          .filter((line) => line.includes('/blobs/'));
        expect(blobs.filter((line) => line.includes('/ocp/art-dev/'))).toEqual([]);
      });
    });
  },
);
