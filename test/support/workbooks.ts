import { packZip, type ZipMember } from './site-archives.ts';

type Parts = {
  /** XML inside `<sheetData>`. */
  readonly rows: string;
  /** XML before it, and behind it. */
  readonly before?: string;
  readonly after?: string;
  /** Texts of cells of type `s`, each as XML. */
  readonly shared?: readonly string[];
  /** Codes of formats, from style 1 on. */
  readonly formats?: readonly string[];
  readonly more?: readonly ZipMember[];
};

const RELATIONS = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const xml = (text: string): string => `<?xml version="1.0" encoding="UTF-8"?>${text}`;

const relation = (id: string, type: string, target: string): string =>
  `<Relationship Id="${id}" Type="${RELATIONS}/${type}" Target="${target}"/>`;

/** The parts of a workbook with one sheet (ECMA-376), packed. */
export const packWorkbook = (parts: Parts): Buffer =>
  packZip([...listParts(parts), ...(parts.more ?? [])]);

function listParts({
  rows,
  before = '',
  after = '',
  shared = [],
  formats = [],
}: Parts): readonly ZipMember[] {
  const styles = formats.map((code, at) => `<numFmt numFmtId="${164 + at}" formatCode="${code}"/>`);
  const uses = formats.map((_, at) => `<xf numFmtId="${164 + at}"/>`);
  return [
    [
      '_rels/.rels',
      `<Relationships>${relation('r1', 'officeDocument', 'xl/workbook.xml')}</Relationships>`,
    ],
    [
      'xl/workbook.xml',
      `<workbook xmlns:r="${RELATIONS}"><sheets><sheet name="old" state="hidden" r:id="r9"/><sheet name="sites" r:id="r1"/></sheets></workbook>`,
    ],
    [
      'xl/_rels/workbook.xml.rels',
      `<Relationships>${relation('r1', 'worksheet', 'worksheets/sheet1.xml')}${relation('r2', 'sharedStrings', '/xl/sharedStrings.xml')}${relation('r3', 'styles', 'styles.xml')}</Relationships>`,
    ],
    ['xl/sharedStrings.xml', `<sst>${shared.map((text) => `<si>${text}</si>`).join('')}</sst>`],
    [
      'xl/styles.xml',
      `<styleSheet><numFmts>${styles.join('')}</numFmts><cellXfs><xf numFmtId="0"/>${uses.join('')}</cellXfs></styleSheet>`,
    ],
    [
      'xl/worksheets/sheet1.xml',
      `<worksheet>${before}<sheetData>${rows}</sheetData>${after}</worksheet>`,
    ],
  ].map(([name = '', text = '']) => ({ name, text: xml(text) }));
}

/** A row whose cells are texts. */
export const textRow = (line: number, ...texts: readonly string[]): string =>
  `<row r="${line}">${texts.map((text) => `<c t="inlineStr"><is><t>${text}</t></is></c>`).join('')}</row>`;
