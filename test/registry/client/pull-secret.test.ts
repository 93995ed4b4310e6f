import { expect, it } from 'vitest';
import { judgePullSecret } from '../../../src/registry/index.ts';

const entry = '{"auth":"dXNlcjpwYXNz"}';

it.each([
  ['a registry', `{"auths":{"a.example":${entry},"a.example":${entry}}}`],
  ['"auths"', `{"auths":{"a.example":${entry}},"auths":{"b.example":${entry}}}`],
  ['"auth"', `{"auths":{"a.example":{"auth":"eDp5","auth":"dXNlcjpwYXNz"}}}`],
])('a pull secret that has %s twice is refused without its values', (_, text) => {
  expect(judgePullSecret(text, { isForHosts: true })).toEqual([
    'has a member or registry twice, of which only the last would count',
  ]);
});
