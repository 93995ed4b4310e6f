import { expect, it } from 'vitest';
import { judgePullSecret } from '../../../src/registry/index.ts';

const entry = '{"auth":"dXNlcjpwYXNz"}';

it.each([
  ['a.example', `{"auths":{"a.example":${entry},"a.example":${entry}}}`],
  ['auths', `{"auths":{"a.example":${entry}},"auths":{"b.example":${entry}}}`],
  ['auth', `{"auths":{"a.example":{"auth":"eDp5","auth":"dXNlcjpwYXNz"}}}`],
])('a pull secret that has %s twice is refused without its values', (name, text) => {
  expect(judgePullSecret(text, { isForHosts: true })).toEqual([`has "${name}" twice`]);
});
