import type { DocumentProblem } from '../../base/errors.ts';
import { withoutUndefined } from '../../base/lists.ts';
import { readItemTexts, type View } from '../../shape/document.ts';
import { parseReleaseVersion } from '../rules.ts';
import type { Noted } from './notes.ts';

/* Owns the import of the platform of an image set: the one release and architecture of the media. */

/** A missing setting is undefined. */
export type ImportedRelease = {
  readonly version?: string;
  readonly channel?: string;
  readonly cpuArchitecture?: string;
  readonly url?: string;
};

const PLATFORM = 'mirror.platform';

/** Other releases and architectures of the image set are left out, with a note each. */
export function importPlatform(view: View): Noted<ImportedRelease> {
  const cpu = importArchitecture(view);
  const url = view.text(`${PLATFORM}.release`);
  const release = url === undefined ? importChannels(view) : importPayload(view, url);
  return {
    value: { ...cpu.value, ...release.value },
    notes: [...noteFlags(view), ...cpu.notes, ...release.notes],
  };
}

function noteFlags(view: View): readonly DocumentProblem[] {
  const { report } = view;
  const reasons = {
    graph: 'the update graph is not carried on the media',
    kubeVirtContainer: 'the disk image of KubeVirt is not carried on the media',
  };
  return Object.entries(reasons).flatMap(([name, reason]) => {
    const path = `${PLATFORM}.${name}`;
    return view.flag(path) === true ? [report(path, reason)] : [];
  });
}

/** Go's names of architectures, and RPM's. */
export const CPU: ReadonlyMap<string, string> = new Map([
  ['amd64', 'x86_64'],
  ['arm64', 'aarch64'],
  ['ppc64le', 'ppc64le'],
]);

function importArchitecture(view: View): Noted<ImportedRelease> {
  const listed = readItemTexts(view, `${PLATFORM}.architectures`);
  const all = [...listed, ...readItemTexts(view, `${PLATFORM}.platforms`, '.architecture')];
  const first = all.find(({ text }) => CPU.has(text));
  const notes = all
    .filter((entry) => entry !== first)
    .map(({ path, text }) => {
      const hint = CPU.has(text) ? 'build separate media for it' : undefined;
      return view.report(path, `media have one architecture: "${text}" is left out`, { hint });
    });
  const cpuArchitecture = CPU.get(first?.text ?? '');
  return { value: cpuArchitecture === undefined ? {} : { cpuArchitecture }, notes };
}

const RELEASE_TAG = /:(?<version>[^:@/]+)-(?<arch>x86_64|aarch64|ppc64le)(?:@.*)?$/;

/** `ocpRelease.version` is required even with the payload's reference; most tags name the version. */
function importPayload(view: View, url: string): Noted<ImportedRelease> {
  const { report } = view;
  const tag = RELEASE_TAG.exec(url)?.groups;
  const version = parseReleaseVersion(tag?.['version'] ?? '');
  const unused = view
    .items(`${PLATFORM}.channels`)
    .map((path) => report(path, '"release" replaces the channels'));
  const unknown = 'the reference does not say which version it is';
  const hint = 'write the version to ocpRelease.version';
  return {
    value: {
      url,
      ...withoutUndefined({ version }),
      ...(tag?.['arch'] !== undefined && { cpuArchitecture: tag['arch'] }),
    },
    notes: [
      ...(version === undefined ? [report(`${PLATFORM}.release`, unknown, { hint })] : []),
      ...unused,
    ],
  };
}

function importChannels(view: View): Noted<ImportedRelease> {
  const { report } = view;
  const [first, ...more] = view.items(`${PLATFORM}.channels`);
  if (first === undefined) {
    const hint = 'write the version to ocpRelease.version';
    return {
      value: {},
      notes: [report(PLATFORM, 'names no release, but media carry one', { hint })],
    };
  }
  const { value, notes } = importChannel(view, first);
  const others = more.map((path) =>
    report(path, 'media carry one release: only the first channel is used', {
      hint: 'build media for each',
    }),
  );
  return { value, notes: [...notes, ...others] };
}

const CHANNEL = /^(?<channel>stable|fast|candidate|eus)-(?<version>\d+\.\d+)$/;

function importChannel(view: View, path: string): Noted<ImportedRelease> {
  const { report } = view;
  const name = view.text(`${path}.name`) ?? '';
  const { channel, version } = CHANNEL.exec(name)?.groups ?? {};
  const hint = 'write version and channel to ocpRelease';
  const unknown = `"${name}" is not an OpenShift release channel`;
  const chosen = chooseVersion(view, path, version);
  return {
    value: {
      ...withoutUndefined({ channel, version: chosen.value }),
    },
    notes: [
      ...(channel === undefined ? [report(`${path}.name`, unknown, { hint })] : []),
      ...noteType(view, path),
      ...chosen.notes,
      ...['shortestPath', 'full']
        .filter((name) => view.flag(`${path}.${name}`) === true)
        .map((name) => report(`${path}.${name}`, 'media carry one release, not an upgrade path')),
    ],
  };
}

function noteType(view: View, path: string): readonly DocumentProblem[] {
  const type = view.text(`${path}.type`) ?? 'ocp';
  const problem = `media are made from OpenShift releases, not from "${type}"`;
  return type === 'ocp' ? [] : [view.report(`${path}.type`, problem)];
}

/** The newest version that the channel allows: its `maxVersion`, otherwise the version in its name. */
function chooseVersion(
  view: View,
  path: string,
  ofChannel: string | undefined,
): Noted<string | undefined> {
  const { report } = view;
  const min = view.text(`${path}.minVersion`);
  const max = view.text(`${path}.maxVersion`);
  const version = max === undefined ? ofChannel : toReleaseVersion(max);
  const taken = version === undefined ? 'no version' : `version ${version}`;
  const problem = `media carry one release: ${taken} is used, no earlier one`;
  const isRange = min !== undefined && min !== max;
  const unread = `"${max ?? ''}" is not a valid release version`;
  return {
    value: version,
    notes: [
      ...(isRange ? [report(`${path}.minVersion`, problem)] : []),
      ...(max !== undefined && version === undefined ? [report(`${path}.maxVersion`, unread)] : []),
    ],
  };
}

/** A version without the prefix that image sets allow, as in `v4.18.1`. */
function toReleaseVersion(text: string): string | undefined {
  const version = text.replace(/^[v=\s]+/, '');
  return parseReleaseVersion(version) === undefined ? undefined : version;
}
