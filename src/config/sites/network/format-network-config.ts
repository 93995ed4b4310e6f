import { stringify } from 'yaml';
import type { Free } from '../shape.ts';

/**
 * An nmstate document in its normal form: keys sorted on every level, lists not indented, quotes only
 * where YAML 1.1 would read another type, a newline at the end.
 */
export const formatNetworkConfig = (value: Free): string =>
  stringify(value, {
    version: '1.1',
    sortMapEntries: true,
    indentSeq: false,
    lineWidth: 0,
    aliasDuplicateObjects: false,
  });
