/** As RPM says them, which assisted-service does as well. */
export const ARCHITECTURES = ['x86_64', 'aarch64', 'ppc64le', 's390x'] as const;

/** assisted-service takes Go's word for one of them, too. */
export function toArchitecture(text: unknown): string | undefined {
  const name = text === 'arm64' ? 'aarch64' : text;
  return ARCHITECTURES.find((each) => each === name);
}
