import type { DescribedSignature } from '../../recipes/describe-signatures.ts';

/** One line for each release: who signed it and as what, or that nobody did. */
export const formatSignatures = (
  signatures: readonly DescribedSignature[],
  label: string,
): readonly string[] =>
  signatures.map((one) =>
    one.status === 'verified'
      ? `${label}${one.version} is ${one.identity}, by key ${one.key}`
      : `${label}${one.version} is unsigned: ${one.problem}`,
  );
