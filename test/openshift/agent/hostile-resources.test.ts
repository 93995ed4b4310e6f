import { expect, it } from 'vitest';
import { readResourceValues } from '../../../src/openshift/agent/read-resources.ts';
import { parseResources } from '../../../src/openshift/agent/resources.ts';

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j'];

/** Each line stands for nine of the line before: a billion values at the end. */
const LAUGHS = NAMES.map((name, at) => {
  const before = NAMES[at - 1];
  return `    ${name}: &${name} [${Array.from({ length: 9 }, () => (before ? `*${before}` : 'ha')).join(', ')}]`;
});

const ENVELOPES: readonly (readonly [string, string])[] = [
  ['InfraEnv', 'spec:\n  proxy:'],
  ['NMStateConfig', 'spec:\n  config:'],
  ['ConfigMap', 'data:\n  x:'],
  ['BareMetalHost', 'metadata:\n  annotations:'],
];

it.each(ENVELOPES)(
  'a %s whose aliases stand for a billion values is refused before they cost anything',
  (kind, above) => {
    const text = `apiVersion: v1\nkind: ${kind}\n${above}\n${LAUGHS.join('\n')}\n`;
    const started = performance.now();
    expect(() =>
      readResourceValues(parseResources(text, 'site.yaml'), { hasPullSecret: false }),
    ).toThrow(/site\.yaml/);
    expect(performance.now() - started).toBeLessThan(5000);
  },
);
