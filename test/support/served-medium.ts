import { startSealift } from './child.ts';

export type ServedMedium = {
  /** `127.0.0.1:port` */
  readonly host: string;
  /** Tells the server to end, and gives its exit code. */
  readonly close: () => Promise<number | null>;
};

/** `sealift registry serve` as a process of its own, on a free port. */
export async function serveMedium(iso: string, cwd: string): Promise<ServedMedium> {
  const { process, ended } = startSealift(['registry', 'serve', iso, '--port', '0'], { cwd });
  const host = await new Promise<string>((resolve, reject) => {
    let told = '';
    process.stderr?.on('data', (piece: Buffer) => {
      told += piece.toString();
      const address = /http:\/\/(\S+);/.exec(told)?.[1];
      if (address !== undefined) resolve(address);
    });
    process.on('close', () => {
      reject(new Error(`no address in: ${told}`));
    });
  });
  return {
    host,
    async close() {
      process.kill('SIGTERM');
      return (await ended).code;
    },
  };
}
