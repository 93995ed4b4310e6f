/*
 * The first file that Node reads, built for Node 12: an older Node than the program needs, and one without a
 * part of it, end with a sentence instead of the stack of a syntax error. Nothing is imported before that.
 */

import type * as crypto from 'crypto';
import type * as fs from 'fs';
import type * as module_ from 'module';
import type * as vm from 'vm';

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

/** The program as a function of what a module in CommonJS finds. */
type Program = (found: {
  readonly require: NodeJS.Require;
  readonly module: { readonly exports: object };
  readonly exports: object;
  readonly __filename: string;
}) => void;

/**
 * Runs the program, which is one file beside this one. To compile it takes longer than all else that a short
 * command does, so the build leaves V8's compiled code beside it. V8 refuses the code of other versions and
 * options, and the program is compiled then.
 */
function loadProgram(): void {
  const { readFileSync } = require('fs') as typeof fs;
  const { createRequire } = require('module') as typeof module_;
  const { constants, Script } = require('vm') as typeof vm;
  const path = `${__dirname}/main.cjs`;
  const source = readFileSync(path, 'utf8');
  const script = new Script(`(({ require, module, exports, __filename }) => {${source}\n})`, {
    filename: path,
    cachedData: readCompiled(),
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const run = script.runInThisContext() as Program;
  const exports = {};
  run({ require: createRequire(path), module: { exports }, exports, __filename: path });
}

/**
 * Reads the compiled code, which has its SHA-256 before it: V8 crashes on damaged code. No other user may be able to
 * write it. V8 compares no more of the source than its length, so its name has the digest of the program.
 */
function readCompiled(): Buffer | undefined {
  const { createHash } = require('crypto') as typeof crypto;
  const { closeSync, fstatSync, openSync, readFileSync } = require('fs') as typeof fs;
  let file: number | undefined;
  try {
    const { digest } = require('../program-digest.json') as { readonly digest: string };
    const name = `${digest.slice('sha256:'.length)}-${process.version}-${process.arch}`;
    file = openSync(`${__dirname}/../compiled/${name}`, 'r');
    const { uid, mode } = fstatSync(file);
    const isOurs = uid === 0 || uid === process.geteuid?.();
    if (!isOurs || (mode & 0o022) !== 0) return undefined;
    const [sum, code] = split(readFileSync(file), 32);
    return createHash('sha256').update(code).digest().equals(sum) ? code : undefined;
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

const split = (bytes: Buffer, at: number): [Buffer, Buffer] => [
  bytes.subarray(0, at),
  bytes.subarray(at),
];

// Node prints warnings about its own options before the program is loaded, between lines of JSON.
process.removeAllListeners('warning');

const fault = findFault();
if (fault === undefined) {
  loadProgram();
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
