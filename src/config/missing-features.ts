import type { ConfigProblem } from './document/problem.ts';
import type { View } from './document/view.ts';

type Feature = { readonly path: string; readonly name: string; readonly hint: string };

const PPC64LE: Feature = {
  path: 'ocpRelease.cpuArchitecture',
  name: 'media for ppc64le cannot be built yet',
  hint: 'choose x86_64 or aarch64',
};

/** Keys that the format has and this version cannot act on, where they are written. */
export function findMissingFeatures(view: View): readonly ConfigProblem[] {
  const wanted = [...(view.text('ocpRelease.cpuArchitecture') === 'ppc64le' ? [PPC64LE] : [])];
  return wanted.map(({ path, name, hint }) => view.document.report.at(path, name, hint));
}
