import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createRedaction } from '../../src/base/text/redact.ts';
import { SealiftError } from '../../src/base/errors.ts';
import { checkSite } from '../../src/sites/check.ts';
import { checkInstallationConfig } from '../../src/sites/installation.ts';
import { checkInstallation } from '../../src/stages/installation-iso.ts';

const redaction = createRedaction();

const RECORDED = '../shared/data/judged/installer';
/** The day of the recording, in seconds since 1970. */
const RECORDED_AT = Date.UTC(2026, 10, 26) / 1000;

const NODE = 'refused here: ';
const GATE = 'warned of: openshift-install 4.22 refuses it, and it has no effect on the node';

/** Differences from the recording, and why each is wanted. */
const CONFIGURATIONS: Readonly<Record<string, string>> = {
  c02full: `${NODE}the node cannot apply a manifest without a document`,
  c11names: `${NODE}the node cannot apply a manifest that is not YAML`,
  c15bnonetwithnc: 'taken here: the installer panics without networking',
  c15nonet: 'taken here: the installer panics without networking',
  c18bfips: 'warned of: the recorded program is not the one for FIPS',
  c21case: `${NODE}sshKey is written twice, in two spellings, of which Go takes one`,
  c23btwov4: `${NODE}no address of the node is in one of its machine networks`,
  c28ctwo: GATE,
  c32v6m: `${NODE}no address of the node is in its machine network`,
  c34badnc: `${NODE}no address of the node is in its machine network`,
  c34fmac: `${NODE}the network names a MAC address that is none`,
  c45bhost: `${NODE}the kernel takes no host name of more than 64 characters`,
  c45host: `${NODE}Kubernetes takes no node name with an underscore`,
  c54bstream: GATE,
  c54stream: GATE,
  c55arch: 'taken here: the seed need not be for the architecture of the recorded program',
  c65relreg: `${NODE}no node can reach a registry "https://quay.io/x y"`,
};

const INSTALLATIONS: Readonly<Record<string, string>> = {
  g12: 'warned of: Ignition 3.1.0, which the live system reads',
  g31: 'warned of: Ignition 3.0.0, which the live system reads',
  g36: `${NODE}no registry can serve a seed "quay.io/x/y:1 ; rm -rf /"`,
};

type Inputs = Readonly<Record<string, string>>;
type Verdict = { readonly isTaken: boolean; readonly warnings: readonly string[] };

type Recorded = {
  readonly name: string;
  readonly inputs: Inputs;
  readonly exit?: number;
  readonly refused?: string;
};

const read = (name: string): readonly Recorded[] =>
  JSON.parse(readFileSync(`${RECORDED}/${name}.json`, 'utf8')) as readonly Recorded[];

function judgeSite(inputs: Inputs): Verdict {
  const files = Object.entries(inputs).map(([path, text]) => ({
    path,
    shownAs: path,
    bytes: Buffer.from(text),
  }));
  const { problems, warnings } = checkSite(
    { name: 'site', files },
    { epoch: RECORDED_AT, redaction },
  );
  return { isTaken: problems.length === 0, warnings: warnings.map(({ problem }) => problem) };
}

function judgeInstallation(inputs: Inputs): Verdict {
  const text = inputs['image-based-installation-config.yaml'] ?? '';
  const { config, problems, warnings } = checkInstallationConfig(text, 'config.yaml');
  return {
    isTaken: problems.length === 0 && isRendered(config),
    warnings: warnings.map(({ problem }) => problem),
  };
}

function isRendered(config: Parameters<typeof checkInstallation>[0]['config']): boolean {
  try {
    checkInstallation({ config });
    return true;
  } catch (error) {
    if (error instanceof SealiftError) return false;
    throw error;
  }
}

type Judged = { readonly name: string; readonly theirs: boolean; readonly ours: Verdict };

function expectListed(judged: readonly Judged[], listed: Readonly<Record<string, string>>): void {
  const different = judged.filter(({ theirs, ours }) => ours.isTaken !== theirs);
  expect(different.map(({ name }) => name).sort()).toEqual(Object.keys(listed).sort());
  for (const { name, ours } of different) {
    const reason = listed[name] ?? '';
    expect(ours.isTaken, name).toBe(!reason.startsWith(NODE));
    if (reason === GATE) expect(ours.warnings.join('\n'), name).toContain('4.22 refuses');
    if (reason.startsWith('warned of')) expect(ours.warnings, name).not.toEqual([]);
  }
}

describe.skipIf(!existsSync(RECORDED))('the recorded verdicts of openshift-install 4.22', () => {
  it('on 123 configuration ISOs are ours, but for these', () => {
    const judged = read('image-based-configurations').map(({ name, inputs, exit }) => ({
      name,
      theirs: exit === 0,
      ours: judgeSite(inputs),
    }));
    expect(judged).toHaveLength(123);
    expectListed(judged, CONFIGURATIONS);
  });

  it('on 40 installation ISOs are ours, but for these', () => {
    const judged = read('installation-isos').map(({ name, inputs, refused }) => ({
      name,
      theirs: refused === undefined,
      ours: judgeInstallation(inputs),
    }));
    expect(judged).toHaveLength(40);
    expectListed(judged, INSTALLATIONS);
  });
});
