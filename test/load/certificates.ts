import { X509Certificate } from 'node:crypto';
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { runProcess } from '../../src/base/process.ts';
import type { Fleet } from './fleet.ts';
import type { Report } from './report.ts';
import { createTimeline } from './timeline.ts';

/** The certificates of the replicas, one after the other. */
export type Certificates = {
  /** PEM of what issues them: clients trust it alone. */
  readonly authority: string;
  /** Notes which one a connection was given that began then. */
  readonly check: (fingerprint: string, began: number) => void;
  /** Puts another pair in the place of the files; resolves when all replicas give it. */
  readonly renew: (fleet: Fleet) => Promise<void>;
};

const EC = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30'];

/** Writes `tls.crt` and `tls.key` into the folder. */
export async function issueCertificates(directory: string, report: Report): Promise<Certificates> {
  const at = (name: string): string => join(directory, name);
  const issue = async (name: string, ...more: readonly string[]): Promise<void> => {
    const files = ['-keyout', at(`${name}.key`), '-out', at(`${name}.crt`), '-subj', `/CN=${name}`];
    await runProcess('openssl', ['req', '-x509', ...EC, ...files, ...more]);
  };
  const fingerprintOf = (name: string): string =>
    new X509Certificate(readFileSync(at(`${name}.crt`))).fingerprint256;
  const issueNext = (name: string): Promise<void> =>
    issue(
      name,
      ...['-CA', at('authority.crt'), '-CAkey', at('authority.key')],
      ...['-addext', 'subjectAltName=IP:127.0.0.1'],
    );
  await issue('authority');
  await issueNext('tls');
  const given = createTimeline(fingerprintOf('tls'));
  const authority = readFileSync(at('authority.crt'), 'utf8');
  return {
    authority,
    check(fingerprint, began) {
      if (given.since(began).includes(fingerprint)) return;
      report.problem(`a connection was given the certificate ${fingerprint}, which was renewed`);
    },
    async renew({ settle }) {
      await issueNext('next');
      const next = fingerprintOf('next');
      await given.change(next, async () => {
        for (const kind of ['key', 'crt']) renameSync(at(`next.${kind}`), at(`tls.${kind}`));
        await settle('the renewed certificate', async ({ port }) => {
          return (await askForCertificate(port, authority)) === next;
        });
      });
      report.count('certificates renewed');
    },
  };
}

/** @returns undefined where the line breaks */
const askForCertificate = (port: number, ca: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, ca, timeout: 20_000 }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.once('timeout', () => socket.destroy());
    socket.once('error', () => undefined);
    socket.once('close', () => {
      resolve(undefined);
    });
  });
