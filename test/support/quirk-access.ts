import type { Asked, Quirk, Reply } from './quirky-front.ts';
import type { Row } from './quirk-rows.ts';

/* Ways in which registries ask for credentials, and token servers answer. */

/** The user of the rows. */
export const USER = { username: 'user', password: 'hush' } as const;

const BASIC = `Basic ${Buffer.from(`${USER.username}:${USER.password}`).toString('base64')}`;

type Guard = {
  /** Values of WWW-Authenticate; `HOST` stands for the front. */
  readonly challenges: readonly string[];
  readonly isGood: (authorization: string) => boolean;
  /** Body of the token server's answer. */
  readonly token?: string;
  /** True if the token server takes every request. */
  readonly isOpen?: boolean;
  /** True if the ping is open. */
  readonly isPingOpen?: boolean;
};

const answer = (status: number, body: string, headers: Reply['headers'] = {}): Reply => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: Buffer.from(body),
});

function guard({ challenges, isGood, token = '{}', isOpen = false, isPingOpen }: Guard): Quirk {
  return (asked: Asked, next) => {
    const { authorization = '', host = '' } = asked.headers;
    if (asked.kind === 'token') {
      return isOpen || authorization === BASIC ? answer(200, token) : answer(401, '{}');
    }
    if (isGood(authorization) || (isPingOpen === true && asked.kind === 'ping')) return next();
    const lines = challenges.map((line) => line.replace('HOST', host));
    return answer(401, '{"errors":[{"code":"UNAUTHORIZED"}]}', { 'www-authenticate': lines });
  };
}

const BEARER = 'Bearer realm="http://HOST/token",service="registry"';
const isBasic = (authorization: string): boolean => authorization === BASIC;
const isToken = (authorization: string): boolean => authorization === 'Bearer t';

type Case = readonly [name: string, isHarmless: boolean, guard: Guard];

const bearer = (name: string, token: string, isHarmless = true): Case => [
  `Bearer, ${name}`,
  isHarmless,
  { challenges: [BEARER], isGood: isToken, token },
];

const CASES: readonly Case[] = [
  ['Basic', true, { challenges: ['Basic realm="r"'], isGood: isBasic }],
  ['Basic without a realm', true, { challenges: ['Basic'], isGood: isBasic }],
  ['basic in small letters', true, { challenges: ['basic realm=r'], isGood: isBasic }],
  [
    'Basic, behind an open ping',
    true,
    { challenges: ['Basic realm="r"'], isGood: isBasic, isPingOpen: true },
  ],
  ['no challenge', false, { challenges: [], isGood: isBasic }],
  ['an empty challenge', false, { challenges: [' '], isGood: isBasic }],
  ['Negotiate alone', false, { challenges: ['Negotiate'], isGood: isBasic }],
  [
    'Negotiate and Basic, in two lines',
    true,
    { challenges: ['Negotiate', 'Basic realm="r"'], isGood: isBasic },
  ],
  [
    'NTLM and Basic, in one line',
    true,
    { challenges: ['NTLM YWJj==, Basic realm="a, b"'], isGood: isBasic },
  ],
  [
    'Basic and Bearer',
    true,
    { challenges: [`Basic realm="r", ${BEARER}`], isGood: isToken, token: '{"token":"t"}' },
  ],
  bearer('token', '{"token":"t"}'),
  bearer('access_token', '{"access_token":"t"}'),
  bearer('both members', '{"token":"t","access_token":"t"}'),
  bearer('an empty token', '{"token":"","access_token":"t"}'),
  bearer('token null', '{"token":null,"access_token":"t"}'),
  bearer('an empty access_token', '{"token":"t","access_token":""}'),
  bearer('no token', '{}', false),
  bearer('both empty', '{"token":"","access_token":""}', false),
  bearer('not JSON', '<html>', false),
  ...['""', '"300"', '0', '-1', 'null', '1e99', '{}'].map((life) =>
    bearer(`expires_in ${life}`, `{"token":"t","expires_in":${life}}`),
  ),
  ...['""', '"2026-01-01T00:00:00Z"', '"0001-01-01T00:00:00Z"', 'null'].map((time) =>
    bearer(`issued_at ${time}`, `{"token":"t","issued_at":${time}}`),
  ),
  [
    'Bearer without a service',
    true,
    { challenges: ['Bearer realm="http://HOST/token"'], isGood: isToken, token: '{"token":"t"}' },
  ],
  [
    'Bearer with an empty service',
    true,
    {
      challenges: ['Bearer realm="http://HOST/token",service="",scope=""'],
      isGood: isToken,
      token: '{"token":"t"}',
    },
  ],
  ['Bearer without a realm', false, { challenges: ['Bearer service="x"'], isGood: isToken }],
  ['Bearer with an empty realm', false, { challenges: ['Bearer realm=""'], isGood: isToken }],
  [
    'a token that is refused',
    false,
    { challenges: [BEARER], isGood: isBasic, token: '{"token":"t"}' },
  ],
];

const OPEN: Guard = { challenges: [BEARER], isGood: isToken, token: '{"token":"t"}', isOpen: true };

const row = (name: string, more: Omit<Row, 'family' | 'name' | 'create'>, by: Guard): Row => ({
  family: 'access',
  name,
  ...more,
  create: () => guard(by),
});

export const ACCESS_ROWS: readonly Row[] = [
  ...CASES.map(([name, isHarmless, by]) => row(name, { isHarmless, credential: 'entry' }, by)),
  ...CASES.slice(0, 2).map(([name, , by]) => row(`${name}, of nobody`, { isHarmless: false }, by)),
  ...[CASES[0], CASES[10]].flatMap((one) =>
    one === undefined
      ? []
      : [
          row(`${one[0]}, by a helper`, { isHarmless: true, credential: 'helper' }, one[2]),
          row(
            `${one[0]}, by no helper`,
            { isHarmless: false, credential: 'missing helper' },
            one[2],
          ),
        ],
  ),
  row('Bearer for everybody', { isHarmless: true }, OPEN),
  row('Bearer for everybody, by a helper', { isHarmless: true, credential: 'helper' }, OPEN),
  row(
    'Bearer for everybody, by no helper',
    { isHarmless: true, credential: 'missing helper' },
    OPEN,
  ),
];
