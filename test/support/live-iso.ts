import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { SIGNATURE_LINES } from '../../demo/release-signer.ts';
import { createRedaction } from '../../src/base/text/redact.ts';
import type { CliHost } from '../../src/cli/host.ts';
import { runProgram } from '../../src/cli/program.ts';
import { archNames } from '../../src/openshift/release/bundle.ts';
import { serveImages, type ImageRegistry } from './image-registry.ts';
import { makeCoreosIso, type TestCoreosOptions } from './iso.ts';
import { addRelease, type ReleaseOptions, type TestRelease } from './release.ts';
import { requireNoCanary, requireNoCanaryFiles, requireNoCanaryResult } from './canaries.ts';

export type Outcome = {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
};

type TestHost = CliHost & { readonly stdout: PassThrough; readonly stderr: PassThrough };

/** A folder with a base ISO, a registry with a small release, and the program to run in it. */
export type LiveWorld = {
  readonly directory: string;
  readonly registry: ImageRegistry;
  readonly release: TestRelease;
  /** Of the program; a test may add to it. */
  readonly env: NodeJS.ProcessEnv;
  readonly run: (...args: string[]) => Promise<Outcome>;
  readonly host: (signal?: AbortSignal) => TestHost;
  readonly writeConfig: (...lines: string[]) => Promise<void>;
  readonly close: () => Promise<void>;
};

export async function createLiveWorld({
  arch = 'x86_64',
  ...options
}: Pick<ReleaseOptions, 'components' | 'definitions' | 'installer'> &
  Pick<TestCoreosOptions, 'arch'> = {}): Promise<LiveWorld> {
  const directory = await mkdtemp(join(tmpdir(), 'sealift-live-'));
  const registry = signInto(directory, await serveImages());
  const release = await addRelease(registry, {
    ...options,
    architecture: archNames.toGo(arch),
    iso: await readFile(await makeCoreosIso(directory, { arch })),
  });
  const env: NodeJS.ProcessEnv = { HOME: directory };
  const host: LiveWorld['host'] = (signal = new AbortController().signal) => ({
    stdout: new PassThrough(),
    stderr: new PassThrough(),
    cwd: directory,
    redaction: createRedaction(),
    isTTY: false,
    env,
    now: Date.now,
    signal,
  });
  return {
    directory,
    registry,
    release,
    env,
    host,
    async run(...args) {
      const own = host();
      const [stdout, stderr] = [collect(own.stdout), collect(own.stderr)];
      const exitCode = await runProgram(args, own);
      const printed = requireNoCanaryResult(args, stdout());
      return { exitCode, stdout: printed, stderr: requireNoCanary(stderr()) };
    },
    writeConfig: (...lines) =>
      writeFile(
        join(directory, 'appliance-config.yaml'),
        [
          'apiVersion: v1beta1',
          'kind: ApplianceConfig',
          'ocpRelease:',
          '  version: "4.21.3"',
          `  url: ${release.pullspec}`,
          `pullSecret: '{"auths":{"quay.io":{"auth":"dXNlcjpzZWNyZXQtd29yZA=="}}}'`,
          'enableInteractiveFlow: true',
          'build:',
          '  ignition: embedded',
          ...SIGNATURE_LINES,
          `  insecureRegistries: ["${registry.host}"]`,
          ...lines,
          '',
        ].join('\n'),
      ),
    async close() {
      await registry.close();
      requireNoCanaryFiles(directory);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Every release that is added gets its signature in the folder. */
function signInto(directory: string, registry: ImageRegistry): ImageRegistry {
  const { signer } = registry;
  const sign: ImageRegistry['signer']['sign'] = (...release) => {
    signer.sign(...release);
    signer.write(directory);
  };
  return { ...registry, signer: { ...signer, sign } };
}

/** Takes what is written at once: a full pipe would make the writer wait. */
function collect(stream: PassThrough): () => string {
  const pieces: Buffer[] = [];
  stream.on('data', (piece: Buffer) => pieces.push(piece));
  return () => Buffer.concat(pieces).toString('utf8');
}
