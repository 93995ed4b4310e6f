/** Tables in CSV, TSV, YAML and Excel workbooks, as rows with their lines. */

export { readCsvTable } from './csv.ts';
export { readXlsxTable } from './xlsx.ts';
export { readYamlTable } from './yaml.ts';
export { isColumnName } from './table.ts';
export type { Table, TableProblem, TableRow } from './table.ts';
