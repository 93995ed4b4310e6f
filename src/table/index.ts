/** Tables in CSV, TSV and YAML, as rows with their lines. */

export { readCsvTable } from './csv.ts';
export { readYamlTable } from './yaml.ts';
export { isColumnName } from './table.ts';
export type { Table, TableProblem, TableRow } from './table.ts';
