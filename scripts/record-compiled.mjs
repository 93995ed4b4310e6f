import { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import process from 'node:process';
import v8 from 'node:v8';
import vm from 'node:vm';

/*
 * Runs a command of the built program, and writes what V8 has compiled of it until its end:
 *   node record-compiled.mjs FILE dist/cli/start.cjs ARGUMENT...
 */

const [file = '', start = '', ...args] = process.argv.slice(2);

// V8 refuses compiled code that was written under other flags than those of a start.
v8.setFlagsFromString = () => undefined;

const { Script } = vm;
/** @type {vm.Script[]} */
const scripts = [];
vm.Script = class extends Script {
  /** @param {ConstructorParameters<typeof Script>} given */
  constructor(...given) {
    super(...given);
    scripts.push(this);
  }
};
process.on('exit', () => {
  const [program] = scripts;
  if (!program) return;
  const code = program.createCachedData();
  const digest = createHash('sha256').update(code).digest();
  writeFileSync(file, Buffer.concat([digest, code]), { mode: 0o644 });
});

process.argv.splice(1, process.argv.length - 1, start, ...args);
createRequire(import.meta.url)(start);
