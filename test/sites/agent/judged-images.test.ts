import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse, stringify } from 'yaml';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { planImageMembers } from '../../../src/openshift/agent/image-members.ts';
import { makeAgentAuth } from '../../../src/sites/identity/agent-auth.ts';
import { checkAgentSite } from '../../../src/sites/agent/check.ts';
import { listHostNetworks } from '../../../src/sites/site.ts';
import { AGENT_LIVE_TEXTS, agentLiveIgnition } from '../../support/agent-medium.ts';
import { describeLiveSystem } from '../../../src/openshift/agent/live-system.ts';
import { IMAGE_SET_PATH } from '../../support/config-image.ts';
import { TEST_EPOCH } from '../../support/site-inputs.ts';

const RECORDED = '../shared/data/judged/installer';

type Recorded = {
  readonly 'inputs of good': Readonly<Record<string, string>>;
  readonly 'cases': readonly {
    readonly case: string;
    /** Path, mode, size, SHA-256. */
    readonly members?: readonly (readonly [string, string, number, string])[];
  }[];
};

type Pristine = { readonly files: readonly { readonly path: string; readonly text?: string }[] };

const read = (name: string): unknown =>
  JSON.parse(readFileSync(`${RECORDED}/${name}.json`, 'utf8'));

/** Contents that are drawn: only their size is compared, and that of keys differs by a byte or two. */
const DRAWN = /^\/opt\/agent\/tls\/|\/(?:rendezvous-host|assisted-service)\.env$/;

type Document = Readonly<Record<string, unknown>>;

/** How the inputs of a case differ from those of `good`. */
const CHANGES: Readonly<Record<string, (name: string, document: Document) => Document>> = {
  good: (_, document) => document,
  nohosts: (_, document) =>
    Object.fromEntries(Object.entries(document).filter(([member]) => member !== 'hosts')),
  namespace: (name, document) =>
    name === 'install-config.yaml'
      ? { ...document, metadata: { name: 'site1', namespace: 'ns1' } }
      : document,
};

/** Members that differ on purpose, by case. */
const DIFFERENT: Readonly<Record<string, readonly string[]>> = {
  // The medium's own bytes: those of the recording make its loader refuse the image.
  namespace: [IMAGE_SET_PATH],
};

/** Written in another style than the recorded input, whose text goes on the image. */
const VERBATIM = '/etc/assisted/manifests/agent-config.yaml';

const UUID = '22222222-2222-4222-8222-222222222222';

/** Texts that the recording of the live system has by their digest alone. */
const AGENT_OF: Readonly<Record<string, string | undefined>> = Object.fromEntries(
  [
    '/etc/issue',
    '/etc/assisted/rendezvous-host.env.template',
    '/etc/NetworkManager/conf.d/clientid.conf',
  ].map((path) => [path, AGENT_LIVE_TEXTS[path]]),
);

const digest = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');

describe.skipIf(!existsSync(RECORDED))('a configuration image', () => {
  const recorded = existsSync(RECORDED) ? (read('agent-config-images') as Recorded) : undefined;
  const pristine = existsSync(RECORDED) ? (read('pristine') as Pristine) : { files: [] };
  const texts = Object.fromEntries(
    pristine.files.map(({ path, text }) => [path, AGENT_OF[path] ?? text ?? 'x']),
  );

  it.each(Object.keys(CHANGES))(
    'has the members of openshift-install, byte by byte: %s',
    (name) => {
      const expected = recorded?.cases.find((each) => each.case === name)?.members ?? [];
      const inputs = Object.entries(recorded?.['inputs of good'] ?? {}).map(([path, text]) => {
        const changed =
          name === 'good' ? text : stringify(CHANGES[name]?.(path, parse(text) as Document));
        return { path, bytes: Buffer.from(changed), shownAs: path };
      });
      const options = { epoch: TEST_EPOCH, redaction: createRedaction() };
      const { site, problems } = checkAgentSite({ name: 'site1', files: inputs }, options);
      expect(problems).toEqual([]);
      if (!site) throw new Error('no site');
      const set = pristine.files.find(({ path }) => path === IMAGE_SET_PATH)?.text;
      const members = planImageMembers(site.cluster, {
        system: describeLiveSystem([agentLiveIgnition(texts, set)]),
        networks: listHostNetworks(site.cluster),
        secrets: {
          infraEnvId: UUID,
          passwordHash: 'h'.repeat(60),
          auth: makeAgentAuth(),
          tls: expected
            .filter(([path]) => /\.(?:key|crt)$/.test(path))
            .map(([path, , size]) => ({ name: path.slice(15), text: 'x'.repeat(size) })),
        },
      });
      const left = [...(DIFFERENT[name] ?? []), ...(name === 'good' ? [] : [VERBATIM])];
      const describeMember = ([path, mode, size, sha256]: readonly [
        string,
        number,
        number,
        string,
      ]) =>
        left.includes(path)
          ? [path, mode]
          : DRAWN.test(path)
            ? [path, mode, path.endsWith('.key') ? 0 : size]
            : [path, mode, size, sha256];
      const made = members.map(({ name: path, mode, data }) =>
        describeMember([path, mode, data.length, digest(data)]),
      );
      const wanted = expected.map(([path, mode, size, sha256]) =>
        describeMember([path, Number(mode) & 0o777, size, sha256]),
      );
      const sort = (list: readonly (readonly unknown[])[]) =>
        list.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1));
      expect(sort(made)).toEqual(sort(wanted));
      expect(members.at(-1)?.name).toBe('/etc/assisted/rendezvous-host.env');
    },
  );
});
