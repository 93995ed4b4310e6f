import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createRedaction } from '../../../src/base/text/redact.ts';
import { createSiteReader, type ReadSite } from '../../../src/sites/reader.ts';
import { listSites } from '../../../src/sites/sources/sites.ts';
import { assistedResources } from '../../support/assisted-resources.ts';
import { agentInstance, instanceTree } from '../../support/cluster-instances.ts';
import { oldCluster, siteConfig, siteConfigTree } from '../../support/site-configs.ts';
import { packZip, type Tree, writeTree } from '../../support/site-archives.ts';
import { TEST_EPOCH } from '../../support/site-inputs.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'split-'));
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

type Read = {
  readonly problems: readonly string[];
  readonly sites: Readonly<Record<string, ReadSite>>;
};

async function readAll(path: string): Promise<Read> {
  const list = await listSites(path, { signal: new AbortController().signal });
  const reader = createSiteReader(list, { epoch: TEST_EPOCH, redaction: createRedaction() });
  const sites: Record<string, ReadSite> = {};
  for (const name of list.names) sites[name] = await reader.read(name);
  await list.close();
  return {
    sites,
    problems: list.problems.map(({ name, severity, problem }) => `${severity} ${name}: ${problem}`),
  };
}

const two = (more: Parameters<typeof agentInstance>[0] = {}): Tree =>
  instanceTree('all', [agentInstance({}, 'alpha'), agentInstance(more, 'beta')]);

const namesOf = ({ sites }: Read): readonly string[] =>
  Object.entries(sites).flatMap(([name, { site }]) =>
    site?.kind === 'agent' ? [`${name}: ${site.cluster.name}`] : [],
  );

describe('a folder with several ClusterInstances', () => {
  it('is a site for each of them, which has its name', async () => {
    const read = await readAll(writeTree(root, two()));
    expect(read.problems).toEqual([]);
    expect(namesOf(read)).toEqual(['alpha: alpha', 'beta: beta']);
  });

  it('is the same sites in an archive', async () => {
    const members = Object.entries(two()).map(([name, text]) => ({ name, text }));
    writeFileSync(join(root, 'all.zip'), packZip(members));
    expect(namesOf(await readAll(join(root, 'all.zip')))).toEqual(['alpha: alpha', 'beta: beta']);
  });

  it('gives a site other inputs only if its own resources change', async () => {
    const first = await readAll(writeTree(root, two()));
    const second = await readAll(writeTree(root, two({ additionalNTPSources: ['192.0.2.1'] })));
    expect(second.sites['alpha']?.inputs).toBe(first.sites['alpha']?.inputs);
    expect(second.sites['beta']?.inputs).not.toBe(first.sites['beta']?.inputs);
  });

  it('tells of a document that nothing can read, and that may be another of them', async () => {
    const others = {
      'all/broken.yaml': 'kind: ClusterInstance\nmetadata: {name: gamma}\nspec: {nodes: [a\n',
      'all/nameless.yaml': 'kind: ClusterInstance\nmetadata: {}\n',
      'all/values.yaml': 'a: {{ .Values.kind }}\n',
    };
    const { problems, ...read } = await readAll(writeTree(root, { ...two(), ...others }));
    expect(namesOf({ problems, ...read })).toEqual(['alpha: alpha', 'beta: beta']);
    const [first, ...rest] = problems.filter((each) => each.startsWith('error'));
    expect(first).toMatch(/^error : not valid YAML: /);
    expect(rest.at(-1)).toBe('error : metadata.name: Required value');
    expect(problems.join('\n')).not.toContain('Values');
  });

  it('tells where the only one of them cannot be read', async () => {
    const tree = { 'all/a.yaml': 'kind: ClusterInstance\nmetadata: {name: a}\nspec: [a\n' };
    const { sites } = await readAll(writeTree(root, tree));
    expect(sites['all']?.findings).toMatchObject([
      { file: expect.stringContaining('a.yaml') as string, line: 4 },
    ]);
  });

  it('tells a fault of one of them for that one alone', async () => {
    const { sites } = await readAll(writeTree(root, two({ clusterType: 'Sno' })));
    expect(sites['alpha']?.findings).toEqual([]);
    expect(sites['beta']?.findings.map(({ problem }) => problem)).toEqual([
      expect.stringContaining('Unsupported value: "Sno"'),
    ]);
  });

  it('may be one SiteConfig, of which each cluster changes alone', async () => {
    const tree = (more = {}): Tree =>
      siteConfigTree('all', siteConfig([oldCluster('alpha'), oldCluster('beta', more)]));
    const first = await readAll(writeTree(root, tree()));
    expect(first.problems).toEqual([]);
    expect(namesOf(first)).toEqual(['alpha: alpha', 'beta: beta']);
    const changed = { additionalNTPSources: ['192.0.2.1'] };
    const second = await readAll(writeTree(root, tree(changed)));
    expect(second.sites['alpha']?.inputs).toBe(first.sites['alpha']?.inputs);
    expect(second.sites['beta']?.inputs).not.toBe(first.sites['beta']?.inputs);
  });

  it('refuses two clusters of one name in a SiteConfig', async () => {
    const config = siteConfig([oldCluster('alpha'), oldCluster('alpha')]);
    const { problems } = await readAll(writeTree(root, siteConfigTree('all', config)));
    const why = 'error alpha: name "alpha" of the SiteConfig is the name of another site, too';
    expect(problems).toEqual([why, why]);
  });

  it('may have AgentClusterInstalls as well', async () => {
    const others = Object.values(assistedResources('gamma')).map((each) => stringify(each));
    const tree = { ...two(), 'all/gamma.yaml': others.join('---\n') };
    expect(namesOf(await readAll(writeTree(root, tree)))).toEqual([
      'alpha: alpha',
      'beta: beta',
      'gamma: gamma',
    ]);
  });

  it('refuses those of one name, and names that no site can have', async () => {
    const tree = instanceTree('all', [
      agentInstance({}, 'alpha'),
      agentInstance({}, 'alpha'),
      agentInstance({}, 'a.b'),
      agentInstance({}, 'good'),
    ]);
    const { sites, problems } = await readAll(writeTree(root, tree));
    expect(Object.keys(sites)).toEqual(['good']);
    expect(problems.join('\n')).toContain('name "alpha" of the ClusterInstance is the name of');
    expect(problems.join('\n')).toContain('error a.b: name "a.b" of the ClusterInstance is not a');
  });
});

