/*
 * The bare reader: as many connections as a pour has, whole blobs, neither hashed nor written. A
 * process of its own, like a build. Arguments: host, connections, JSON list of blobs.
 */
import { readFileSync } from 'node:fs';
import { Pool } from 'undici';
import { COMPONENT_REPOSITORY } from '../demo/release.ts';

const [host = '', connections = '8', list = ''] = process.argv.slice(2);
const blobs = JSON.parse(readFileSync(list, 'utf8')) as { digest: string; size: number }[];
const pool = new Pool(`http://${host}`, { connections: Number(connections) });
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

const started = performance.now();
await Promise.all(Array.from({ length: Number(connections) }, readSome));
console.log((performance.now() - started) / 1000);
await pool.close();
