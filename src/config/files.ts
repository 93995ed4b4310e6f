import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { readInputFile } from '../base/disk/files.ts';
import { type DocumentProblem, isErrno } from '../base/errors.ts';
import { ROOTS_RULES } from '../base/http/tls.ts';
import { explainRoots, warnOfRoots } from '../keys/index.ts';
import type { View } from '../shape/document.ts';

/* Owns the rules of the files that a configuration names. */

type Kind = 'file' | 'directory' | 'other' | 'absent' | 'forbidden';

export function checkMirrorPath(view: View): readonly DocumentProblem[] {
  const text = view.text('mirrorPath');
  if (text === undefined) return [];
  const full = resolve(view.directoryOf('mirrorPath'), text);
  const report = (problem: string): DocumentProblem[] => [view.report('mirrorPath', problem)];
  const kind = readKind(full);
  return kind === 'directory' ? [] : report(`${full} ${describeMissing(kind, 'directory')}`);
}

export function checkBaseIso(view: View): readonly DocumentProblem[] {
  const path = 'build.baseIso';
  const text = view.text(path);
  const { report } = view;
  if (text === undefined) {
    if (view.text('build.baseIsoSha256') === undefined) return [];
    return [report('build.baseIsoSha256', 'is given, but build.baseIso is not')];
  }
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return checkNamedFile(view, path);
  if (!text.startsWith('https://') || !URL.canParse(text)) {
    return [report(path, 'must be a path or an https URL')];
  }
  if (view.text('build.baseIsoSha256') !== undefined) return [];
  return [report(path, 'is a URL, so build.baseIsoSha256 is required')];
}

export function checkNamedFile(view: View, path: string): readonly DocumentProblem[] {
  const text = view.text(path);
  if (text === undefined) return [];
  const full = resolve(view.directoryOf(path), text);
  const kind = readKind(full);
  if (kind === 'file') return [];
  return [view.report(path, `${full} ${describeMissing(kind, 'file')}`)];
}

const CA_BUNDLE = 'build.caBundle';

export function checkCaBundle(view: View): readonly DocumentProblem[] {
  const { full, bytes } = readCaBundle(view);
  const why = bytes && explainRoots(bytes);
  return why === undefined ? [] : [view.report(CA_BUNDLE, `${full}: ${why}`)];
}

/** Notes certificates that are not marked as authorities: they make no registry trusted. */
export function noteCaBundle(view: View): readonly DocumentProblem[] {
  const { full, bytes } = readCaBundle(view);
  const doubts = bytes ? warnOfRoots(bytes) : [];
  return doubts.map((doubt) => view.report(CA_BUNDLE, `${full}: ${doubt}`));
}

function readCaBundle(view: View): { readonly full: string; readonly bytes?: Buffer } {
  const text = view.text(CA_BUNDLE);
  const full = resolve(view.directoryOf(CA_BUNDLE), text ?? '');
  if (text === undefined || readKind(full) !== 'file') return { full };
  return { full, bytes: readInputFile(full, ROOTS_RULES) };
}

/** `build.signatures` may be a folder or a file. */
export function checkSignatures(view: View): readonly DocumentProblem[] {
  const path = 'build.signatures';
  const isFolder = readKind(resolve(view.directoryOf(path), view.text(path) ?? '')) === 'directory';
  return isFolder ? [] : checkNamedFile(view, path);
}

function readKind(path: string): Kind {
  try {
    const stats = statSync(path);
    if (stats.isFile()) return 'file';
    return stats.isDirectory() ? 'directory' : 'other';
  } catch (error) {
    if (isErrno(error, 'ENOENT', 'ENOTDIR')) return 'absent';
    if (isErrno(error, 'EACCES', 'ELOOP', 'ENAMETOOLONG', 'EPERM')) return 'forbidden';
    throw error;
  }
}

function describeMissing(kind: Kind, wanted: 'file' | 'directory'): string {
  if (kind === 'absent') return 'does not exist';
  return kind === 'forbidden' ? 'cannot be reached' : `must be a ${wanted}`;
}
