import { stringify } from 'yaml';

/**
 * An nmstate document in its normal form: keys sorted on every level, lists not indented, quotes only
 * where YAML 1.1 would read another type.
 */
export const formatNetworkConfig = (value: unknown): string =>
  stringify(value, {
    version: '1.1',
    sortMapEntries: true,
    indentSeq: false,
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