describe('a folder with cluster-manifests', () => {
  const manifests = (folder: string): Tree =>
    Object.fromEntries(
      Object.entries(assistedResources()).map(([name, each]) => [
        `${folder}cluster-manifests/${name}.yaml`,
        stringify(each),
      ]),
    );

  it.each(['clusters', 'clusters/one'])('is a site if %s is given', async (path) => {
    writeTree(root, manifests('clusters/one/'));
    expect(namesOf(await readAll(join(root, path)))).toEqual(['one: site1']);
  });

  it('is a site in an archive with a common folder', async () => {
    const members = Object.entries(manifests('top/one/')).map(([name, text]) => ({ name, text }));
    writeFileSync(join(root, 'all.zip'), packZip(members));
    expect(namesOf(await readAll(join(root, 'all.zip')))).toEqual(['one: site1']);
  });

  it('is refused with an install-config.yaml, which describes the cluster again', async () => {
    const tree = { ...manifests('one/'), 'one/install-config.yaml': 'apiVersion: v1\n' };
    const { problems } = await readAll(writeTree(root, tree));
    expect(problems).toEqual([
      'error one: has install-config.yaml, and cluster-manifests: both describe the cluster',
    ]);
  });

  it('keeps the manifests of its folder openshift', async () => {
    const extra = { 'one/openshift/a.yaml': 'apiVersion: v1\nkind: A\nmetadata: {name: a}\n' };
    const { sites } = await readAll(writeTree(root, { ...manifests('one/'), ...extra }));
    const { site } = sites['one'] ?? {};
    expect(site?.kind === 'agent' && site.cluster.manifests.map(({ name }) => name)).toEqual([
      'a-0.yaml',
    ]);
  });
});
