import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { standInForInstaller } from './installer-stand-in.ts';

/*
 * The sets of values that openshift-install 4.22 was given, and the files, units and users that it wrote for each:
 * the data set `installer` of recordings.
 */

const DATA = '../shared/data/judged/installer';

export type MadeFile = {
  readonly path: string;
  readonly mode: string;
  readonly sha256: string;
  readonly text?: string;
};

type MadeUnit = {
  readonly name: string;
  readonly enabled: boolean | null;
  readonly sha256: string;
};

export type ValueSet = {
  readonly name: string;
  readonly infraenv: Readonly<Record<string, unknown>>;
  readonly pull_secret: Readonly<Record<string, unknown>>;
  readonly nmstateconfigs: readonly Readonly<Record<string, unknown>>[];
  readonly rendezvousIP: string | null;
  readonly refused?: string;
  readonly made?: {
    readonly 'changed or new files': readonly MadeFile[];
    readonly 'changed or new units': readonly MadeUnit[];
    readonly 'users': Readonly<Record<string, unknown>>;
  };
};

type Pristine = {
  readonly ignition: object;
  readonly files: readonly MadeFile[];
  readonly units: readonly MadeUnit[];
};

const read = (name: string): unknown => JSON.parse(readFileSync(join(DATA, name), 'utf8'));

/** The sets; none if the recordings are absent. */
export const listValueSets = (): readonly ValueSet[] =>
  existsSync(DATA) ? (read('values.json') as readonly ValueSet[]) : [];

const TEMPLATE = '/etc/assisted/rendezvous-host.env.template';

/**
 * The Ignition config that the installer writes without values. The recordings have scripts and units by their
 * digests, so a digest stands for the text of each; the template of the rendezvous host is the stand-in's.
 */
export function composePristine(): string {
  const { files, units } = read('pristine.json') as Pristine;
  const stand = JSON.parse(
    standInForInstaller('B', { metadata: {}, spec: {}, secretName: '', pullSecret: '' }),
  ) as { readonly storage: { readonly files: readonly { readonly path: string }[] } };
  return JSON.stringify({
    ignition: { version: '3.2.0' },
    storage: {
      files: files.map(({ path, mode, sha256, text = sha256 }) => {
        const file = {
          path,
          mode: Number.parseInt(mode, 8),
          overwrite: true,
          user: { name: 'root' },
          contents: { source: `data:;base64,${Buffer.from(text).toString('base64')}` },
        };
        const isTemplate = path === TEMPLATE;
        return isTemplate ? stand.storage.files.find((each) => each.path === path) : file;
      }),
    },
    systemd: {
      units: units.map(({ name, enabled, sha256 }) => ({
        name,
        contents: sha256,
        ...(enabled !== null && { enabled }),
      })),
    },
  });
}
