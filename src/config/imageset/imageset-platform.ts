import { withoutUndefined } from '../../base/lists.ts';
import { parseReleaseVersion } from '../check-shapes.ts';
import type { DocumentProblem } from '../../base/errors.ts';
import { readTexts, type View } from '../../shape/document.ts';
import type { Noted } from './import-note.ts';

/** What an image set says about the release; what it does not say is undefined. */
export type ImportedRelease = {
  readonly version?: string;
  readonly channel?: string;
  readonly cpuArchitecture?: string;
  readonly url?: string;
};

const PLATFORM = 'mirror.platform';
const CHANNEL = /^(?<channel>stable|fast|candidate|eus)-(?<version>\d+\.\d+)$/;
const RELEASE_TAG = /:(?<version>[^:@/]+)-(?<arch>x86_64|aarch64|ppc64le)(?:@.*)?$/;
const CPU: ReadonlyMap<string, string> = new Map([
  ['amd64', 'x86_64'],
  ['arm64', 'aarch64'],
  ['ppc64le', 'ppc64le'],
]);

/** One release of one architecture, and what is left out. */
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

function importArchitecture(view: View): Noted<ImportedRelease> {
  const listed = readTexts(view, `${PLATFORM}.architectures`);
  const all = [...listed, ...readTexts(view, `${PLATFORM}.platforms`, '.architecture')];
  const first = all.find(({ text }) => CPU.has(text));
  const notes = all
    .filter((entry) => entry !== first)
    .map(({ path, text }) => {
      const hint = CPU.has(text) ? 'build separate media for it' : undefined;
      return view.report(path, `media are of one architecture, not "${text}"`, { hint });
    });
  const cpuArchitecture = CPU.get(first?.text ?? '');
  return { value: cpuArchitecture === undefined ? {} : { cpuArchitecture }, notes };
}

/** The version is asked for beside the payload's reference; most tags have it. */
function importPayload(view: View, url: string): Noted<ImportedRelease> {
  const { report } = view;
  const tag = RELEASE_TAG.exec(url)?.groups;
  const version = parseReleaseVersion(tag?.['version'] ?? '');
  const unused = view
    .items(`${PLATFORM}.channels`)
    .map((path) => report(path, '"release" takes the place of channels'));
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
    report(path, 'media carry one release: only the first channel is taken', {
      hint: 'build media for each',
    }),
  );
  return { value, notes: [...notes, ...others] };
}

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
        .map((name) => report(`${path}.${name}`, 'media carry one release, no way between two')),
    ],
  };
}

function noteType(view: View, path: string): readonly DocumentProblem[] {
  const type = view.text(`${path}.type`) ?? 'ocp';
  const problem = `media are made of OpenShift releases, not of "${type}"`;
  return type === 'ocp' ? [] : [view.report(`${path}.type`, problem)];
}

/** The newest that the channel allows, which is what its maximum says. */
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
  const problem = `media carry one release: ${taken} is taken, none before it`;
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

/** Lenient, as version texts of image sets are: `v4.18.1`. */
function toReleaseVersion(text: string): string | undefined {
  const version = text.replace(/^[v=\s]+/, '');
  return parseReleaseVersion(version) === undefined ? undefined : version;
}
