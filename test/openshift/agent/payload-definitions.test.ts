import { describe, expect, it } from 'vitest';
import { ConfigProblems } from '../../../src/base/errors.ts';
import { readPayloadDefinitions } from '../../../src/openshift/agent/payload-definitions.ts';
import { parseResources } from '../../../src/openshift/agent/resources.ts';

const definition = (spec: object, more: object = {}) => ({
  path: 'release-manifests/a.crd.yaml',
  document: {
    kind: 'CustomResourceDefinition',
    spec: {
      group: 'metal3.io',
      names: { kind: 'BareMetalHost' },
      versions: [
        { name: 'v1alpha1', served: true },
        {
          name: 'v1beta1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
        },
      ],
    },
  },
  ...more,
});
const object = (properties: object) => ({ type: 'object', properties });
const read = (spec: object, more: object = {}) =>
  readPayloadDefinitions([definition(spec, more)], ['BareMetalHost']);

describe('a definition of a payload', () => {
  it('has the members and types of its schema', () => {
    const spec = object({
      name: { type: 'string', nullable: true },
      mode: { type: 'string', enum: ['a', 'b'] },
      odd: { type: 'string', enum: ['a|b'] },
      data: { type: 'string', format: 'byte' },
      online: { type: 'boolean' },
      size: { type: 'integer' },
      share: { type: 'number' },
      port: { 'anyOf': [], 'x-kubernetes-int-or-string': true },
      free: { ...object({ a: { type: 'string' } }), 'x-kubernetes-preserve-unknown-fields': true },
      list: { type: 'array', items: object({ id: { type: 'string' } }) },
      map: { type: 'object', additionalProperties: { type: 'integer' } },
      empty: { type: 'object' },
    });
    expect(read(spec)['BareMetalHost']).toEqual({
      group: 'metal3.io',
      members: {
        apiVersion: 'text',
        kind: 'text',
        metadata: 'metadata',
        status: 'any',
        spec: {
          name: 'text',
          mode: '=a|b',
          odd: 'text',
          data: 'base64',
          online: 'flag',
          size: 'integer',
          share: 'any',
          port: 'any',
          free: 'any',
          list: [{ id: 'text' }],
          map: { '*': 'integer' },
          empty: 'any',
        },
      },
    });
  });

  it('does not count if it is for a preview, has no schema, or is of another kind', () => {
    expect(read(object({}), { featureSets: ['TechPreviewNoUpgrade'] })).toEqual({});
    const { document, path } = definition({});
    const bare = { ...document, spec: { ...document.spec, versions: [{ name: 'v1' }] } };
    expect(readPayloadDefinitions([{ path, document: bare }], ['BareMetalHost'])).toEqual({});
    expect(readPayloadDefinitions([definition({})], ['InfraEnv'])).toEqual({});
  });

  it('judges resources in place of ours, alone and in a List, with null for an absent member', () => {
    const definitions = read(object({ flavour: { type: 'string', nullable: true } }));
    const host = (member: string): string =>
      `apiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nspec:\n  ${member}\n`;
    expect(parseResources(host('Flavour: a'), 'a.yaml', definitions)[0]?.spec).toEqual({
      flavour: 'a',
    });
    parseResources(host('flavour: null'), 'a.yaml', definitions);
    const list = `kind: List\nitems:\n- {apiVersion: metal3.io/v1alpha1, kind: BareMetalHost, spec: {online: true}}\n`;
    for (const text of [host('online: true'), list]) {
      parseResources(text, 'a.yaml');
      expect(() => parseResources(text, 'a.yaml', definitions)).toThrow(ConfigProblems);
    }
  });
});
