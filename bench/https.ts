import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, describe, LANES, prepare, rate, type Site } from './build.ts';
import { addFigures, median, type Figures } from './figures.ts';
import { readBare, shell, startSource } from './run.ts';
import type { SourceShape } from './source-shape.ts';

/** Builds from a registry whose certificate is of a private CA, against a bare reader over TLS. */
export async function benchHttps(
  shape: SourceShape,
  site: Site,
  { figures, runs }: { readonly figures: Figures; readonly runs: number },
): Promise<void> {
  const { directory } = site;
  await makeCertificates(directory);
  const caBundle = join(directory, 'ca.pem');
  const read = (name: string): string => readFileSync(join(directory, name), 'utf8');
  const tls = { key: read('server.key'), cert: read('server.pem') };
  const source = await startSource({ ...shape, tls });
  const ratios: number[] = [];
  try {
    for (let index = 0; index < runs; index++) {
      const bare = await readBare(source, { directory, connections: LANES, ca: caBundle });
      const built = await build(prepare('https', source, { ...site, caBundle }));
      ratios.push(bare.wallSeconds / built.pour);
      console.log(
        `  https: bare ${rate(bare.wallSeconds, source)}, pour ${rate(built.pour, source)}, ${describe(built)}`,
      );
    }
  } finally {
    await source.stop();
  }
  addFigures(figures, { httpsRatio: { value: median(ratios), atLeast: 0.2 } });
}

/** A certificate authority of our own, and a certificate of it for 127.0.0.1. */
const makeCertificates = (directory: string): Promise<unknown> =>
  shell(
    [
      'curve="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"',
      'openssl req -x509 $curve -keyout ca.key -out ca.pem -subj "/CN=bench CA" -days 2',
      'openssl req $curve -keyout server.key -out server.csr -subj "/CN=127.0.0.1"',
      'openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \\',
      '  -extfile <(echo subjectAltName=IP:127.0.0.1) -out server.pem',
    ].join('\n'),
    directory,
  );
