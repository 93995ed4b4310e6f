import { describe, expect, it } from 'vitest';
import { decodeFileContent } from '../../../src/ignition/index.ts';
import {
  explainMirrorNames,
  listCatalogImages,
  readNodeRegistriesConf,
  readStartedRegistry,
} from '../../../src/openshift/node/read-registry.ts';
import { renderMirrorSets } from '../../../src/openshift/node/mirror-sets.ts';
import { renderNodeRegistry } from '../../../src/openshift/node/registry.ts';
import { parseReference, resolveCandidates } from '../../../src/registry/index.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const asked = (texts: readonly string[], image: string): string[] =>
  resolveCandidates(readNodeRegistriesConf(texts), parseReference(image)).map(
    ({ reference: { registry, repository } }) => `${registry}/${repository}`,
  );

describe('the registry that a node starts', () => {
  it.each([true, false])('is read back as it was written, interactive %s', (interactive) => {
    const { files, units } = renderNodeRegistry({
      image: { reference: `quay.io/a/b@${digest}`, useDistributionEntrypoint: true },
      interactive,
      stage: 'live',
    });
    const contents = new Map(
      files.map((file) => [file.path, decodeFileContent(file) ?? Buffer.alloc(0)]),
    );
    const config = { ignition: { version: '3.2.0' }, systemd: { units } };
    const domain = interactive ? 'localhost' : 'registry.appliance.openshift.com';
    expect(readStartedRegistry(config, contents)).toEqual({
      domain,
      certifiedFor: domain,
      port: '22625',
      hasEntrypoint: true,
      unit: { isEnabled: true },
      missing: [],
    });
  });
});

describe('a registry that does not start', () => {
  const load = `readonly image='localhost/loaded:latest'\n`;
  const files = new Map([['/usr/local/bin/load-local-registry-image.sh', Buffer.from(load)]]);
  const read = (contents: string) =>
    readStartedRegistry(
      {
        ignition: { version: '3.2.0' },
        systemd: { units: [{ name: 'start-local-registry.service', enabled: true, contents }] },
      },
      files,
    );

  it('has a unit that is enabled and not installed', () => {
    expect(read('[Service]\n').unit).toEqual({ isEnabled: false });
    expect(read('[Service]\n[Install]\n').unit).toEqual({ isEnabled: true });
  });

  it('needs a file that no config writes, unless the unit does without', () => {
    expect(read('EnvironmentFile=/etc/a\nEnvironmentFile=-/etc/b\n').missing).toEqual(['/etc/a']);
  });

  it('runs another image than the one that is loaded', () => {
    expect(read('ExecStart=podman run localhost/other:latest\n').unusedImage).toBe(
      'localhost/loaded:latest',
    );
    expect(read('ExecStart=podman run localhost/loaded:latest\n').unusedImage).toBeUndefined();
  });
});

describe('registries.conf of mirror sets', () => {
  const sets = renderMirrorSets(
    [
      { source: 'quay.io/a', mirrors: ['one', 'two'], set: 'release', by: 'digest' },
      { source: 'quay.io/a', mirrors: ['tagged'], set: 'generic', by: 'tag' },
    ],
    ['host:22625'],
  ).map(({ text }) => text);

  it('asks the mirrors of digests for digests, in order, then the source', () => {
    expect(asked(sets, `quay.io/a/b@${digest}`)).toEqual([
      'host:22625/one/b',
      'host:22625/two/b',
      'quay.io/a/b',
    ]);
  });

  it('asks the mirrors of tags for tags', () => {
    expect(asked(sets, 'quay.io/a/b:v1')).toEqual(['host:22625/tagged/b', 'quay.io/a/b']);
  });

  it('asks each mirror of a source once, where it stood first, however many there are', () => {
    const lines = Array.from({ length: 12_000 }, (_, index) => {
      const mirror = index === 11_999 ? 0 : index;
      return `  - {source: quay.io/a, mirrors: [m.example/${mirror}]}`;
    });
    const text = ['kind: ImageDigestMirrorSet\nspec:\n  imageDigestMirrors:', ...lines, ''].join(
      '\n',
    );
    const all = asked([text], `quay.io/a@${digest}`);
    expect(all).toHaveLength(12_000);
    expect([all[0], ...all.slice(-2)]).toEqual(['m.example/0', 'm.example/11998', 'quay.io/a']);
  });

  it('has names in its sets that the API takes, or a reason for each other', () => {
    const set = (...mirrors: string[]): string =>
      JSON.stringify({
        kind: 'ImageTagMirrorSet',
        spec: { imageTagMirrors: [{ source: '*.example.com', mirrors }] },
      });
    expect(explainMirrorNames([set('m.example:5000/a', 'm', 'm/a', 'localhost:1/b')])).toEqual([]);
    expect(explainMirrorNames([set('a b', 'm.example/A', '::', '\u001b[31m')])).toEqual([
      'mirror set: "a b": "a b" is not a valid registry host',
      'mirror set: "m.example/A": "A" is not a valid repository name',
      'mirror set: "::": "::" is not a valid registry host',
      expect.stringContaining('is not a valid registry host'),
    ]);
  });

  it('does not contact a source that a set blocks', () => {
    const blocked = sets.map((text) =>
      text.replaceAll(
        'source: quay.io/a',
        'source: quay.io/a\n      mirrorSourcePolicy: NeverContactSource',
      ),
    );
    expect(asked(blocked, `quay.io/a/b@${digest}`)).toEqual([
      'host:22625/one/b',
      'host:22625/two/b',
    ]);
  });

  it('reads other manifests as nothing, and catalogs by their image', () => {
    const source = 'kind: CatalogSource\nspec:\n  image: host:22625/redhat/index:v4.21\n';
    expect(
      readNodeRegistriesConf(['- 1', 'kind: ImageDigestMirrorSet\nspec: 7', '{', source]),
    ).toEqual({
      registries: [],
    });
    expect(listCatalogImages([...sets, source])).toEqual(['host:22625/redhat/index:v4.21']);
  });
});
