/*
 * The bare reader: as many connections as a pour has, whole blobs, neither hashed nor written. A
 * process of its own, like a build. Arguments: origin, connections, JSON list of blobs, and for TLS a PEM
 * file of whom to trust. Prints wall seconds and CPU seconds.
 */
import { readFileSync } from 'node:fs';
import { Pool } from 'undici';
import { COMPONENT_REPOSITORY } from '../demo/release.ts';

const [origin = '', connections = '8', list = '', ca] = process.argv.slice(2);
const blobs = JSON.parse(readFileSync(list, 'utf8')) as { digest: string; size: number }[];
const pool = new Pool(origin, {
  connections: Number(connections),
  ...(ca !== undefined && { connect: { ca: readFileSync(ca) } }),
});
let next = 0;

async function readSome(): Promise<void> {
  for (let blob = blobs[next++]; blob; blob = blobs[next++]) {
    const path = `/v2/${COMPONENT_REPOSITORY}/blobs/${blob.digest}`;
    const { body } = await pool.request({ method: 'GET', path });
    let size = 0;
    for await (const piece of body) size += (piece as Uint8Array).length;
    if (size !== blob.size) throw new Error(`${blob.digest} has ${size} bytes`);
  }
}

const before = process.cpuUsage();
const started = performance.now();
await Promise.all(Array.from({ length: Number(connections) }, readSome));
const seconds = (performance.now() - started) / 1000;
const { user, system } = process.cpuUsage(before);
console.log(seconds, (user + system) / 1e6);
await pool.close();
