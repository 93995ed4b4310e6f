import { ConfigError } from '../base/errors.ts';

/* Owns what the environment may tell Node itself: settings that would weaken a promise of the program. */

/** Options of NODE_OPTIONS that ask for less than is promised; all connections have settings of their own. */
const IGNORED: readonly (readonly [option: RegExp, promise: string])[] = [
  [/^--tls-(?:min|max)-v/, 'TLS 1.2 and 1.3 are spoken, and nothing else'],
  [/^--tls-cipher-list$/, 'the ciphers are those of Node'],
  [/^--use-(?:openssl|bundled|system)-ca$/, 'SSL_CERT_FILE and build.caBundle name further CAs'],
  [/^--insecure-http-parser$/, 'requests are parsed strictly'],
];

const LOADS = /^(?:-r|--require|--import|--loader|--experimental-loader)$/;

/**
 * Takes what would weaken the program out of the environment, which every library and every program that is
 * started would obey.
 *
 * @returns warnings about what is ignored, and about code that Node has loaded before the program
 */
export function overrideNodeSettings(env: NodeJS.ProcessEnv): readonly string[] {
  const warnings: string[] = [];
  if (env['NODE_TLS_REJECT_UNAUTHORIZED'] === '0') {
    delete env['NODE_TLS_REJECT_UNAUTHORIZED'];
    warnings.push(
      'NODE_TLS_REJECT_UNAUTHORIZED=0 is ignored: certificates are always verified; build.insecureRegistries names exceptions',
    );
  }
  for (const option of listOptions(env['NODE_OPTIONS'] ?? '')) {
    if (option === '--tls-keylog') throw refuseKeyLog();
    const [, promise] = IGNORED.find(([pattern]) => pattern.test(option)) ?? [];
    if (promise !== undefined) warnings.push(`${option} of NODE_OPTIONS is ignored: ${promise}`);
    if (LOADS.test(option)) {
      warnings.push(
        `${option} of NODE_OPTIONS loads other code, which can change all that follows`,
      );
    }
  }
  return [...new Set(warnings)];
}

/** The names of options; Node takes `_` for `-` in them. */
const listOptions = (text: string): readonly string[] =>
  splitOptions(text)
    .filter((word) => word.startsWith('-'))
    .map((word) => word.replace(/=.*$/s, '').replaceAll('_', '-'));

/** Splits as Node does: at spaces outside of double quotes, in which a backslash takes the next character as it is. */
function splitOptions(text: string): readonly string[] {
  const words = [''];
  let isQuoted = false;
  for (const [, escaped, character = ''] of text.matchAll(/\\(.)|(.)/gs)) {
    const [last = ''] = words.slice(-1);
    if (escaped !== undefined) words[words.length - 1] = last + (isQuoted ? '' : '\\') + escaped;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === ' ' && !isQuoted) words.push('');
    else words[words.length - 1] = last + character;
  }
  return words;
}

const refuseKeyLog = (): ConfigError =>
  new ConfigError(
    'env.node-options',
    'NODE_OPTIONS has --tls-keylog, which writes the keys of connections to a file',
    {
      expected: 'connections that only both ends can read',
      found: '--tls-keylog',
      hint: 'remove --tls-keylog from NODE_OPTIONS',
    },
  );
