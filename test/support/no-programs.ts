import childProcess from 'node:child_process';
import { syncBuiltinESMExports } from 'node:module';

/** Setup of each test of the project `unit`: no process starts. What needs one imports `node:child_process` itself. */
const refuse = (): never => {
  throw new Error('a unit test starts no process; see test/projects.ts');
};
const { exec, execFile, execFileSync, execSync, fork, spawn, spawnSync } = childProcess;
const starts = { exec, execFile, execFileSync, execSync, fork, spawn, spawnSync };
for (const name of Object.keys(starts)) Object.assign(childProcess, { [name]: refuse });
syncBuiltinESMExports();
