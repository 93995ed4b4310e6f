/*
 * The first file that Node reads, built for Node 12: an older Node than the program needs, and one without a
 * part of it, end with a sentence instead of the stack of a syntax error. Nothing is imported before that.
 */

type Fault = { readonly code: string; readonly message: string };

const manifest = require('../../package.json') as { readonly engines: { readonly node: string } };
const NEEDED = manifest.engines.node.replace('>=', '');
const HINT = `install Node.js ${NEEDED} or newer: from nodejs.org, or "dnf module install nodejs:22"`;

/** Parts that a distribution may leave out, or an option of Node switch off. */
const PARTS: Readonly<Record<string, () => boolean>> = {
  'OpenSSL (node:crypto)': () => require('crypto') !== undefined,
  'ICU (strict TextDecoder)': () => new TextDecoder('utf-8', { fatal: true }).fatal,
  'WebAssembly': () => 'WebAssembly' in globalThis,
};

function findFault(): Fault | undefined {
  const found = process.versions.node;
  if (isOlder(found, NEEDED)) {
    return {
      code: 'node.too-old',
      message: `sealift needs Node.js ${NEEDED} or newer, and ${process.execPath} is ${found}: ${HINT}`,
    };
  }
  const missing = Object.keys(PARTS).filter((name) => !isThere(PARTS[name]));
  if (missing.length === 0) return undefined;
  const message = `${process.execPath} lacks ${missing.join(', ')}, which sealift needs: take away options such as --jitless, or ${HINT}`;
  return { code: 'node.incomplete', message };
}

/** Compares versions of three numbers. */
function isOlder(version: string, other: string): boolean {
  const [left, right] = [version, other].map((text) => text.split('.').map(Number));
  for (let at = 0; at < 3; at += 1) {
    const difference = (left?.[at] ?? 0) - (right?.[at] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

function isThere(ask: (() => boolean) | undefined): boolean {
  try {
    return ask?.() === true;
  } catch {
    return false;
  }
}

const fault = findFault();
if (fault === undefined) {
  // The built program is one file beside this one.
  void import('./main.js');
} else {
  const isJson = /(^| )(-o|--output-format|--log-format)[ =]?json( |$)/.test(
    process.argv.slice(2).join(' '),
  );
  process.stderr.write(
    isJson
      ? `${JSON.stringify({ type: 'error', code: fault.code, message: fault.message, exitCode: 6 })}\n`
      : `error: ${fault.message} [${fault.code}]\n`,
  );
  process.exitCode = 6;
}
